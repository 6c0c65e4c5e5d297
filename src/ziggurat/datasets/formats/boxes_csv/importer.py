"""Importer for tables of boxes: one box a line, as TensorFlow's object detection and Open Images have them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import plain_number, split_within
from ziggurat.datasets.formats.shared.folder_walk import has_image_name
from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import encoding_of, encoding_problems, head_lines, lines_of
from ziggurat.datasets.formats.shared.tool_files import ToolImage, ToolImporter, ToolObject, size_of
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = ["BoxesCsvImporter"]

_COLUMNS: Final = {
    "image": ("filename", "imageid", "image", "imagename", "imagepath", "imgpath", "imgname", "img", "file", "path"),
    "name": ("class", "labelname", "classname", "label", "category", "categoryname", "name"),
    "left": ("xmin", "x1", "left", "boxxmin", "bboxxmin", "bboxx1"),
    "top": ("ymin", "y1", "top", "boxymin", "bboxymin", "bboxy1"),
    "right": ("xmax", "x2", "right", "boxxmax", "bboxxmax", "bboxx2"),
    "bottom": ("ymax", "y2", "bottom", "boxymax", "bboxymax", "bboxy2"),
    "width": ("width", "imagewidth", "imgwidth"),
    "height": ("height", "imageheight", "imgheight"),
    "split": ("split", "set", "subset"),
    "crowd": ("isgroupof",),
    "difficult": ("difficult",),
}
"""What is in a column → what it may be called, the usual first; case, blanks, ``_`` and ``-`` are nothing."""
_NEEDED: Final = ("image", "name", "left", "top", "right", "bottom")
_SIDES: Final = ("left", "top", "right", "bottom")
_OTHER: Final = ("width", "height", "split", "crowd", "difficult")
_DELIMITERS: Final = (",", ";", "\t")
_DESCRIPTIONS: Final = "class-descriptions*.csv"
_LARGEST_SHARE: Final = 1.5  # boxes may leave the image; no box in pixels ends at the first one
_ENDINGS: Final = (".jpg", ".png", ".jpeg")


@dataclass(frozen=True)
class _Header:
    """Columns of a table: what is in it → its number."""

    columns: Mapping[str, int]
    names: Sequence[str]
    delimiter: str

    @classmethod
    def of(cls, path: Path, encoding: str = "") -> _Header | None:
        """Return the columns of a file, None where one that is needed is not there."""
        lines = [line for line in head_lines(path, encoding) if line.strip()]
        for delimiter in _DELIMITERS if lines else ():
            names = _cells(lines[0].rstrip("\r\n").lstrip("\ufeff"), delimiter) or []
            plain = [re.sub(r"[\W_]", "", name).lower() for name in names]
            found = {
                what: next((plain.index(each) for each in each_s if each in plain), -1)
                for what, each_s in _COLUMNS.items()
            }
            if all(found[what] >= 0 for what in _NEEDED):
                return cls({what: number for what, number in found.items() if number >= 0}, names, delimiter)
        return None


class BoxesCsvImporter(ToolImporter):
    """CSV files with one box a line: ``filename,width,height,class,xmin,ymin,xmax,ymax`` and their like."""

    name = "boxes_csv"
    title = "Table of boxes (CSV of TensorFlow, Open Images)"
    markers = (".csv", ".tsv")
    keeps_unlisted = True
    options = (*ToolImporter.options, ENCODING_OPTION)

    def has_form(self, path: Path) -> bool:
        return _Header.of(path) is not None

    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        encoding = encoding_of(root / path, options["encoding"])
        yield from encoding_problems(path, encoding, options["encoding"])
        header = _Header.of(root / path, options["encoding"])
        if header is None:
            return
        shares = _are_shares(root / path, header, encoding)
        described = _descriptions(root)
        for number, cells in _rows(root / path, header, encoding):
            if cells is None:
                reason = f"{path}, line {number} has another number of cells than the header."
                yield Problem(key=path, kind="bad-line", reason=reason, objects=1)
                continue
            values = {what: cells[column].strip() for what, column in header.columns.items()}
            if not values["image"]:
                reason = f"{path}, line {number} names no image."
                yield Problem(key=path, kind="bad-line", reason=reason, objects=1, class_name=values["name"])
                continue
            yield ToolImage(
                names=_names(values["image"]),
                objects=_objects(values, f"{path}, line {number}", described),
                size=size_of(values.get("width"), values.get("height")),
                split=split_within(values.get("split", "")),
                shares=shares,
            )


def _objects(values: Mapping[str, str], where: str, described: Mapping[str, str]) -> tuple[ToolObject, ...]:
    if not any(values[what] for what in _NEEDED[1:]):
        return ()  # an image without boxes
    numbers = [number for side in _SIDES if (number := plain_number(values[side])) is not None]
    box = (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None
    flags = {what: values.get(what, "") not in ("", "0", "-1") for what in ("crowd", "difficult")}
    name = described.get(values["name"], values["name"])
    return (ToolObject(name=name, where=where, box=box, crowd=flags["crowd"], difficult=flags["difficult"]),)


def _names(name: str) -> tuple[str, ...]:
    return (name,) if has_image_name(name) else (*(f"{name}{ending}" for ending in _ENDINGS), name)


def _rows(path: Path, header: _Header, encoding: str) -> Iterator[tuple[int, list[str] | None]]:
    """Yield (number of the line, its cells) behind the header; None for another number of cells."""
    lines = lines_of(path, encoding)
    next(lines, None)
    for line in lines:
        cells = _cells(line.text, header.delimiter)
        yield line.number, cells if cells is not None and len(cells) == len(header.names) else None


def _cells(line: str, delimiter: str) -> list[str] | None:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), None)
    except csv.Error:
        return None


def _are_shares(path: Path, header: _Header, encoding: str) -> bool:
    """Tell whether all numbers are shares of the image's size: none is far beyond 1, and some are no whole ones."""
    whole = True
    for _, cells in _rows(path, header, encoding):
        for number in (plain_number(cells[header.columns[side]]) for side in _SIDES) if cells else ():
            if number is not None and abs(number) > _LARGEST_SHARE:
                return False
            whole = whole and (number is None or number.is_integer())
    return not whole


def _descriptions(root: Path) -> dict[str, str]:
    """Return Open Images' class ids and their names, where their file is there."""
    found: dict[str, str] = {}
    for path in sorted({*root.glob(_DESCRIPTIONS), *root.glob(f"*/{_DESCRIPTIONS}")}):
        try:
            rows = [_cells(line.text, ",") for line in lines_of(path)]
        except DataError:
            continue
        found.update((row[0].strip(), row[1].strip()) for row in rows if row and len(row) == 2)
    return found
