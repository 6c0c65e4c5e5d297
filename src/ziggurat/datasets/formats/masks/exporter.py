"""Export of a segmentation dataset: images, masks of class numbers, and lists of the pairs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.masks.importer import IGNORED, TABLE
from ziggurat.datasets.formats.masks.values import NO_CLASS, ValueTable
from ziggurat.datasets.formats.shared.exports import Export, ExportReport, FileNames, encoded_part
from ziggurat.datasets.samples import Problem

__all__ = ["export_masks", "pair_line"]


def export_masks(dataset: Dataset, folder: Path) -> ExportReport:
    """Write each image under its key, its mask below ``masks``, and a list of both for each split.

    A line of ``train.txt`` is the path of the image, a tab, the path of the mask, and where the image does not lie
    at its key, a tab and the key. ``classes.txt`` and ``colours.txt`` have a line for each class. Masks get the
    values of their source back; where those are no class numbers, ``classes.json`` has the name of each value.

    Args:
        dataset: of kind segmentation.
        folder: new or empty.

    Raises:
        DataError: where the dataset is of another kind.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    export = Export(dataset, folder, "masks", ("segmentation",))
    names = FileNames(
        "masks", "train.txt", "val.txt", "test.txt", "all.txt", "classes.txt", "classes.json", "colours.txt"
    )
    details = dataset.schema.details
    table, ignored = ValueTable(tuple(details.get(TABLE, ()))), int(details.get(IGNORED, NO_CLASS))
    for split in dataset.splits:
        lines: list[str] = []
        for sample in export.samples(split):
            image = encoded_part(sample.parts[0], sample.key)
            mask = _with_values(sample.parts[1], sample.key, table, ignored)
            path = names.place(sample.key, image)
            mask_path = f"masks/{os.path.splitext(path)[0]}.png"
            export.write(path, image)
            export.write(mask_path, mask)
            lines.append(pair_line(export, (path, mask_path), sample.key))
            export.counts[split] += 1
        export.write(f"{split or 'all'}.txt", "".join(lines))
    export.write_class_names("classes.txt")
    if table.values:
        pairs = zip(map(str, table.values), dataset.schema.class_names, strict=False)
        export.write("classes.json", json.dumps(dict(pairs), ensure_ascii=False, indent=1) + "\n")
        export.notes.append("Masks have the values of their source; `classes.json` has the name of each.")
    if dataset.schema.colours:
        colours = dataset.schema.colours
        export.write("colours.txt", "".join(f"{red} {green} {blue}\n" for red, green, blue in colours))
    return export.report()


def _with_values(part: Any, key: str, table: ValueTable, ignored: int) -> bytes:
    """Return a mask as PNG, with the values that it had in its source."""
    if not table.values:
        return encoded_part(part, key)
    numbers = part if isinstance(part, np.ndarray) else decode_mask(part, key)
    return encoded_part(table.original(numbers, ignored), key)


def pair_line(export: Export, paths: tuple[str, str], key: str) -> str:
    """Return the line of a list for two files; with the key of the sample where that is not the first path."""
    if paths[0] == key:
        return "\t".join(paths) + "\n"
    plain = " ".join(key.split())
    if plain != key:
        reason = f"A line of a list holds no such key, so that it becomes `{plain}`."
        export.problems.append(Problem(key=key, kind="other-key", reason=reason))
    return "\t".join((*paths, plain)) + "\n"
