"""Importer for CVAT for images 1.1: XML files that name images and the shapes in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse

from ziggurat.datasets.formats.shared.detection_import import plain_number, split_within
from ziggurat.datasets.formats.shared.looks import file_ends, files_with
from ziggurat.datasets.formats.shared.tool_files import (
    ToolImage,
    ToolImporter,
    ToolObject,
    ellipse,
    points_of,
    size_of,
    turned_box,
)
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = ["CvatImporter"]

_LOST: Final = {
    "polyline": "they are lines",
    "points": "they are points",
    "cuboid": "no task learns from cuboids yet",
    "skeleton": "no task learns from skeletons yet",
    "tag": "they are tags of whole images",
}
_LARGEST_MASK_PX: Final = 1 << 28


class CvatImporter(ToolImporter):
    """CVAT's ``annotations.xml``, beside the images or above their folder."""

    name = "cvat"
    title = "CVAT for images 1.1 (XML)"
    markers = (".xml",)
    marks = (rb"<annotations[\s>]", rb"<image\s")

    def obstacle(self, source: Path) -> str:
        """Say which file has tracks of a video."""
        for path in files_with(source, self.markers):
            if re.search(rb"<annotations[\s>].*<track\s", file_ends(source / path), re.DOTALL):
                return f"`{path}` is of CVAT for video: no task learns from tracks; export it as CVAT for images 1.1"
        return ""

    def class_names(self, root: Path, paths: Sequence[str]) -> list[str]:
        """Return the labels of the task, without those of parts and of whole images."""
        return [name for path in paths for name in _labels(root / path)]

    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        for element in _elements(root / path, ("image", "track")):
            if element.tag == "track":
                yield _track(path, element)
                continue
            shapes = [_object(each, number) for number, each in enumerate(element, 1) if each.tag != "attribute"]
            yield ToolImage(
                names=(element.get("name") or "",),
                objects=tuple(shapes),
                size=size_of(element.get("width"), element.get("height")),
                split=split_within(element.get("subset") or ""),
            )


def _elements(path: Path, tags: Sequence[str]) -> Iterator[Element]:
    """Yield the elements of some tags below the outermost one; each is gone when the next is asked for."""
    depth = 0
    outermost: Element | None = None
    try:
        with path.open("rb") as file:
            for event, element in iterparse(file, events=("start", "end"), forbid_external=True):
                depth += 1 if event == "start" else -1
                if event == "start" and depth == 1:
                    outermost = element
                if event == "end" and depth == 1:
                    if element.tag in tags:
                        yield element
                    if outermost is not None:
                        outermost.clear()
    except OSError as error:
        raise DataError(f"`{path.name}` cannot be read: {error.strerror}.") from None
    except DefusedXmlException as error:
        kind = type(error).__name__
        raise DataError(f"`{path.name}` has XML entities ({kind}), which no file of CVAT has.") from None
    except (ParseError, ValueError, LookupError) as error:
        raise DataError(f"`{path.name}` is no XML of CVAT: {str(error).rstrip('.')}.") from None


def _labels(path: Path) -> Iterator[str]:
    try:
        for meta in _elements(path, ("meta",)):
            for label in meta.iter("label"):
                name, kind = label.findtext("name"), label.findtext("type")
                if name and kind not in ("tag", "skeleton") and not label.findtext("parent"):
                    yield name
            return
    except DataError:
        return


def _track(path: str, element: Element) -> Problem:
    name = element.get("label") or ""
    count = sum(each.get("outside") != "1" for each in element if each.tag in ("box", "polygon", "mask", "ellipse"))
    why = "they are tracks of a video"
    reason = f"{path}, track {element.get('id')} has {count} shapes in frames of a video."
    return Problem(key=path, kind="no-box", reason=reason, objects=count, why=why, class_name=name)


def _object(element: Element, number: int) -> ToolObject:
    form, name = str(element.tag), (element.get("label") or "").strip()
    where = f"{form} {number}"
    if form in _LOST:
        return ToolObject(name=name, where=where, lost=_LOST[form])
    details = {
        field: element.get(field) for field in ("occluded", "z_order", "group_id", "source") if element.get(field)
    }
    attributes = {each.get("name") or "": each.text or "" for each in element.iter("attribute")}
    details = {**details, "attributes": attributes} if attributes else details
    turned = plain_number(element.get("rotation")) or 0.0
    if form == "box":
        sides = [plain_number(element.get(side)) for side in ("xtl", "ytl", "xbr", "ybr")]
        numbers = [each for each in sides if each is not None]
        if len(numbers) < 4:
            return ToolObject(name=name, where=where)
        box = (numbers[0], numbers[1], numbers[2], numbers[3])
        if not turned:
            return ToolObject(name=name, where=where, box=box, details=details)
        outline = turned_box(box, turned)
        return ToolObject(name=name, where=where, polygons=(outline,), note="a rotated box", details=details)
    if form == "polygon":
        points = points_of([point.split(",") for point in (element.get("points") or "").split(";")]) or ()
        return ToolObject(name=name, where=where, polygons=(points,) if len(points) >= 6 else (), details=details)
    if form == "ellipse":
        values = [plain_number(element.get(side)) for side in ("cx", "cy", "rx", "ry")]
        numbers = [each for each in values if each is not None and abs(each) < 1e9]
        if len(numbers) < 4:
            return ToolObject(name=name, where=where)
        outline = ellipse(numbers[0], numbers[1], (numbers[2], numbers[3]), turned)
        return ToolObject(name=name, where=where, polygons=(outline,), details=details)
    if form == "mask":
        return ToolObject(name=name, where=where, mask=_mask(element), details=details)
    return ToolObject(name=name, where=where, lost=f"no task learns from <{form[:40]}> yet")


def _mask(element: Element) -> tuple[int, int, np.ndarray] | None:
    """Return where a mask is and its pixels, row by row: lengths of runs, the first outside of it."""
    try:
        left, top, width, height = (int(float(element.get(side) or "")) for side in ("left", "top", "width", "height"))
        lengths = [int(each) for each in (element.get("rle") or "").split(",")]
    except (ValueError, OverflowError):
        return None
    fits = 0 < width * height <= _LARGEST_MASK_PX and min(lengths) >= 0 and sum(lengths) == width * height
    if not fits or max(abs(left), abs(top)) > 1e9:
        return None
    pixels = np.repeat(np.arange(len(lengths)) % 2, lengths).astype(bool)
    return left, top, pixels.reshape(height, width)
