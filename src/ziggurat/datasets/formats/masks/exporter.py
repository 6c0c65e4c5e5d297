"""Export of a segmentation dataset: images, masks of class numbers, and lists of the pairs."""

from __future__ import annotations

import os
from pathlib import Path

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.shared.exports import Export, ExportReport, FileNames, encoded_part
from ziggurat.datasets.samples import Problem

__all__ = ["export_masks", "pair_line"]


def export_masks(dataset: Dataset, folder: Path) -> ExportReport:
    """Write each image under its key, its mask below ``masks``, and a list of both for each split.

    A line of ``train.txt`` is the path of the image, a tab, the path of the mask, and where the image does not lie
    at its key, a tab and the key. ``classes.txt`` and ``colours.txt`` have a line for each class.

    Args:
        dataset: of kind segmentation.
        folder: new or empty.

    Raises:
        DataError: where the dataset is of another kind.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    export = Export(dataset, folder, "masks", ("segmentation",))
    names = FileNames("masks", "train.txt", "val.txt", "test.txt", "all.txt", "classes.txt", "colours.txt")
    for split in dataset.splits:
        lines: list[str] = []
        for sample in export.samples(split):
            image, mask = (encoded_part(part, sample.key) for part in sample.parts)
            path = names.place(sample.key, image)
            mask_path = f"masks/{os.path.splitext(path)[0]}.png"
            export.write(path, image)
            export.write(mask_path, mask)
            lines.append(pair_line(export, (path, mask_path), sample.key))
            export.counts[split] += 1
        export.write(f"{split or 'all'}.txt", "".join(lines))
    export.write_class_names("classes.txt")
    if dataset.schema.colours:
        colours = dataset.schema.colours
        export.write("colours.txt", "".join(f"{red} {green} {blue}\n" for red, green, blue in colours))
    return export.report()


def pair_line(export: Export, paths: tuple[str, str], key: str) -> str:
    """Return the line of a list for two files; with the key of the sample where that is not the first path."""
    if paths[0] == key:
        return "\t".join(paths) + "\n"
    plain = " ".join(key.split())
    if plain != key:
        reason = f"A line of a list holds no such key, so that it becomes `{plain}`."
        export.problems.append(Problem(key=key, kind="other-key", reason=reason))
    return "\t".join((*paths, plain)) + "\n"
