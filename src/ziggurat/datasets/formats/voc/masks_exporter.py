"""Export of a segmentation dataset to Pascal VOC: images, ``SegmentationClass`` and ``ImageSets/Segmentation``."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.formats.detection.exporting import TREES, DetectionExport, SampleSource, line_names
from ziggurat.datasets.formats.shared.export_report import ExportReport
from ziggurat.datasets.formats.voc.masks_importer import voc_colours
from ziggurat.errors import DatapointError

__all__ = ["export_voc_masks"]

_PREFIX: Final = "JPEGImages/"
_IGNORED: Final = 255


def export_voc_masks(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind segmentation as Pascal VOC; masks are PNG files with a palette.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind, or the folder is not empty.
        StorageError: where the disk refuses.
    """
    export = DetectionExport(dataset, folder, "voc", "segmentation")
    schema = dataset.schema
    colours = (*schema.colours, *voc_colours(256)[len(schema.colours) :])
    (folder / "SegmentationClass").mkdir()
    for split in dataset.splits:
        stems = []
        for sample in export.samples(split, _PREFIX, without=TREES):
            stem = sample.stem(_PREFIX)
            mask = _numbers(sample.parts[1], sample.key)
            if mask is None:
                export.drop(split, sample.key, "bad-mask", "Its mask has numbers above 255, or is none.")
                continue
            _write_mask(mask, folder / f"SegmentationClass/{stem}.png", colours)
            stems.append(stem)
        export.write(f"ImageSets/Segmentation/{split}.txt", "".join(f"{stem}\n" for stem in stems))
    export.write("classes.txt", "".join(f"{name}\n" for name in line_names(schema.class_names)))
    export.write_keys()
    notes = [] if schema.class_names else ["Classes have no names; our importer will give them those of VOC."]
    if schema.ignore_class != _IGNORED:
        notes.append(f"VOC ignores the number 255, the dataset: {schema.ignore_class}.")
    return export.report(*notes)


def _numbers(part: bytes | str | np.ndarray, key: str) -> np.ndarray | None:
    """Return the class numbers of a stored mask, (H, W) uint8; None where they are larger, or there are none."""
    try:
        mask = part if isinstance(part, np.ndarray) else decode_mask(part if isinstance(part, bytes) else b"", key)
    except DatapointError:
        return None
    return None if not mask.size or mask.max() > _IGNORED else mask.reshape(mask.shape[:2]).astype(np.uint8)


def _write_mask(mask: np.ndarray, path: Path, colours: Sequence[tuple[int, int, int]]) -> None:
    image = Image.fromarray(mask)
    image.putpalette([value for colour in colours for value in colour])
    content = io.BytesIO()
    image.save(content, "PNG")
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.getvalue())
