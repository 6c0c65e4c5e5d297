"""Importer for CreateML: JSON files that list images with the middle and the size of each box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.shared.detection_import import clean_json, plain_number
from ziggurat.datasets.formats.shared.tool_files import ToolImage, ToolImporter, ToolObject, read_json
from ziggurat.datasets.samples import Problem

__all__ = ["CreateMLImporter"]


class CreateMLImporter(ToolImporter):
    """CreateML's JSON file in each folder of images, such as ``_annotations.createml.json``."""

    name = "createml"
    title = "CreateML (JSON)"
    markers = (".json",)
    marks = (
        rb"\A\s*(\xef\xbb\xbf)?\s*\[",
        rb'"image(filename)?"\s*:',
        rb'"annotations?"\s*:',
        rb'"coordinates"\s*:|\{[^{}]*"annotations?"\s*:\s*\[\s*\][^{}]*\}',
    )

    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        content = read_json(root / path)
        for number, entry in enumerate(content if isinstance(content, list) else (), 1):
            named = isinstance(entry, dict) and (entry.get("image") or entry.get("imagefilename"))
            written = entry.get("annotations", entry.get("annotation", [])) if isinstance(entry, dict) else []
            boxes = written if isinstance(written, list) else []
            if not isinstance(named, str):
                reason = f"Entry {number} names no image."
                yield Problem(key=path, kind="bad-line", reason=reason, left_out=True, objects=len(boxes))
                continue
            objects = tuple(_object(each, f"annotation {place}") for place, each in enumerate(boxes, 1))
            yield ToolImage(names=(named,), objects=objects)


def _object(each: Any, where: str) -> ToolObject:
    if not isinstance(each, dict):
        return ToolObject(name="", where=where)
    label, place = each.get("label"), each.get("coordinates")
    name = "" if label is None else str(clean_json(label)).strip()
    values = (
        [plain_number(place.get(side)) for side in ("x", "y", "width", "height")] if isinstance(place, dict) else []
    )
    numbers = [value for value in values if value is not None]
    if len(numbers) < 4:
        return ToolObject(name=name, where=where)
    x, y, width, height = numbers
    return ToolObject(name=name, where=where, box=(x - width / 2, y - height / 2, x + width / 2, y + height / 2))
