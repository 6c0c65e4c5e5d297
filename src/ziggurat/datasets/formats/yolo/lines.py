"""Lines of YOLO's label files: boxes, outlines, rotated boxes, and boxes with key points."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import some_files, text_lines
from ziggurat.datasets.formats.yolo.layout import YoloFolder
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject

__all__ = ["LineForm", "class_number", "line_form", "looks_like_yolo", "other_line", "parse_line"]

_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_BOX: Final = (4, 5)  # a fifth number is a score
_VISIBLE: Final = (0.0, 1.0, 2.0)
_ENOUGH_LINES: Final = 5  # that look like key points before it is asked


@dataclass(frozen=True)
class LineForm:
    """What lines with more numbers than a box are.

    Args:
        key_points: whether they are boxes with key points; else outlines.
        points: key points of a line; None for any number.
        numbers: of a key point: 2, or 3 with its visibility; None where a line itself tells it.
    """

    key_points: bool = False
    points: int | None = None
    numbers: int | None = None


def line_form(
    root: Path, folders: Sequence[YoloFolder], labels: str, shape: tuple[int, int] | None, wanted: str
) -> LineForm:
    """Return what lines with more numbers than a box are: as was asked for, as the YAML file says, or by their numbers.

    Args:
        root: the source.
        folders: of images and labels; some of their label files are looked into.
        labels: name of the folders with labels.
        shape: number of key points and of their numbers, as the YAML file says.
        wanted: ``outlines``, ``keypoints`` or ``auto``.

    Raises:
        DataError: where they may be both.
    """
    if wanted != "auto":
        is_known = shape is not None and wanted == "keypoints"
        return LineForm(wanted == "keypoints", *(shape if is_known and shape else (None, None)))
    if shape is not None:
        return LineForm(True, *shape)
    long_lines = [
        (path, number, values)
        for path, number, values in _some_lines(root, folders, labels)
        if len(values) not in _BOX and len(values) >= 6
    ]
    every = [values for _, _, values in long_lines]
    if every and all(_has_visibility(values) for values in every):
        return LineForm(True, None, 3)
    lengths = {len(values) for values in every}
    is_open = len(every) >= _ENOUGH_LINES and len(lengths) == 1 and lengths.pop() >= 8
    if is_open and all(_inside_box(values) for values in every) and not all(map(_is_parallelogram, every)):
        path, number, values = long_lines[0]
        raise DataError(
            f"Lines of {len(values) + 1} numbers may be outlines, or boxes with key points.",
            received=f"`{path.relative_to(root).as_posix()}`, line {number}, and no `kpt_shape` in a YAML file",
            advice="Say which: lines=outlines or lines=keypoints.",
            details={"field": "options.lines"},
        )
    return LineForm()


def looks_like_yolo(root: Path, folder: YoloFolder) -> bool:
    """Say by some label files whether their lines are those of YOLO."""
    if folder.listed:
        return True
    for path in some_files(root / folder.labels, ".txt"):
        line = next((line for _, line in _lines_of(path)), None)
        if line is not None and not _fault(line):  # such folders may have other texts too
            return True
    return False


def other_line(root: Path, folder: YoloFolder) -> str:
    """Return file, line and reason of a line that is none of YOLO; empty where there is no label file."""
    for path in [] if folder.listed else sorted(some_files(root / folder.labels, ".txt")):
        number, line = next(_lines_of(path), (0, ""))
        if number and (root / folder.image_place).is_dir() and (fault := _fault(line)):
            return f"`{path.relative_to(root).as_posix()}`, line {number}: {fault}"
    return ""


def class_number(line: str) -> int | None:
    """Return the number of a line's class; None where it has none."""
    try:
        number = _numbers(line)[0]
    except (ValueError, IndexError):
        return None
    return int(number) if math.isfinite(number) and number.is_integer() and abs(number) < 1e9 else None


def parse_line(line: str, width: float, height: float, form: LineForm = LineForm()) -> ImageObject:
    """Return the object of a line.

    It is ``class x y width height``, maybe with a score; ``class x1 y1 x2 y2 x3 y3 …``, also of a rotated box; or
    ``class x y width height`` with ``x y`` or ``x y visibility`` of each key point.

    Args:
        line: numbers relative to the image; (x, y) of a box is its middle.
        width: of the image in pixels.
        height: of the image in pixels.
        form: what more than a box is.

    Raises:
        ValueError: where it is something else.
    """
    numbers = _numbers(line)
    number, values = numbers[0], numbers[1:]
    if not math.isfinite(number) or not number.is_integer() or abs(number) > 1e9:
        raise ValueError(f"{number:g} is no number of a class")
    if not all(map(math.isfinite, values)):
        raise ValueError("a number is infinite or none")
    if len(values) in _BOX:
        details: dict[str, Any] = {"score": values[4]} if len(values) == 5 else {}
        return ImageObject(class_number=int(number), box=_corners(values, width, height), details=details)
    if form.key_points:
        points = _key_points(values[4:], form, width, height)
        return ImageObject(class_number=int(number), box=_corners(values, width, height), details={"keypoints": points})
    if len(values) < 6 or len(values) % 2:
        raise ValueError(f"it has {len(numbers)} numbers: 5 make a box, 7, 9, 11 … an outline")
    polygon = tuple(value * (height if place % 2 else width) for place, value in enumerate(values))
    box = (min(polygon[::2]), min(polygon[1::2]), max(polygon[::2]), max(polygon[1::2]))
    return ImageObject(class_number=int(number), box=box, polygons=(polygon,))


def _numbers(line: str) -> list[float]:
    """Return the numbers of a line; commas are separators or, between digits of every number, decimal ones."""
    words = line.split()
    if "," in line:
        broken = [word for word in words if "," in word]
        if len(words) >= 5 and all(_DECIMAL_COMMA.fullmatch(word) for word in broken) and "." not in line:
            words = [word.replace(",", ".") for word in words]
        else:
            words = [word for word in re.split(r"[,\s]+", line) if word]
    if not words:
        raise ValueError("it is empty")
    try:
        return [float(word) for word in words]
    except ValueError:
        raise ValueError("its words are no numbers") from None


def _corners(values: Sequence[float], width: float, height: float) -> tuple[float, float, float, float]:
    x, y, box_width, box_height = values[:4]
    return (
        (x - box_width / 2) * width,
        (y - box_height / 2) * height,
        (x + box_width / 2) * width,
        (y + box_height / 2) * height,
    )


def _key_points(values: Sequence[float], form: LineForm, width: float, height: float) -> list[float]:
    """Return key points as COCO has them: x, y in pixels and visibility of each; those that are missing are 0, 0, 0.

    Raises:
        ValueError: where they are not as many as they should be.
    """
    per_point = form.numbers or (3 if _all_visible(values, 3) else 2)
    wanted = None if form.points is None else form.points * per_point
    if len(values) % per_point or (wanted is not None and len(values) != wanted):
        expected = "" if wanted is None else f", and {5 + wanted} are needed"
        raise ValueError(f"it has {5 + len(values)} numbers{expected} for a box with key points")
    points: list[float] = []
    for at in range(0, len(values), per_point):
        x, y = values[at] * width, values[at + 1] * height
        visible = values[at + 2] if per_point == 3 else 2.0 * bool(x or y)
        points += [x, y, visible]
    return points


def _all_visible(values: Sequence[float], step: int) -> bool:
    """Return whether every third number is 0, 1 or 2, as the visibility of a key point is."""
    return (
        len(values) >= step and len(values) % step == 0 and all(each in _VISIBLE for each in values[step - 1 :: step])
    )


def _has_visibility(values: Sequence[float]) -> bool:
    return _all_visible(values[4:], 3)


def _inside_box(values: Sequence[float]) -> bool:
    """Return whether all points behind the first four numbers lie in the box that these make."""
    x, y, width, height = values[:4]
    points = zip(values[4::2], values[5::2], strict=False)
    return all((abs(a - x) <= width / 2 and abs(b - y) <= height / 2) or (a, b) == (0, 0) for a, b in points)


def _is_parallelogram(values: Sequence[float]) -> bool:
    """Return whether four points are those of a rotated box, which the shape of the image makes a parallelogram."""
    if len(values) != 8:
        return False
    return all(abs(values[at] + values[at + 4] - values[at + 2] - values[at + 6]) < 0.01 for at in (0, 1))


def _fault(line: str) -> str:
    """Return why a line is none of YOLO; empty where it may be one."""
    try:
        numbers = _numbers(line)
        values = numbers[1:]
        if not numbers[0].is_integer() or not 0 <= numbers[0] < 1e9:
            return f"{numbers[0]:g} is no number of a class"
        if len(values) < 4:
            return f"it has {len(numbers)} numbers, and 5 make a box"
        places = values[:4] + (values[4:] if not _has_visibility(values) else [])
        far = next((value for value in places if not -0.5 <= value <= 1.5), None)
        return "" if far is None else f"{far:g} is no part of the width or height, which are from 0 to 1"
    except (ValueError, OverflowError) as error:
        return str(error)


def _lines_of(path: Path) -> Iterator[tuple[int, str]]:
    try:
        yield from ((number, line) for number, line in enumerate(text_lines(path), 1) if line.strip())
    except DataError:
        return


def _some_lines(root: Path, folders: Iterable[YoloFolder], labels: str) -> Iterator[tuple[Path, int, list[float]]]:
    """Yield file, line number and numbers behind the class of lines in some label files."""
    for folder in folders:
        place = root / (folder.labels or labels) if folder.listed else root / folder.labels
        for path in sorted(some_files(place, ".txt")):
            for number, line in _lines_of(path):
                try:
                    numbers = _numbers(line)
                except ValueError:
                    break
                yield path, number, numbers[1:]
