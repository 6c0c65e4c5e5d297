"""Export to text lists: a file for each split, with a path and a label on each line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ziggurat.atomic import storage_errors
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.shared.exports import Export, ExportReport, FileNames, KeyWriter, encoded_part
from ziggurat.errors import DatapointError

__all__ = ["export_text_list"]


def export_text_list(dataset: Dataset, folder: Path) -> ExportReport:
    """Write each image under its key, ``train.txt``, ``val.txt`` and ``test.txt``, and the names in ``labels.txt``.

    A line is a path, a blank and a class number; or a path and the values to be predicted, with tabs between them. Our
    importer gives the same samples back, in their order: where an image could not lie under its key, ``*.keys.jsonl``
    says the key.

    Args:
        dataset: of kind image-classification or image-regression.
        folder: new or empty.

    Raises:
        DataError: where the dataset is of another kind.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    export = Export(dataset, folder, "text_list", ("image-classification", "image-regression"))
    reserved = [f"{split}{suffix}" for split in dataset.splits for suffix in (".txt", ".keys.jsonl")]
    names = FileNames("labels.txt", "classes.txt", *reserved)
    export.write_class_names("labels.txt")
    for split in dataset.splits:
        if dataset.size(split):
            _write_split(export, split, names)
        else:
            export.counts[split] = 0
            export.notes.append(f"The split {split} is empty, and has no list.")
    return export.report()


def _write_split(export: Export, split: str, names: FileNames) -> None:
    keys = KeyWriter(export.folder / f"{split}.keys.jsonl")
    target = export.folder / f"{split}.txt"
    with storage_errors(target), target.open("x", encoding="utf-8") as lines:
        for sample in export.samples(split):
            try:
                content = encoded_part(sample.parts[0], sample.key)
                text = _label_text(sample.label, sample.key)
            except DatapointError as error:
                export.leave_out(sample.key, "unreadable", error.reason)
                continue
            path = names.place(sample.key, content)
            export.write(path, content)
            lines.write(path + text + "\n")
            keys.add(path, sample.key)
            export.counts[split] += 1
    keys.finish()


def _label_text(label: Any, key: str) -> str:
    if isinstance(label, int):
        return f" {label}"
    values = [float(value) for value in label]
    if not values or not all(map(math.isfinite, values)):
        raise DatapointError(key, "its list of values is empty, or has one that is not finite.")
    return "".join(f"\t{value!r}" for value in values)
