"""Lines of YOLO label files: boxes and outlines relative to the image size, which comes from the image header."""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import IO, Any, Final

from PIL import Image

from ziggurat.dataflow.image_header import read_header
from ziggurat.records.objects import ImageObject

__all__ = ["encoded_size", "parse_line", "picture_size"]

_HEAD_BYTES: Final = 1 << 16
_ORIENTATION: Final = 0x0112
_TURNED: Final = (5, 6, 7, 8)


def parse_line(line: str, width: int, height: int) -> ImageObject:
    """Return the object of a line: ``class x y width height``, maybe with a score, or ``class x1 y1 x2 y2 x3 y3 …``.

    Args:
        line: numbers relative to the picture; (x, y) of a box is its middle.
        width: of the picture in pixels.
        height: of the picture in pixels.

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


def picture_size(path: Path) -> tuple[int, int]:
    """Return (width, height) in pixels of a picture as it is shown, from its header; turned where EXIF says so.

    Raises:
        ValueError: where it has no header of a picture.
    """
    try:
        with path.open("rb") as file:
            return _size(file.read(_HEAD_BYTES)) or _size_by_pillow(path)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from None


def encoded_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) in pixels of an encoded picture as it is shown.

    Raises:
        ValueError: where it has no header of a picture.
    """
    try:
        return _size(data[:_HEAD_BYTES]) or _size_by_pillow(io.BytesIO(data))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from None


def _size(head: bytes) -> tuple[int, int] | None:
    """Return the size where a header tells it plainly, without EXIF, which may turn it."""
    header = read_header(head)
    if header.width and header.height and b"Exif" not in head and b"eXIf" not in head:
        return header.width, header.height
    return None


def _size_by_pillow(source: Path | IO[bytes]) -> tuple[int, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large pictures; creation has its own limit
        with Image.open(source) as image:
            width, height = image.size
            turned = image.getexif().get(_ORIENTATION) in _TURNED
    return (height, width) if turned else (width, height)


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
