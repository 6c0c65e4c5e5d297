"""Folder layout of KITTI datasets, and a parser for the lines of label files."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_files import folders_below, some_files, split_of, text_lines
from ziggurat.errors import DataError

__all__ = ["KittiFolder", "KittiLine", "kitti_folders", "parse_line", "unlabelled_folders"]

_PICTURES: Final = ("image_2", "images", "image", "jpegimages", "imgs", "img")
_COLUMNS: Final = 15


@dataclass(frozen=True, kw_only=True)
class KittiFolder:
    """Images and their labels.

    Args:
        pictures: folder, below the source.
        labels: folder, below the source.
        split: that its name means, or empty.
        sure: whether the folder has KITTI's own name.
    """

    pictures: str
    labels: str
    split: str
    sure: bool = False


@dataclass(frozen=True, kw_only=True)
class KittiLine:
    """One line of a label file.

    Args:
        type: as it is written.
        box: (left, top, right, bottom) in pixels.
        details: the other columns, by name; dimensions are height, width and length in metres, location is x, y and z
            in metres in the camera's coordinates, angles are in radians.
    """

    type: str
    box: tuple[float, float, float, float]
    details: dict[str, Any]


def kitti_folders(root: Path, labels: str = "", images: str = "") -> list[KittiFolder]:
    """Return the KITTI folders of a source down to two folders deep, in order.

    Args:
        root: the source.
        labels: name of the folders with labels; empty for those that begin with ``label``.
        images: name of the folders with images; empty for the usual names.
    """
    every = folders_below(root, 3)
    found = []
    for path in every:
        folder, name = posixpath.split(path)
        fits = name == labels or path == labels if labels else name.lower().startswith("label")
        lines_fit = _has_kitti_lines(root / path, any_class=name == "label_2") if path and fits else False
        if not (lines_fit or (lines_fit is None and name == "label_2")):
            continue
        pictures = _pictures_beside(every, folder, images)
        if pictures is not None:
            split = split_of(posixpath.basename(folder))
            sure = name == "label_2"
            found.append(KittiFolder(pictures=pictures, labels=path, split=split, sure=sure))
    sure_only = [each for each in found if each.sure]
    return sure_only or found


def unlabelled_folders(root: Path, known: list[KittiFolder]) -> Iterator[str]:
    """Yield the folders ``image_2`` that have no labels, such as that of ``testing``."""
    used = {each.pictures for each in known}
    for path in folders_below(root, 3):
        if posixpath.basename(path) == "image_2" and path not in used:
            yield path


def parse_line(line: str) -> KittiLine:
    """Return what a line of 15 columns says, or of 16 with a score; columns behind them are ignored.

    Raises:
        ValueError: where it says something else.
    """
    words = line.split()
    if len(words) < _COLUMNS:
        raise ValueError(f"it has {len(words)} columns, and {_COLUMNS} are needed")
    try:
        values = [float(word) for word in words[1 : _COLUMNS + 1]]
    except ValueError:
        raise ValueError("its columns behind the first are no numbers") from None
    truncated, occluded, alpha, left, top, right, bottom = values[:7]
    others = (truncated, occluded, alpha, *values[7:])
    if not all(map(math.isfinite, others)):
        raise ValueError("a column is infinite or no number")
    details: dict[str, Any] = {
        "truncated": truncated,
        "occluded": int(occluded) if occluded == int(occluded) and abs(occluded) < 1e9 else occluded,
        "alpha": alpha,
        "dimensions": values[7:10],
        "location": values[10:13],
        "rotation_y": values[13],
    }
    if len(values) > _COLUMNS - 1:
        details["score"] = values[14]
    return KittiLine(type=words[0], box=(left, top, right, bottom), details=details)


def _has_kitti_lines(folder: Path, *, any_class: bool) -> bool | None:
    """Look into some label files for a line that fits; None where all are empty.

    A class may be called `7` where the folder's own name says what it is; elsewhere such a line may be one of YOLO's.
    """
    empty = True
    for path in some_files(folder, ".txt"):
        try:
            lines = [line for line in text_lines(path) if line.strip()]
        except DataError:
            continue
        if any(_is_kitti(line, any_class=any_class) for line in lines[:100]):
            return True
        empty = empty and not lines
    return None if empty else False


def _is_kitti(line: str, *, any_class: bool) -> bool:
    words = line.split()
    has_name = len(words) >= _COLUMNS and (any_class or not _is_number(words[0]))
    return has_name and all(map(_is_number, words[1:_COLUMNS]))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _pictures_beside(every: list[str], folder: str, images: str) -> str | None:
    beside = {posixpath.basename(each).lower(): each for each in every if each and posixpath.dirname(each) == folder}
    if images:
        return images if images in every else beside.get(images.lower())
    return next((beside[name] for name in _PICTURES if name in beside), None)
