"""Lines of YOLO label files: boxes and outlines relative to the image size, which comes from the image header."""

from __future__ import annotations

import math
from typing import Any

from ziggurat.records.objects import ImageObject

__all__ = ["parse_line"]


def parse_line(line: str, width: int, height: int) -> ImageObject:
    """Return the object of a line: ``class x y width height``, maybe with a score, or ``class x1 y1 x2 y2 x3 y3 …``.

    Args:
        line: numbers relative to the image; (x, y) of a box is its middle.
        width: of the image in pixels.
        height: of the image in pixels.

    Raises:
        ValueError: where it is something else.
    """
    words = line.split()
    try:
        number = float(words[0])
        values = [float(word) for word in words[1:]]
    except ValueError:
        raise ValueError("its words are no numbers") from None
    if not number.is_integer() or abs(number) > 1e9:
        raise ValueError(f"{words[0]} is no number of a class")
    if not all(map(math.isfinite, values)):
        raise ValueError("a number is infinite or none")
    if len(values) in (4, 5):
        return _box(int(number), values, width, height)
    if len(values) < 6 or len(values) % 2:
        raise ValueError(f"it has {len(words)} numbers: 5 make a box, 7, 9, 11 … an outline")
    polygon = tuple(value * (height if place % 2 else width) for place, value in enumerate(values))
    box = (min(polygon[::2]), min(polygon[1::2]), max(polygon[::2]), max(polygon[1::2]))
    return ImageObject(class_number=int(number), box=box, polygons=(polygon,))


def _box(number: int, values: list[float], width: int, height: int) -> ImageObject:
    x, y, box_width, box_height = values[:4]
    details: dict[str, Any] = {"score": values[4]} if len(values) == 5 else {}
    box = (
        (x - box_width / 2) * width,
        (y - box_height / 2) * height,
        (x + box_width / 2) * width,
        (y + box_height / 2) * height,
    )
    return ImageObject(class_number=number, box=box, details=details)
