"""Export to LabelMe: a JSON file beside each image, in folders of the splits."""

from __future__ import annotations

import base64
import posixpath
from pathlib import Path
from typing import Any

import cv2

from ziggurat.datasets.formats.shared.detection_export import SampleSource
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.datasets.formats.shared.tool_export import Drawn, Holds, ToolExport

__all__ = ["export_labelme"]

_VERSION = "5.0.0"


def export_labelme(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind detection for LabelMe: boxes, polygons and masks.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = ToolExport(dataset, folder, "labelme", Holds(outlines=True, masks=True))
    for split in dataset.splits:
        for sample in export.samples(split, f"{split}/"):
            content = {
                "version": _VERSION,
                "flags": {},
                "shapes": [_shape(each) for each in export.drawn(sample)],
                "imagePath": posixpath.basename(sample.path),
                "imageData": None,
                "imageHeight": sample.size[1],
                "imageWidth": sample.size[0],
            }
            export.write_json(f"{sample.stem('')}.json", content)
    return export.finish()


def _shape(each: Drawn) -> dict[str, Any]:
    left, top, right, bottom = each.source.box
    shape = {"label": each.name, "group_id": None, "flags": {}}
    if each.mask is not None:
        left, top, pixels = each.mask
        encoded = base64.b64encode(cv2.imencode(".png", (pixels != 0).astype("uint8") * 255)[1].tobytes()).decode()
        corner = [left + pixels.shape[1] - 1, top + pixels.shape[0] - 1]  # the last pixel, not the end
        return {**shape, "points": [[left, top], corner], "shape_type": "mask", "mask": encoded}
    if each.outline:
        pairs = [list(pair) for pair in zip(each.outline[::2], each.outline[1::2], strict=True)]
        return {**shape, "points": pairs, "shape_type": "polygon"}
    return {**shape, "points": [[left, top], [right, bottom]], "shape_type": "rectangle"}
