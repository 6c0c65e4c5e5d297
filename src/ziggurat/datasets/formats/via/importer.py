"""Importer for the VGG Image Annotator 1 and 2: JSON files of regions or projects, and CSV files of regions."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import clean_json, plain_number
from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import encoding_of
from ziggurat.datasets.formats.shared.tool_files import (
    ToolImage,
    ToolImporter,
    ToolObject,
    ellipse,
    points_of,
    read_json,
)
from ziggurat.datasets.importer import ImporterOption
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = ["ViaImporter"]

_LOST: Final = {"point": "they are points", "polyline": "they are lines"}
_CLASS_NAMES: Final = ("class", "label", "name", "category", "type", "object")
_SIDES: Final = {
    "rect": ("x", "y", "width", "height"),
    "circle": ("cx", "cy", "r"),
    "ellipse": ("cx", "cy", "rx", "ry"),
}


class ViaImporter(ToolImporter):
    """VIA's ``via_region_data.json``, ``via_project.json`` or ``via_export_csv.csv``."""

    name = "via"
    title = "VGG Image Annotator (JSON, CSV)"
    markers = (".json", ".csv")
    marks = (
        rb'region_?attributes|_via_img_metadata|"regions"\s*:',
        rb'shape_attributes|_via_settings|"file_attributes"\s*:|"filename"\s*:',
    )
    options = (
        *ToolImporter.options,
        ImporterOption(name="attribute", type=str, default="", help="Attribute of a region with its class."),
        ENCODING_OPTION,
    )

    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        file = root / path
        entries = list(_from_csv(file, options["encoding"]) if path.lower().endswith(".csv") else _from_json(file))
        attribute = options["attribute"] or _attribute(path, entries)
        for name, regions in entries:
            if not isinstance(name, str) or not name:
                reason = f"{path} has an entry that names no image."
                yield Problem(key=path, kind="bad-line", reason=reason, left_out=True, objects=len(regions))
                continue
            objects = (_object(region, f"region {number}", attribute) for number, region in enumerate(regions, 1))
            yield ToolImage(names=(name,), objects=tuple(objects))


def _from_json(path: Path) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the name of each image, and its regions."""
    content = read_json(path)
    if isinstance(content, dict):
        content = content.get("_via_img_metadata", content)
    for entry in content.values() if isinstance(content, dict) else ():
        if isinstance(entry, dict) and "filename" in entry:
            regions = entry.get("regions") or []
            regions = list(regions.values()) if isinstance(regions, dict) else regions  # of the first version
            yield entry["filename"], regions if isinstance(regions, list) else []


def _from_csv(path: Path, encoding: str) -> Iterator[tuple[Any, list[Any]]]:
    try:
        with path.open(encoding=encoding_of(path, encoding), newline="") as file:
            for row in csv.DictReader(file):
                name = row.get("filename") or row.get("#filename")
                texts = row.get("region_shape_attributes") or "", row.get("region_attributes") or ""
                shape, attributes = map(_parsed, texts)
                region = {"shape_attributes": shape, "region_attributes": attributes}
                yield name, [region] if texts[0].strip() not in ("", "{}") else []
    except (OSError, csv.Error, UnicodeError) as error:
        raise DataError(f"`{path.name}` cannot be read: {error}.") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _attributes(region: Any) -> Mapping[str, Any]:
    found = region.get("region_attributes") if isinstance(region, dict) else None
    return found if isinstance(found, dict) else {}


def _attribute(path: str, entries: Sequence[tuple[Any, list[Any]]]) -> str:
    """Return the attribute that holds the class: the only one, or the one that is called so."""
    counts = Counter(name for _, regions in entries for region in regions for name in _attributes(region))
    usual = [name for word in _CLASS_NAMES for name in counts if name.strip().lower() == word]
    if usual or len(counts) < 2:
        return usual[0] if usual else next(iter(counts), "")
    names = ", ".join(sorted(counts))
    raise DataError(
        f"The class of the regions in `{path}` is in none of their attributes: {names[:300]}.",
        advice=f"Set the option `attribute` to one of {names[:300]}.",
        details={"field": "options.attribute"},
    )


def _object(region: Any, where: str, attribute: str) -> ToolObject:
    shape = region.get("shape_attributes") if isinstance(region, dict) else None
    name = _name(_attributes(region).get(attribute))
    if not isinstance(shape, dict):
        return ToolObject(name=name, where=where)
    form = shape.get("name")
    others = {field: clean_json(value) for field, value in _attributes(region).items() if field != attribute}
    details = {"attributes": others} if others else {}
    if form == "polygon":
        xs, ys = shape.get("all_points_x"), shape.get("all_points_y")
        same = isinstance(xs, list) and isinstance(ys, list) and len(xs) == len(ys) >= 3
        points = points_of(list(zip(xs, ys, strict=True))) if same else None  # type: ignore[arg-type]
        return ToolObject(name=name, where=where, polygons=(points,) if points else (), details=details)
    if form not in _SIDES:
        lost = _LOST.get(str(form)) or f"no task learns from the shape {str(form)[:40]!r} yet"
        return ToolObject(name=name, where=where, lost=lost)
    values = [plain_number(shape.get(side)) for side in _SIDES[form]]
    numbers = [value for value in values if value is not None and abs(value) < 1e9]
    if len(numbers) < len(values):
        return ToolObject(name=name, where=where)
    if form == "rect":
        left, top, width, height = numbers
        return ToolObject(name=name, where=where, box=(left, top, left + width, top + height), details=details)
    turned = math.degrees(plain_number(shape.get("theta")) or 0.0) if form == "ellipse" else 0.0
    outline = ellipse(numbers[0], numbers[1], (numbers[2], numbers[-1]), turned)
    return ToolObject(name=name, where=where, polygons=(outline,), details=details)


def _name(value: Any) -> str:
    """Return the class that an attribute says: a text, or the only choice of several."""
    if isinstance(value, dict):
        chosen = [name for name, mark in value.items() if mark]
        value = chosen[0] if len(chosen) == 1 else None
    return "" if value is None else str(clean_json(value)).strip()
