"""Preparation of records that load fast: tiled JPEG files or decoded pixels, written once at dataset creation.

docs/explanation/performance.md lists the cost and gain of each.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from PIL import Image

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.fast.header import JpegHeader, read_jpeg_header
from ziggurat.dataflow.fast.pixels import PixelWriter
from ziggurat.dataflow.fast.tiles import tile_units, with_tiles
from ziggurat.dataflow.formats.serializers import LMDBSerializer
from ziggurat.dataflow.image_codec import decode_image, read_file
from ziggurat.dataflow.parallel.maps import MultiThreadMapData
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.errors import DatapointError, UsageError

__all__ = ["prepare_pixels", "prepare_records", "tiled_jpeg"]

_QUALITY = 90


def prepare_records(
    ds: DataFlow,
    path: str | os.PathLike[str],
    *,
    short_side: int | None = None,
    quality: int | None = None,
    num_thread: int | None = None,
    on_error: OnError | ErrorPolicy = "raise",
) -> int:
    """Write one pass of a flow as an LMDB store whose images are tiled JPEG files, and return the number of records.

    ``JpegCropBatches(LMDBSerializer.load(path, shuffle=True), 64)`` reads it: of each image only the tiles that the
    crop touches are decoded. Any other program reads the images as the JPEG files that they are.

    Args:
        ds: flow of datapoints whose first component is an image: a path, the content of an image file, or pixels.
        path: file to make; nothing must stand there.
        short_side: shorter side of the stored images in pixels; larger ones are reduced to it, and crops are taken from
            the reduced image. None keeps the size.
        quality: from 1 to 100; None keeps the quality (the tables) of a JPEG file whose size is kept, and means 90 for
            all others.
        num_thread: threads that decode and encode; None: one for each CPU.
        on_error: what happens to an image that cannot be used: "raise", "skip", "log", or an ``ErrorPolicy``.

    Raises:
        StorageError: where something stands at ``path``, or the disk is full or refuses.
        DatapointError: where an image cannot be used.
    """
    return LMDBSerializer.save(MultiThreadMapData(ds, num_thread, _Tile(short_side, quality), on_error=on_error), path)


def prepare_pixels(
    ds: DataFlow,
    path: str | os.PathLike[str],
    *,
    short_side: int | None = 320,
    num_thread: int | None = None,
    on_error: OnError | ErrorPolicy = "raise",
) -> int:
    """Write one pass of a flow as a file of pixels, and return the number of images.

    ``JpegCropBatches(PixelFlow(path, shuffle=True), 64)`` reads it: nothing is decoded any more. It takes about ten
    times the space of JPEG files, and is worth it where it fits into memory.

    Args:
        ds: see ``prepare_records``.
        path: file to make; nothing must stand there.
        short_side: see ``prepare_records``. With the default, boxes of 40 % of the area and more fill 224 pixels.
        num_thread: threads that decode; None: one for each CPU.
        on_error: see ``prepare_records``.

    Raises:
        StorageError: where something stands at ``path``, or the disk is full or refuses.
        DatapointError: where an image cannot be used.
    """
    flow = MultiThreadMapData(ds, num_thread, _Reduce(short_side), buffer_size=16, on_error=on_error)
    with PixelWriter(path) as writer:
        for image, *others in flow:
            writer.append(image, others)
    return len(writer)


def tiled_jpeg(image: Any, *, short_side: int | None = None, quality: int | None = None, key: Any = "(bytes)") -> bytes:
    """Return an image as a tiled JPEG file (see ``ziggurat.dataflow.fast.tiles``), upright.

    Args:
        image: a path, the content of an image file, or pixels (H, W, 3) or (H, W, 1) uint8.
        short_side: see ``prepare_records``.
        quality: see ``prepare_records``.
        key: what names the image in an error.

    Raises:
        DatapointError: where it is no image, or larger than a JPEG file can be.
    """
    data = image if isinstance(image, np.ndarray) and image.ndim > 1 else _content(image)
    header = read_jpeg_header(data) if isinstance(data, bytes) else None
    if isinstance(data, bytes) and header is not None and quality is None and _keeps(header, short_side):
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as opened:
            return _encoded(opened, header.width, header.unit_width, {"quality": "keep"}, key)
    pixels = _reduced(data if isinstance(data, np.ndarray) else decode_image(data, key=key), short_side)
    grey = pixels.ndim == 2 or pixels.shape[2] == 1
    picture = Image.fromarray(pixels.reshape(pixels.shape[:2]) if grey else pixels)
    options = {"quality": quality or _QUALITY, "subsampling": "4:2:0"}
    return _encoded(picture, pixels.shape[1], 8 if grey else 16, options, key)


@dataclass(frozen=True)
class _Tile:
    """The map function of ``prepare_records``; it can be pickled."""

    short_side: int | None
    quality: int | None

    def __post_init__(self) -> None:
        _check_short_side(self.short_side)
        if self.quality is not None and not 1 <= self.quality <= 100:
            raise UsageError("`quality` is from 1 to 100.", received=self.quality)

    def __call__(self, point: Any) -> list[Any]:
        image, *others = point
        return [tiled_jpeg(image, short_side=self.short_side, quality=self.quality, key=_key(image)), *others]


@dataclass(frozen=True)
class _Reduce:
    """The map function of ``prepare_pixels``."""

    short_side: int | None

    def __post_init__(self) -> None:
        _check_short_side(self.short_side)

    def __call__(self, point: Any) -> list[Any]:
        image, *others = point
        if not (isinstance(image, np.ndarray) and image.ndim > 1):
            image = decode_image(_content(image), key=_key(image))
        return [_reduced(image, self.short_side), *others]


def _keeps(header: JpegHeader, short_side: int | None) -> bool:
    return header.orientation == 1 and (short_side is None or min(header.width, header.height) <= short_side)


def _encoded(picture: Image.Image, width: int, unit_width: int, options: dict[str, Any], key: Any) -> bytes:
    units = tile_units(-(-width // unit_width))
    buffer = io.BytesIO()
    try:
        picture.save(buffer, "JPEG", restart_marker_blocks=units, **options)
    except (OSError, ValueError) as error:
        raise DatapointError(key, f"it cannot be written as a JPEG file ({error}).") from error
    data = buffer.getvalue()
    header = read_jpeg_header(data)
    assert header is not None
    return with_tiles(data, header, units) or data


def _reduced(image: np.ndarray, short_side: int | None) -> np.ndarray:
    height, width = image.shape[:2]
    if short_side is None or min(height, width) <= short_side:
        return image
    scale = short_side / min(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)


def _content(image: Any) -> bytes:
    if isinstance(image, str | os.PathLike):
        return read_file(os.fspath(image))
    return image if isinstance(image, bytes) else bytes(memoryview(image))


def _key(image: Any) -> Any:
    return os.fspath(image) if isinstance(image, str | os.PathLike) else "(bytes)"


def _check_short_side(short_side: int | None) -> None:
    if short_side is not None and short_side < 1:
        raise UsageError("`short_side` is a number of pixels, or None.", received=short_side)
