"""Importer for LabelMe: a JSON file for each image."""

from __future__ import annotations

import base64
import binascii
import math
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.datasets.formats.shared.detection_import import clean_json
from ziggurat.datasets.formats.shared.tool_files import (
    ToolImage,
    ToolImporter,
    ToolObject,
    corners,
    ellipse,
    points_of,
    read_json,
    size_of,
)
from ziggurat.datasets.samples import Problem

__all__ = ["LabelMeImporter"]

_NO_BOX: Final = {
    "point": "they are points",
    "points": "they are points",
    "line": "they are lines",
    "linestrip": "they are lines",
}
_OWN_FIELDS: Final = frozenset(("label", "points", "shape_type", "mask", "imageData"))


class LabelMeImporter(ToolImporter):
    """LabelMe's JSON files, beside their images."""

    name = "labelme"
    title = "LabelMe (JSON)"
    markers = (".json",)
    marks = (rb'"shapes"\s*:', rb'"imagePath"\s*:')
    one_each = True
    keeps_unlisted = True

    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        content = read_json(root / path)
        if not isinstance(content, dict) or not isinstance(content.get("shapes"), list):
            return
        written = content.get("imagePath")
        name = written if isinstance(written, str) else ""
        ending = posixpath.splitext(name)[1]
        beside = posixpath.splitext(posixpath.basename(path))[0] + ending
        yield ToolImage(
            names=tuple(filter(None, (name, beside if ending else ""))),
            objects=tuple(
                _object(shape, f"{path}, shape {number}") for number, shape in enumerate(content["shapes"], 1)
            ),
            size=size_of(content.get("imageWidth"), content.get("imageHeight")),
        )


def _object(shape: Any, where: str) -> ToolObject:
    if not isinstance(shape, dict):
        return ToolObject(name="", where=where)
    label = shape.get("label")
    name = "" if label is None else str(clean_json(label)).strip()
    details = {field: clean_json(value) for field, value in shape.items() if field not in _OWN_FIELDS and value}
    form = shape.get("shape_type") or "polygon"  # the first versions had polygons only
    if form in _NO_BOX:
        return ToolObject(name=name, where=where, lost=_NO_BOX[form])
    points = points_of(shape.get("points")) or ()
    if form == "rectangle" and len(points) == 4:
        return ToolObject(name=name, where=where, box=corners(points), details=details)
    if form == "circle" and len(points) == 4:
        radius = math.hypot(points[2] - points[0], points[3] - points[1])
        outline = ellipse(points[0], points[1], (radius, radius))
        return ToolObject(name=name, where=where, polygons=(outline,), details=details)
    if form == "mask" and len(points) == 4:
        mask = _mask(shape)
        box = corners(points)
        place = None if mask is None else (round(points[0]), round(points[1]), mask)
        return ToolObject(name=name, where=where, mask=place, box=None if place else box, details=details)
    if form in ("polygon", "rectangle", "oriented_rectangle") and len(points) >= 6:
        return ToolObject(name=name, where=where, polygons=(points,), details=details)
    if form in ("polygon", "rectangle", "circle", "mask", "oriented_rectangle"):
        return ToolObject(name=name, where=where)
    return ToolObject(name=name, where=where, lost=f"no task learns from the shape {str(form)[:40]!r} yet")


def _mask(shape: Mapping[str, Any]) -> np.ndarray | None:
    """Return the pixels of a mask, (H, W); None where they cannot be read."""
    try:
        data = np.frombuffer(base64.b64decode(str(shape.get("mask")), validate=True), np.uint8)
        pixels = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE) if data.size else None
    except (binascii.Error, ValueError, cv2.error):
        return None
    return None if pixels is None or not pixels.any() else np.asarray(pixels != 0)
