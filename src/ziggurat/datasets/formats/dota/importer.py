"""Importer for DOTA: a text file of corners for each image, as of aerial images."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import plain_number, text_lines
from ziggurat.datasets.formats.shared.looks import file_ends
from ziggurat.datasets.formats.shared.tool_files import ToolImage, ToolImporter, ToolObject
from ziggurat.datasets.samples import Problem

__all__ = ["DotaImporter"]

_NUMBER: Final = rb"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?"
_LINE: Final = rb"(?im)^[ \t]*(?:" + _NUMBER + rb"[ \t,]+){8}[^\s\d,][^\s,]*[ \t,]+[0-2][ \t]*\r?$"
_HEADER: Final = ("imagesource:", "gsd:")
_COLUMNS: Final = 10
_FOLDERS: Final = ("../images", "../image", "../JPEGImages", "../PNGImages", "")
_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")


class DotaImporter(ToolImporter):
    """DOTA's ``labelTxt/P0001.txt`` for ``images/P0001.png``: four corners, a class and the difficulty a line."""

    name = "dota"
    title = "DOTA (text)"
    markers = (".txt",)
    marks = (_LINE,)
    one_each = True

    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        names = _names(root, path)
        lines = [(number, line) for number, line in enumerate(text_lines(root / path), 1) if line.strip()]
        rows = [(number, line) for number, line in lines if not line.strip().lower().startswith(_HEADER)]
        is_label_file = bool(rows) and re.search(_LINE, file_ends(root / path)) is not None
        if not is_label_file and (rows or not _is_among_labels(path) or len(names) > 1):
            return  # another text; an empty one beside label files is of an image without objects
        yield ToolImage(names=names, objects=tuple(_object(line, f"line {number}") for number, line in rows))


def _names(root: Path, path: str) -> tuple[str, ...]:
    """Return the name of the image that is there, else all that it may have; relative to the label file."""
    folder, stem = posixpath.dirname(path), posixpath.splitext(posixpath.basename(path))[0]
    names = tuple(posixpath.join(place, f"{stem}{ending}") for place in _FOLDERS for ending in _ENDINGS)
    there = next((name for name in names if (root / folder / name).is_file()), "")
    return (there,) if there else names


def _is_among_labels(path: str) -> bool:
    return "label" in posixpath.basename(posixpath.dirname(path)).lower()


def _object(line: str, where: str) -> ToolObject:
    cells = [cell for cell in re.split(r"[\s,]+", line.strip()) if cell]
    numbers = [plain_number(cell) for cell in cells[:8]]
    points = tuple(number for number in numbers if number is not None and abs(number) < 1e9)
    if len(points) < 8 or not _COLUMNS - 1 <= len(cells) <= _COLUMNS:
        return ToolObject(name=cells[8] if len(cells) > 8 else "", where=where, lost="their line cannot be read")
    is_upright = len({*points[::2]}) == 2 and len({*points[1::2]}) == 2
    return ToolObject(
        name=cells[8],
        where=where,
        polygons=(points,),
        note="" if is_upright else "a rotated box",
        difficult=len(cells) == _COLUMNS and cells[9] != "0",
    )
