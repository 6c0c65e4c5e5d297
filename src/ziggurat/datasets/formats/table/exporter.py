"""Export of tables to CSV, TSV or Parquet: a file for each split, and ``columns.json`` beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.formats.shared.exports import CellWriter, ExportReport, can_be_written, new_folder
from ziggurat.datasets.formats.table.dialect import Description
from ziggurat.datasets.samples import Problem
from ziggurat.errors import MissingDependencyError, UnknownNameError
from ziggurat.records.schema import Schema

__all__ = ["TABLE_FORMATS", "export_table"]

TABLE_FORMATS: Final = {"csv": ",", "tsv": "\t", "parquet": ""}
"""Format of the files → what stands between cells."""

_ROW_GROUP: Final = 4096  # rows that are in memory at once
_MISSING: Final = re.compile(r"|NA|<missing( \d+)?>")
_LARGEST: Final = 2**63  # what int64 cannot hold is written as float64


def export_table(dataset: Dataset, folder: Path, *, file_format: str = "csv") -> ExportReport:
    """Write a table: the key of each row, then its values; the target's is the label.

    Args:
        dataset: of the kind table.
        folder: new, or empty.
        file_format: ``csv``, ``tsv`` or ``parquet``.

    Raises:
        UnknownNameError: where there is no such format.
        MissingDependencyError: where Parquet is asked for and pyarrow is not installed.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    if file_format not in TABLE_FORMATS:
        raise UnknownNameError("format of a file of a table", file_format, TABLE_FORMATS)
    writer = _write_parquet if file_format == "parquet" else _write_cells
    if file_format == "parquet":
        _arrow()
    folder = new_folder(Path(folder))
    schema = dataset.schema
    names = {column.name for column in schema.columns}
    key = next(name for name in ("key", *(f"key-{number}" for number in range(2, 100))) if name not in names)
    description = Description(
        schema=schema,
        key=key,
        suffix=f".{file_format}",
        missing=None if file_format == "parquet" else _text_for_nothing(dataset),
    )
    problems: list[Problem] = []
    counts = {
        split: writer(folder / f"{split}.{file_format}", dataset, split, description, problems)
        for split in dataset.splits
    }
    with storage_errors(folder):
        description.save(folder)
    return ExportReport(format="table", counts=counts, problems=problems)


def _rows(dataset: Dataset, split: str) -> Iterator[tuple[str, list[Any]]]:
    place = next(
        (index for index, column in enumerate(dataset.schema.columns) if column.name == dataset.schema.target), None
    )
    for sample in dataset.samples(split):
        values = _values_of(sample)
        if place is not None:
            values[place] = _target_value(sample.label, values[place], dataset.schema)
        yield sample.key, values


def _values_of(sample: StoredSample) -> list[Any]:
    part = sample.parts[0]
    return json.loads(part if isinstance(part, str) else bytes(part))


def _target_value(label: Any, value: Any, schema: Schema) -> Any:
    """Return what the target's column says: labels may have been changed after the rows were read."""
    if label is None or not schema.class_names:
        return value if label == value else label
    return bool(label) if isinstance(value, bool) else schema.class_names[label]


# ---- text


def _write_cells(path: Path, dataset: Dataset, split: str, description: Description, problems: list[Problem]) -> int:
    written = 0
    missing = description.missing or ""
    delimiter = TABLE_FORMATS[path.suffix[1:]]
    with CellWriter(path, description.column_names, delimiter=delimiter, missing=missing) as writer:
        for key, values in _rows(dataset, split):
            cells = [key, *(_cell(value) for value in values)]
            if not all(cell is None or can_be_written(cell) for cell in cells):
                reason = "It holds zero signs, which no CSV file can hold; Parquet can."
                problems.append(Problem(key=key, kind="not-written", reason=reason, left_out=True))
                continue
            writer.write(cells)
            written += 1
    return written


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)  # true, false, and numbers with all of their digits


def _text_for_nothing(dataset: Dataset) -> str:
    """Return a text for missing cells that is in no cell."""
    taken = {
        value.strip()
        for split in dataset.splits
        for key, values in _rows(dataset, split)
        for value in (key, *values)
        if isinstance(value, str) and _MISSING.fullmatch(value.strip())
    }
    candidates = ("", "NA", "<missing>", *(f"<missing {number}>" for number in range(len(taken))))
    return next(text for text in candidates if text not in taken)


# ---- Parquet


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError("pyarrow", extra="tables", purpose="tables in Parquet files") from None
    return pyarrow


def _write_parquet(path: Path, dataset: Dataset, split: str, description: Description, _problems: list[Problem]) -> int:
    arrow = _arrow()
    fields = [(description.key, arrow.string()), *_fields(dataset, arrow)]
    schema = arrow.schema(fields)
    target = AtomicFile(path)
    written = 0
    try:
        with storage_errors(path), arrow.parquet.ParquetWriter(target.path, schema) as writer:
            for rows in _blocks(_rows(dataset, split)):
                columns = zip(*([key, *values] for key, values in rows), strict=True)
                arrays = [
                    arrow.array([_typed(value, kind, arrow) for value in column], kind)
                    for column, (_, kind) in zip(columns, fields, strict=True)
                ]
                writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
                written += len(rows)
        target.publish()
    finally:
        target.discard()
    return written


def _fields(dataset: Dataset, arrow: Any) -> list[tuple[str, Any]]:
    """Return name and Arrow type of each column; numbers are whole where all of them are, in every split."""
    columns = dataset.schema.columns
    broken = [False] * len(columns)
    for split in dataset.splits:
        for _, values in _rows(dataset, split):
            for index, value in enumerate(values):
                broken[index] |= isinstance(value, float) or (isinstance(value, int) and abs(value) >= _LARGEST)
    kinds = {"boolean": arrow.bool_()}
    found = []
    for column, is_broken in zip(columns, broken, strict=True):
        number = arrow.float64() if is_broken else arrow.int64()
        found.append((column.name, number if column.type == "number" else kinds.get(column.type, arrow.string())))
    return found


def _typed(value: Any, kind: Any, arrow: Any) -> Any:
    if value is None or isinstance(value, str) or kind != arrow.string():
        return value
    return json.dumps(value)


def _blocks(rows: Iterator[tuple[str, list[Any]]]) -> Iterator[Sequence[tuple[str, list[Any]]]]:
    block = []
    for row in rows:
        block.append(row)
        if len(block) == _ROW_GROUP:
            yield block
            block = []
    if block:
        yield block
