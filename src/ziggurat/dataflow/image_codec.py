"""Decoding and encoding of image files: every common kind of file is decoded correctly or reported as bad.

OpenCV decodes the files that it handles correctly (nearly all JPEG and PNG files), Pillow the others, by one set of
rules:

- The result is (H, W, C) uint8, RGB. The EXIF orientation is applied; color profiles are not.
- Channel values of 16 bits keep the upper 8 of the bits that they use: of all 16, unless ``bits`` says that they are
  those of a sensor of 10, 12 or 14. Those of a PPM file are scaled by its own maximum. Values of 32 bits have no known
  range and are refused.
- CMYK and YCCK become RGB without a profile. Of an animation the first frame is used.
- Transparency is composited over a background, white by default, as a web page would show it. With
  ``background=None`` alpha is dropped, which uncovers whatever color transparent pixels have.
- Gray from color is the luma of ITU-R BT.601; for a JPEG file it is the luma that the file stores.
- A truncated file is refused, even where a decoder would fill the rest with gray.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ziggurat.dataflow.image_header import ImageHeader, read_header
from ziggurat.errors import DataError, DatapointError, UnknownNameError, UsageError

__all__ = [
    "DEPTHS",
    "MAX_PIXELS",
    "decode_image",
    "encode_image",
    "highest_value",
    "read_file",
    "read_image",
    "shrink_image",
]

MAX_PIXELS = 178_956_970
"""How many pixels an image may have by default: RGB of that size takes 512 MiB."""

DEPTHS = (8, 10, 12, 14, 16)
"""How many bits the values of images with 16 bits may use."""

_TIFF = (b"II*\0", b"MM\0*")
_FORMATS = ("JPEG", "PNG", "BMP", "DIB", "GIF", "WEBP", "TIFF", "PPM")  # no format that starts other programs
_WHITE = (255, 255, 255)
_COLOR_RGB: int | None = getattr(cv2, "IMREAD_COLOR_RGB", None)  # not before OpenCV 4.11
_WITH_16_BITS = ("I;16", "I;16B", "I;16L", "I;16N")
_WITH_ALPHA = ("RGBA", "RGBa", "LA", "La", "PA")

Background = tuple[int, int, int] | None


_MOST_HEADER_BYTES = 64 << 10
_HEADER_TOKEN = re.compile(rb"\s*(?:#[^\r\n]*|(\d+))")
"""A comment or a number in the header of a PPM file."""


def decode_image(
    data: Any,
    *,
    channels: Literal[1, 3, 4] = 3,
    key: Any = "(bytes)",
    background: Background = _WHITE,
    max_pixels: int = MAX_PIXELS,
    bits: int = 16,
) -> np.ndarray:
    """Return the pixels of an encoded image.

    Args:
        data: the content of a JPEG, PNG, BMP, GIF, WebP, TIFF or PPM file: bytes, a buffer, or a uint8 array.
        channels: 3 for RGB, 1 for gray, 4 for RGB and alpha (255 where the file has none).
        key: what names the image in an error.
        background: color (R, G, B) that transparent images are laid on; None drops alpha. Unused with 4 channels.
        max_pixels: larger images are refused before any pixel is decoded.
        bits: how many bits the values of an image with 16 bits use, from 8 to 16; larger values become 255.

    Returns:
        image: (H, W, channels) uint8.

    Raises:
        DatapointError: where the data is empty, cut off, damaged, no image, too large, or of a kind without a rule.
    """
    if channels not in (1, 3, 4):
        raise UsageError("An image is decoded to 1, 3 or 4 channels.", received=repr(channels))
    content = data if isinstance(data, bytes) else bytes(memoryview(data))
    if not content:
        raise DatapointError(key, "it is empty (0 bytes).")
    if _has_long_header(content):
        raise DatapointError(key, f"the comments in its header are longer than {_MOST_HEADER_BYTES >> 10} kB.")
    header = read_header(content)
    _check_size(header.width, header.height, max_pixels, key)
    if header.file_format == "jpeg" and not header.complete:
        raise DatapointError(key, f"the JPEG data is cut off: {len(content)} bytes without an end.")
    if bits < 16 and (deep := _deep_pixels(content, header)) is not None:
        return _narrowed(deep, bits, channels, background)
    if header.plain and header.complete and channels != 4:
        image = _decode_plain(content, header, channels)
        if image is not None:
            return image
    try:
        return _decode_with_rules(content, channels, background, max_pixels, key)
    except DataError:
        raise
    except Exception as error:  # decoders raise what they like for damaged data
        raise DatapointError(key, _reason(error, content)) from error


def highest_value(data: bytes) -> int | None:
    """Return the largest value in an image with 16 bits; None for images of other depths, and what is no image."""
    deep = _deep_pixels(data, read_header(data))
    if deep is None:
        return None
    return int((deep if deep.ndim == 2 else deep[:, :, :3]).max())


def read_image(path: str | os.PathLike[str], **options: Any) -> np.ndarray:
    """Return the pixels of an image file.

    Args:
        path: the file; it is also the key in errors.
        options: those of ``decode_image``.

    Raises:
        DatapointError: where the file cannot be read, and as ``decode_image``.
    """
    return decode_image(read_file(path), **{"key": os.fspath(path), **options})


def read_file(path: str | os.PathLike[str], *, key: Any = None) -> bytes:
    """Return the content of a file, read with as few system calls as can be.

    Args:
        path: the file.
        key: names it in an error; None for the path.

    Raises:
        DatapointError: where it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        try:
            size = os.fstat(handle).st_size
            data = os.read(handle, size)
        finally:
            os.close(handle)
        return data if len(data) == size else Path(path).read_bytes()
    except OSError as error:
        name = os.fspath(path) if key is None else key
        raise DatapointError(name, f"it cannot be read ({error.strerror}).") from error


def encode_image(image: np.ndarray, file_format: str = "jpeg", *, quality: int = 95) -> bytes:
    """Return an image in a file format.

    Args:
        image: (H, W), (H, W, 1) or (H, W, 3) uint8, RGB; with PNG and WebP also (H, W, 4), RGB and alpha.
        file_format: "jpeg", "png", "webp" or "bmp".
        quality: from 0 to 100, for JPEG and WebP; a WebP of more than 100 is lossless.

    Raises:
        UsageError: where ``image`` is something else.
        UnknownNameError: where ``file_format`` is.
    """
    options = {
        "jpeg": [cv2.IMWRITE_JPEG_QUALITY, quality],
        "png": [],
        "webp": [cv2.IMWRITE_WEBP_QUALITY, quality],
        "bmp": [],
    }
    if file_format not in options:
        raise UnknownNameError("image format", file_format, options)
    pixels = image[:, :, 0] if image.ndim == 3 and image.shape[2] == 1 else image
    depths = [None, 3, 4] if file_format in ("png", "webp") else [None, 3]
    depth = None if pixels.ndim == 2 else pixels.shape[-1]
    if image.dtype != np.uint8 or not image.size or pixels.ndim not in (2, 3) or depth not in depths:
        raise UsageError(
            f"An image of {image.dtype} and shape {image.shape} cannot be written as {file_format}: it is "
            f"not uint8, (H, W), (H, W, 1) or (H, W, {' or '.join(map(str, depths[1:]))})."
        )
    if pixels.ndim == 3:
        code = cv2.COLOR_RGB2BGR if depth == 3 else cv2.COLOR_RGBA2BGRA
        pixels = cv2.cvtColor(np.ascontiguousarray(pixels), code)
    done, encoded = cv2.imencode(f".{file_format}", np.ascontiguousarray(pixels), options[file_format])
    assert done
    return encoded.tobytes()


# ---- the two decoders


def shrink_image(image: np.ndarray, max_side_px: int) -> np.ndarray:
    """Return an image with a longer side of at most ``max_side_px``; a smaller image is returned unchanged."""
    height, width = image.shape[:2]
    factor = max_side_px / max(height, width)
    if factor >= 1:
        return image
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)


def _decode_plain(content: bytes, header: ImageHeader, channels: int) -> np.ndarray | None:
    """Decode with OpenCV; None where it cannot."""
    encoded = np.frombuffer(content, np.uint8)
    try:
        if channels == 1 and header.file_format == "jpeg":
            gray = cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE)
            return None if gray is None else gray[:, :, None]
        if _COLOR_RGB is not None:
            image: Any = cv2.imdecode(encoded, _COLOR_RGB)
        else:
            image = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
            image = None if image is None else cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    except cv2.error:
        return None
    return image if image is None or channels == 3 else _gray(image)


def _has_long_header(content: bytes) -> bool:
    """Return whether the header of a PPM, PGM or PBM file has long comments: Pillow needs a microsecond for a byte."""
    if content[:1] != b"P" or content[1:2] not in (b"1", b"2", b"3", b"4", b"5", b"6"):
        return False
    at, numbers = 2, 2 if content[1:2] in (b"1", b"4") else 3
    while numbers and at <= _MOST_HEADER_BYTES:
        token = _HEADER_TOKEN.match(content, at)
        if token is None:
            return False  # Pillow says what is wrong
        at, numbers = token.end(), numbers - (token[1] is not None)
    return at > _MOST_HEADER_BYTES


def _decode_with_rules(content: bytes, channels: int, background: Background, max_pixels: int, key: Any) -> np.ndarray:
    """Decode with Pillow."""
    with Image.open(io.BytesIO(content), formats=_FORMATS) as opened:
        _check_size(*opened.size, max_pixels, key)
        file_format = opened.format
        image = ImageOps.exif_transpose(opened)
    if image.mode in _WITH_16_BITS or (image.mode == "I" and file_format in ("PNG", "PPM")):
        return _with_channels((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8), channels)
    if image.mode in ("I", "F"):
        raise DatapointError(key, "its samples have 32 bits, whose range is unknown.")
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        image = image.convert("RGBA")
        if channels == 4:
            return np.array(image)
        return _with_channels(_flattened(np.asarray(image), background), channels)
    return _with_channels(np.array(image.convert("L" if image.mode in ("1", "L") else "RGB")), channels)


def _deep_pixels(content: bytes, header: ImageHeader) -> np.ndarray | None:
    """Return an image with 16 bits as it is: (H, W), (H, W, 3) RGB or (H, W, 4) uint16; None for all others.

    A PPM file says its own maximum, and is none of them.
    """
    try:
        if header.depth == 16:
            flags = cv2.IMREAD_ANYDEPTH | cv2.IMREAD_ANYCOLOR if header.plain else cv2.IMREAD_UNCHANGED
            image: Any = cv2.imdecode(np.frombuffer(content, np.uint8), flags)
            if image is None or image.dtype != np.uint16 or image.ndim == 2:
                return image if image is not None and image.dtype == np.uint16 else None
            return image[:, :, [2, 1, 0, 3][: image.shape[2]]]
        if content.startswith(_TIFF):
            with Image.open(io.BytesIO(content), formats=["TIFF"]) as opened:
                if opened.mode in _WITH_16_BITS:
                    return np.asarray(ImageOps.exif_transpose(opened)).astype(np.uint16)
    except Exception:  # the decoder says what is wrong with it
        return None
    return None


def _narrowed(deep: np.ndarray, bits: int, channels: int, background: Background) -> np.ndarray:
    """Return what ``_deep_pixels`` gave as 8 bits a value, with the asked channels."""
    narrow = np.minimum(deep >> (bits - 8), 255).astype(np.uint8)
    if narrow.ndim == 3 and narrow.shape[2] == 4:
        narrow[:, :, 3] = deep[:, :, 3] >> 8
        return narrow if channels == 4 else _with_channels(_flattened(narrow, background), channels)
    return _with_channels(narrow, channels)


def _with_channels(image: np.ndarray, channels: int) -> np.ndarray:
    """Return an image (H, W) or (H, W, 3) with the asked channels."""
    if image.ndim == 2:
        if channels == 1:
            return image[:, :, None]
        image = np.repeat(image[:, :, None], 3, axis=2)
    if channels == 1:
        return _gray(image)
    return image if channels == 3 else np.dstack([image, np.full(image.shape[:2], 255, np.uint8)])


def _gray(image: np.ndarray) -> np.ndarray:
    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[:, :, None]


def _flattened(image: np.ndarray, background: Background) -> np.ndarray:
    """Lay (H, W, 4) on a color."""
    color = image[:, :, :3]
    if background is None:
        return color.copy()
    alpha = image[:, :, 3:].astype(np.uint32)
    behind = np.array(background, np.uint32)
    return ((color * alpha + behind * (255 - alpha) + 127) // 255).astype(np.uint8)


def _check_size(width: int, height: int, max_pixels: int, key: Any) -> None:
    if width * height > max_pixels:
        raise DatapointError(
            key,
            f"it has {width} x {height} pixels, and {max_pixels} are allowed.",
            advice="Raise `max_pixels` where that is no mistake.",
        )


def _reason(error: Exception, content: bytes) -> str:
    if isinstance(error, UnidentifiedImageError):
        return f"it is no image of a known format; it starts with {content[:8]!r}."
    return f"it cannot be decoded ({error})."
