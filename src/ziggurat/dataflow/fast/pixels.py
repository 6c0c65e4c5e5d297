"""Files of decoded pixels: written once, memory-mapped, and read without a copy.

A file consists of:

- a magic;
- the pixels of each image, (H, W, 3) uint8, RGB, each starting at a multiple of 64 bytes;
- one packed message (``ziggurat.records.codec``) with the offsets and sizes of the images and their other components;
- the length of the message (uint64, little-endian);
- the magic again.
"""

from __future__ import annotations

import mmap
import os
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.errors import DataError, UsageError
from ziggurat.records.codec import pack, unpack

__all__ = ["PixelFlow", "PixelWriter"]

_MAGIC = b"ZGPIXEL1"
_ALIGN_BYTES = 64
_FOOTER = struct.Struct("<Q8s")


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
        """Forget the mapping; images that somebody holds stay valid."""
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
