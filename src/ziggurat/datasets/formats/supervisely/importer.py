"""Importer for Supervisely: ``ann/x.jpg.json`` for each ``img/x.jpg``, and ``meta.json`` with the classes."""

from __future__ import annotations

import base64
import binascii
import posixpath
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.datasets.formats.shared.detection_import import clean_json, plain_number
from ziggurat.datasets.formats.shared.tool_files import (
    ToolImage,
    ToolImporter,
    ToolObject,
    corners,
    points_of,
    read_json,
    size_of,
)
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = ["SuperviselyImporter"]

_LOST: Final = {
    "point": "they are points",
    "line": "they are lines",
    "polyline": "they are lines",
    "graph": "no task learns from key points yet",
    "cuboid": "no task learns from cuboids yet",
    "any": "their shape is not said",
}
_LARGEST_MASK_BYTES: Final = 1 << 28
_LARGEST_SIDE_PX: Final = 1 << 15


class SuperviselyImporter(ToolImporter):
    """A project of Supervisely, or one of its datasets."""

    name = "supervisely"
    title = "Supervisely (JSON)"
    markers = (".json",)
    marks = (rb'"objects"\s*:', rb'"size"\s*:')
    one_each = True

    def class_names(self, root: Path, paths: Sequence[str]) -> list[str]:
        """Return the classes of ``meta.json``."""
        try:
            content = read_json(root / "meta.json")
        except DataError:
            return []
        entries = content.get("classes") if isinstance(content, dict) else None
        entries = entries if isinstance(entries, list) else []
        drawn = (each for each in entries if isinstance(each, dict) and each.get("shape") not in _LOST.keys() - {"any"})
        return [str(clean_json(each["title"])) for each in drawn if each.get("title")]

    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        if posixpath.basename(posixpath.dirname(path)).lower() != "ann":
            return
        content = read_json(root / path)
        if not isinstance(content, dict) or not isinstance(content.get("objects"), list):
            return
        size = content.get("size")
        name = posixpath.splitext(posixpath.basename(path))[0]
        yield ToolImage(
            names=(f"../img/{name}", name),
            objects=tuple(_object(each, f"object {number}") for number, each in enumerate(content["objects"], 1)),
            size=size_of(size.get("width"), size.get("height")) if isinstance(size, dict) else None,
        )


def _object(each: Any, where: str) -> ToolObject:
    if not isinstance(each, dict):
        return ToolObject(name="", where=where)
    title, form = each.get("classTitle"), each.get("geometryType")
    name = "" if title is None else str(clean_json(title)).strip()
    written = each.get("points")
    places: Mapping[str, Any] = written if isinstance(written, dict) else {}
    if form is None:
        form = "bitmap" if each.get("bitmap") else "polygon"
    details = {field: clean_json(each[field]) for field in ("id", "tags", "description") if each.get(field)}
    outer = points_of(places.get("exterior")) or ()
    if form == "rectangle":
        return ToolObject(name=name, where=where, box=corners(outer), details=details)
    if form == "polygon":
        holes = places.get("interior")
        inner = [hole for hole in map(points_of, holes if isinstance(holes, list) else ()) if hole and len(hole) >= 6]
        outlines = (outer,) if len(outer) >= 6 else ()
        found = ToolObject(name=name, where=where, polygons=outlines, details=details)
        mask = _with_holes(outer, inner) if inner and outlines else None
        if mask is None:
            return found
        return ToolObject(name=name, where=where, box=found.limits, mask=mask, details=details)
    if form == "bitmap":
        return ToolObject(name=name, where=where, mask=_bitmap(each.get("bitmap")), details=details)
    lost = _LOST.get(str(form)) or f"no task learns from the shape {str(form)[:40]!r} yet"
    return ToolObject(name=name, where=where, lost=lost)


def _with_holes(outer: Sequence[float], inner: Sequence[Sequence[float]]) -> tuple[int, int, np.ndarray] | None:
    """Return the pixels between an outline and those of holes; an outline alone has none."""
    points = np.reshape(outer, (-1, 2))
    low, high = np.floor(points.min(axis=0)).astype(int), np.ceil(points.max(axis=0)).astype(int) + 1
    width, height = (high - low).tolist()
    if max(width, height) > _LARGEST_SIDE_PX:
        return None
    pixels = np.zeros((height, width), np.uint8)
    cv2.fillPoly(pixels, [(points - low).round().astype(np.int32)], 1)
    for hole in inner:
        cv2.fillPoly(pixels, [(np.reshape(hole, (-1, 2)) - low).round().astype(np.int32)], 0)
    return int(low[0]), int(low[1]), pixels.astype(bool)


def _bitmap(value: Any) -> tuple[int, int, np.ndarray] | None:
    """Return where a bitmap is and its pixels; None where it cannot be read."""
    origin = value.get("origin") if isinstance(value, dict) else None
    numbers = [plain_number(each) for each in origin] if isinstance(origin, list) else []
    left_top = [int(each) for each in numbers if each is not None and abs(each) < 1e9]
    if len(left_top) != 2:
        return None
    try:
        decoder = zlib.decompressobj()
        data = decoder.decompress(base64.b64decode(str(value.get("data"))), _LARGEST_MASK_BYTES)
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED) if data else None
    except (binascii.Error, zlib.error, ValueError, cv2.error):
        return None
    if pixels is None:
        return None
    flat = pixels if pixels.ndim == 2 else pixels[..., 3] if pixels.shape[2] == 4 else pixels.max(axis=2)
    return left_top[0], left_top[1], np.asarray(flat != 0)
