"""Export of labeled texts to CSV, TSV or JSON lines: a file for each split, and ``columns.json`` beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.formats.shared.exports import CellWriter, ExportReport, can_be_written, new_folder
from ziggurat.datasets.formats.table.dialect import Description
from ziggurat.datasets.samples import Problem
from ziggurat.errors import UnknownNameError

__all__ = ["TEXT_FORMATS", "export_text"]

TEXT_FORMATS: Final = {"csv": ",", "tsv": "\t", "jsonl": ""}
"""Format of the files → what stands between cells."""

_COLUMNS: Final = ("key", "label", "text")


def export_text(dataset: Dataset, folder: Path, *, file_format: str = "csv") -> ExportReport:
    """Write labeled texts: key, name of the class and text of each sample.

    Args:
        dataset: of the kind text-classification.
        folder: new, or empty.
        file_format: ``csv``, ``tsv`` or ``jsonl``.

    Raises:
        UnknownNameError: where there is no such format.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    if file_format not in TEXT_FORMATS:
        raise UnknownNameError("format of a file of texts", file_format, TEXT_FORMATS)
    folder = new_folder(Path(folder))
    counts: dict[str, int] = {}
    problems: list[Problem] = []
    for split in dataset.splits:
        path = folder / f"{split}.{file_format}"
        write = _write_lines if file_format == "jsonl" else _write_cells
        counts[split] = write(path, _rows(dataset, split), problems)
    with storage_errors(folder):
        Description(schema=dataset.schema, key="key", suffix=f".{file_format}").save(folder)
    return ExportReport(format="text", counts=counts, problems=problems)


def _rows(dataset: Dataset, split: str) -> Iterator[tuple[str, str, str]]:
    for sample in dataset.samples(split):
        yield sample.key, dataset.schema.class_names[sample.label], _text_of(sample)


def _write_cells(path: Path, rows: Iterator[tuple[str, str, str]], problems: list[Problem]) -> int:
    written = 0
    with CellWriter(path, _COLUMNS, delimiter=TEXT_FORMATS[path.suffix[1:]]) as writer:
        for row in rows:
            if not all(map(can_be_written, row)):
                reason = "It holds zero signs, which no CSV file can hold; JSON lines can."
                problems.append(Problem(key=row[0], kind="not-written", reason=reason, left_out=True))
                continue
            writer.write(row)
            written += 1
    return written


def _write_lines(path: Path, rows: Iterator[tuple[str, str, str]], _problems: list[Problem]) -> int:
    written = 0
    target = AtomicFile(path)
    try:
        with storage_errors(path), target.path.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                line = json.dumps(dict(zip(_COLUMNS, row, strict=True)), ensure_ascii=False)
                file.write(line + "\n")
                written += 1
        target.publish()
    finally:
        target.discard()
    return written


def _text_of(sample: StoredSample) -> str:
    part = sample.parts[0]
    return part if isinstance(part, str) else bytes(part).decode()
