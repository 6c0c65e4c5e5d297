"""Export of input and target images for image-to-image tasks, with lists of the pairs."""

from __future__ import annotations

import os
from pathlib import Path

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.masks.exporter import pair_line
from ziggurat.datasets.formats.shared.exports import Export, ExportReport, FileNames, encoded_part, suffix_of

__all__ = ["export_image_pairs"]


def export_image_pairs(dataset: Dataset, folder: Path) -> ExportReport:
    """Write each image under its key, its target below ``targets``, and a list of both for each split.

    Where a dataset has no targets, because each image is its own, the lists name each image twice.

    Args:
        dataset: of kind image-to-image.
        folder: new or empty.

    Raises:
        DataError: where the dataset is of another kind.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    export = Export(dataset, folder, "image_pairs", ("image-to-image",))
    names = FileNames("targets", "train.txt", "val.txt", "test.txt", "all.txt")
    for split in dataset.splits:
        lines: list[str] = []
        for sample in export.samples(split):
            image, *others = (encoded_part(part, sample.key) for part in sample.parts)
            path = names.place(sample.key, image)
            export.write(path, image)
            target_path = path
            for target in others:
                target_path = f"targets/{os.path.splitext(path)[0]}{suffix_of(target)}"
                export.write(target_path, target)
            lines.append(pair_line(export, (path, target_path), sample.key))
            export.counts[split] += 1
        export.write(f"{split or 'all'}.txt", "".join(lines))
    return export.report()
