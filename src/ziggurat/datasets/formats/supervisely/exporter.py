"""Export to Supervisely: a project whose datasets are the splits."""

from __future__ import annotations

import base64
import posixpath
import zlib
from pathlib import Path
from typing import Any

import cv2

from ziggurat.datasets.formats.shared.detection_export import SampleSource
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.datasets.formats.shared.tool_export import Drawn, Holds, ToolExport

__all__ = ["export_supervisely"]


def export_supervisely(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind detection as a project of Supervisely: boxes, polygons and bitmaps.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = ToolExport(dataset, folder, "supervisely", Holds(outlines=True, masks=True, classes=True))
    colors = (f"#{(number * 0x3D5A7 + 0x2060C0) % 0x1000000:06X}" for number in range(len(export.names)))
    classes = [
        {"title": name, "shape": "any", "color": color} for name, color in zip(export.names, colors, strict=True)
    ]
    export.write_json("meta.json", {"classes": classes, "tags": []})
    for split in dataset.splits:
        for sample in export.samples(split, f"{split}/img/", flat=True):
            content = {
                "description": "",
                "tags": [],
                "size": {"height": sample.size[1], "width": sample.size[0]},
                "objects": [_object(each) for each in export.drawn(sample)],
            }
            export.write_json(f"{split}/ann/{posixpath.basename(sample.path)}.json", content)
    return export.finish()


def _object(each: Drawn) -> dict[str, Any]:
    found = {"classTitle": each.name, "description": "", "tags": []}
    if each.mask is not None:
        left, top, pixels = each.mask
        encoded = zlib.compress(cv2.imencode(".png", (pixels != 0).astype("uint8") * 255)[1].tobytes())
        bitmap = {"data": base64.b64encode(encoded).decode(), "origin": [left, top]}
        return {**found, "geometryType": "bitmap", "bitmap": bitmap}
    left, top, right, bottom = each.source.box
    corners = [[left, top], [right, bottom]]
    pairs = [list(pair) for pair in zip(each.outline[::2], each.outline[1::2], strict=True)]
    points = {"exterior": pairs or corners, "interior": []}
    return {**found, "geometryType": "polygon" if pairs else "rectangle", "points": points}
