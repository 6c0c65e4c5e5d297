"""Size of an image from its header, without decoding it."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from PIL import Image, TiffImagePlugin

from ziggurat.dataflow.image_header import read_header
from ziggurat.errors import DatapointError

__all__ = ["StoredSize", "encoded_size", "image_size", "size_of", "stored_size", "stored_size_of_file"]

_HEAD_BYTES: Final = 1 << 16  # enough for the header of most images; Pillow reads the others
_ORIENTATION: Final = 0x0112
_TIFF_WIDTH: Final = 256
_TIFF_HEIGHT: Final = 257
_TURNED: Final = (5, 6, 7, 8)  # orientations that swap width and height
_EXIF_MARKS: Final = (b"Exif", b"eXIf", b":Orientation")


class StoredSize(NamedTuple):
    """Size of an image as its pixels are stored, and how it is turned to be shown.

    Args:
        width: in pixels.
        height: in pixels.
        orientation: from 1 (upright) to 8, as EXIF numbers them.
    """

    width: int
    height: int
    orientation: int = 1

    @property
    def upright(self) -> tuple[int, int]:
        """(width, height) of the image as it is shown."""
        return (self.height, self.width) if self.orientation in _TURNED else (self.width, self.height)


def size_of(part: bytes, key: str) -> tuple[int, int]:
    """Return (height, width) of an encoded image as it is shown, from its header; turned where EXIF says so.

    Raises:
        DatapointError: where it has none, or is cut off.
    """
    header = read_header(part)
    if header.width and not header.complete:
        raise DatapointError(key, f"the {header.file_format} data is cut off after {len(part)} bytes.")
    try:
        width, height = encoded_size(part)
    except Exception as error:  # decoders raise what they like for damaged data
        raise DatapointError(key, f"it is no image ({type(error.__cause__ or error).__name__}).") from error
    return height, width


def image_size(path: Path) -> tuple[int, int]:
    """Return (width, height) in pixels of an image as it is shown, from its header; turned where EXIF says so.

    Raises:
        ValueError: where it has no header of an image.
    """
    return stored_size_of_file(path).upright


def encoded_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) in pixels of an encoded image as it is shown.

    Raises:
        ValueError: where it has no header of an image.
    """
    return stored_size(data).upright


def stored_size_of_file(path: Path) -> StoredSize:
    """Return size and orientation of an image as it is stored, from its header.

    Raises:
        ValueError: where it has no header of an image.
    """
    try:
        with path.open("rb") as file:
            return _size(file.read(_HEAD_BYTES)) or _size_by_pillow(path)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from error


def stored_size(data: bytes) -> StoredSize:
    """Return size and orientation of an encoded image as it is stored, from its header.

    Raises:
        ValueError: where it has no header of an image.
    """
    try:
        return _size(data[:_HEAD_BYTES]) or _size_by_pillow(io.BytesIO(data))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from error


def _size(head: bytes) -> StoredSize | None:
    """Return the size where a header tells it plainly, without EXIF, which may turn it."""
    header = read_header(head)
    if header.width and header.height and not any(mark in head for mark in _EXIF_MARKS):
        return StoredSize(header.width, header.height)
    return None


def _size_by_pillow(source: Path | IO[bytes]) -> StoredSize:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large images; creation has its own limit
        with Image.open(source) as image:
            orientation: Any = image.getexif().get(_ORIENTATION)
            width, height = image.size
            if isinstance(image, TiffImagePlugin.TiffImageFile):  # Pillow has turned its size already
                width, height = image.tag_v2[_TIFF_WIDTH], image.tag_v2[_TIFF_HEIGHT]
    return StoredSize(width, height, orientation if orientation in range(2, 9) else 1)
