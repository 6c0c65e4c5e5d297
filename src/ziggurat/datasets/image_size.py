"""Size of an image from its header, without decoding it."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import IO, Final

from PIL import Image

from ziggurat.dataflow.image_header import read_header
from ziggurat.errors import DatapointError

__all__ = ["encoded_size", "image_size", "size_of"]

_HEAD_BYTES: Final = 1 << 16  # enough for the header of most images; Pillow reads the others
_ORIENTATION: Final = 0x0112
_TURNED: Final = (5, 6, 7, 8)  # orientations that swap width and height


def size_of(part: bytes, key: str) -> tuple[int, int]:
    """Return (height, width) of an encoded image from its header.

    Raises:
        DatapointError: where it has none, or is cut off.
    """
    header = read_header(part)
    if header.width and header.complete:
        return header.height, header.width
    if header.width:
        raise DatapointError(key, f"the {header.file_format} data is cut off after {len(part)} bytes.")
    try:
        with Image.open(io.BytesIO(part)) as image:
            return image.height, image.width
    except Exception as error:  # decoders raise what they like for damaged data
        raise DatapointError(key, f"it is no image ({type(error).__name__}).") from error


def image_size(path: Path) -> tuple[int, int]:
    """Return (width, height) in pixels of an image as it is shown, from its header; turned where EXIF says so.

    Raises:
        ValueError: where it has no header of an image.
    """
    try:
        with path.open("rb") as file:
            return _size(file.read(_HEAD_BYTES)) or _size_by_pillow(path)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from None


def encoded_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) in pixels of an encoded image as it is shown.

    Raises:
        ValueError: where it has no header of an image.
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
        warnings.simplefilter("ignore")  # of large images; creation has its own limit
        with Image.open(source) as image:
            width, height = image.size
            turned = image.getexif().get(_ORIENTATION) in _TURNED
    return (height, width) if turned else (width, height)
