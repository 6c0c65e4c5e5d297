"""Records that load fast, written once at dataset creation: tiled JPEG files, or files of decoded pixels.

docs/explanation/performance.md lists the cost and gain of each. A file of decoded pixels is memory-mapped and read
without a copy. It consists of:

- a magic;
- the pixels of each image, (H, W, 3) uint8, RGB, each starting at a multiple of 64 bytes;
- one packed message (``ziggurat.records.codec``) with the offsets and sizes of the images and their other components;
- the length of the message (uint64, little-endian);
- the magic again.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import cv2
import numpy as np
from PIL import Image

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.fast.tiles import JpegHeader, read_jpeg_header, tile_units, with_tiles
from ziggurat.dataflow.formats.serializers import LMDBSerializer
from ziggurat.dataflow.image_codec import decode_image, read_file
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.parallel.maps import MultiThreadMapData
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.errors import DataError, DatapointError, UsageError
from ziggurat.records.codec import pack, unpack

__all__ = ["PixelFlow", "PixelWriter", "prepare_pixels", "prepare_records", "tiled_jpeg"]

_MAGIC = b"ZGPIXEL1"
_ALIGN_BYTES = 64
_FOOTER = struct.Struct("<Q8s")

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
    gray = pixels.ndim == 2 or pixels.shape[2] == 1
    opened = Image.fromarray(pixels.reshape(pixels.shape[:2]) if gray else pixels)
    options = {"quality": quality or _QUALITY, "subsampling": "4:2:0"}
    return _encoded(opened, pixels.shape[1], 8 if gray else 16, options, key)


@dataclass(frozen=True)
class _Tile:
    """The map function of ``prepare_records``; it can be pickled."""

    short_side: int | None
    quality: int | None

    def __post_init__(self) -> None:
        _check_short_side(self.short_side)
        if self.quality is not None and not 1 <= self.quality <= 100:
            raise UsageError(f"`quality` is {self.quality}, not from 1 to 100.")

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


def _encoded(image: Image.Image, width: int, unit_width: int, options: dict[str, Any], key: Any) -> bytes:
    units = tile_units(-(-width // unit_width))
    buffer = io.BytesIO()
    try:
        image.save(buffer, "JPEG", restart_marker_blocks=units, **options)
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


class PixelWriter:
    """Writes a file of pixels; use it in ``with``. The file gets its name when the block ends without an error.

    Args:
        path: file to make; nothing must stand there.

    Raises:
        StorageError: where something stands there, or the disk is full or refuses (also from every method).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._target = AtomicFile(path)
        self._places = array("Q")
        self._sizes = array("I")
        self._others = bytearray()
        self._other_ends = array("Q")
        with storage_errors(self._target.path):
            self._file = self._target.path.open("wb")
            self._file.write(_MAGIC)

    def append(self, image: np.ndarray, others: Sequence[Any] = ()) -> None:
        """Add an image.

        Args:
            image: (H, W, 3) uint8, RGB.
            others: further components of the datapoint, of plain data.
        """
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
            raise UsageError("An image is (H, W, 3) uint8.", received=f"{image.shape} {image.dtype}")
        with storage_errors(self._target.final):
            self._file.write(bytes(-self._file.tell() % _ALIGN_BYTES))
            self._places.append(self._file.tell())
            self._file.write(np.ascontiguousarray(image).data)
        self._sizes.extend(image.shape[:2])
        self._others += pack(list(others))
        self._other_ends.append(len(self._others))

    def __len__(self) -> int:
        return len(self._places)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._file.close()
            self._target.discard()

    def _finish(self) -> None:
        listed = pack(
            {
                "places": np.array(self._places, np.uint64),
                "sizes": np.array(self._sizes, np.uint32).reshape(-1, 2),
                "others": bytes(self._others),
                "other_ends": np.array(self._other_ends, np.uint64),
            }
        )
        with storage_errors(self._target.final):
            self._file.write(listed + _FOOTER.pack(len(listed), _MAGIC))
            self._file.close()
        self._target.publish()


class PixelFlow(IndexedFlow):
    """The images of a file of pixels: datapoints ``[image, *others]``; an image is a read-only view of the file.

    Args:
        path: what ``prepare_pixels`` wrote.
        shuffle: a new random order in every pass.

    Raises:
        DataError: where there is no such file, or it was cut off.
    """

    def __init__(self, path: str | os.PathLike[str], *, shuffle: bool = False) -> None:
        super().__init__(shuffle=shuffle)
        self.path = Path(path)
        self._map: np.ndarray | None = None
        self._open()

    def __len__(self) -> int:
        return len(self._opened()["places"])

    def datapoint(self, index: int) -> list[Any]:
        """Return an image and what else belongs to it."""
        listed = self._opened()
        height, width = listed["sizes"][index].tolist()
        start = int(listed["places"][index])
        assert self._map is not None
        image = self._map[start : start + height * width * 3].reshape(height, width, 3)
        ends = listed["other_ends"]
        first = int(ends[index - 1]) if index else 0
        return [image, *unpack(listed["others"][first : int(ends[index])])]

    def close(self) -> None:
        """Forget the mapping; images that are still referenced stay valid."""
        self._map = None
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_map": None, "_listed": None}

    def _opened(self) -> dict[str, Any]:
        if self._map is None:
            self._open()
        return self._listed

    def _open(self) -> None:
        try:
            with self.path.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise self._refused(str(error)) from error
        footer = content[-_FOOTER.size :]
        if not content[:8] == footer[-8:] == _MAGIC:
            raise self._refused("it does not begin and end as one")
        (length,) = _FOOTER.unpack(footer)[:1]
        end = len(content) - _FOOTER.size
        self._listed = unpack(memoryview(content)[end - length : end])
        self._map = np.frombuffer(content, np.uint8)

    def _refused(self, reason: str) -> DataError:
        return DataError(
            "A file of pixels is read as `prepare_pixels` wrote it.",
            received=f"`{self.path}`: {reason}",
            advice="Write it again.",
        )
