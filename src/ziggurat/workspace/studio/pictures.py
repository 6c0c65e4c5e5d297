"""Images for prediction, and thumbnails for pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import cv2

from ziggurat.dataflow.image_codec import decode_image, encode_image, read_file
from ziggurat.errors import DataError, UsageError
from ziggurat.workspace.studio.paths import Paths

__all__ = ["MOST_PICTURES", "PICTURE_BYTES", "png_picture", "read_pictures", "smaller_picture"]

MOST_PICTURES: Final = 1000
"""Of one request."""
PICTURE_BYTES: Final = 64 << 20
"""No image that is sent or named is larger."""


def read_pictures(paths: Paths, names: Sequence[str]) -> list[tuple[str, bytes]]:
    """Return name and content of files.

    Raises:
        UsageError: where there are too many, or one lies where nobody may look.
        DataError: where one is too large or cannot be read.
    """
    if len(names) > MOST_PICTURES:
        raise UsageError(f"At most {MOST_PICTURES} images are predicted for at once.", received=str(len(names)))
    return [(name, _content(paths, name)) for name in names]


def smaller_picture(content: bytes, max_side_px: int) -> bytes:
    """Return an image as PNG with a longer side of at most ``max_side_px``; a small one stays as it is."""
    picture = decode_image(content)
    height, width = picture.shape[:2]
    factor = max_side_px / max(height, width)
    if factor >= 1:
        return content
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return encode_image(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), "png")


def png_picture(content: bytes, max_side_px: int, *, key: str = "") -> bytes:
    """Return an image of any format as PNG with a longer side of at most ``max_side_px``.

    Raises:
        DataError: where it cannot be read; it names ``key``.
    """
    return smaller_picture(encode_image(decode_image(content, key=key), "png"), max_side_px)


def _content(paths: Paths, name: str) -> bytes:
    path = paths.allowed(name)
    if path.stat().st_size > PICTURE_BYTES:
        raise DataError(f"An image has at most {PICTURE_BYTES >> 20} MiB.", received=f"`{name}`")
    return read_file(path)
