"""The native engine: ``jpeg_crops.c`` on libjpeg-turbo, compiled when the package is built."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.dataflow.fast.engine import EngineUnavailableError

__all__ = ["LIBRARY_NAME", "NativeEngine"]

LIBRARY_NAME = "libziggurat_jpeg.so"
"""File that the build makes beside this module (``hatch_build.py``)."""

_ABI = 1
_LOAD_MODE = getattr(os, "RTLD_LOCAL", 0) | getattr(os, "RTLD_DEEPBIND", 0)  # never another package's libjpeg


class NativeEngine:
    """Decodes all files of a call in C, without the GIL.

    Args:
        path: the library; None: the one that was built with the package.

    Raises:
        EngineUnavailableError: where it was not built, or does not load here.
    """

    name = "native"

    def __init__(self, path: Path | None = None) -> None:
        self._library = _load(path or Path(__file__).with_name(LIBRARY_NAME))
        self._message_bytes = self._library.ziggurat_message_bytes()
        number = self._library.ziggurat_jpeg_version()
        self.version = f"libjpeg-turbo {number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"

    def decode(self, files: Sequence[bytes], plans: np.ndarray, out: np.ndarray) -> list[str]:
        """Decode boxes into ``out``; see ``Engine.decode``."""
        count = len(files)
        _check(files, plans, out)
        messages = ctypes.create_string_buffer(count * self._message_bytes)
        done = self._decode(files, plans, out.ctypes.data, out.shape[:3], messages)
        if done == count:
            return [""] * count
        if done < 0:
            raise MemoryError("the native JPEG engine could not get memory")
        step, text = self._message_bytes, messages.raw
        return [text[i : i + step].split(b"\0", 1)[0].decode("latin-1") for i in range(0, count * step, step)]

    def decode_only(self, files: Sequence[bytes], plans: np.ndarray, rows: int) -> int:
        """Decode boxes and forget them, to measure the decoder alone; return how many were decoded.

        Args:
            files: as in ``decode``.
            plans: as in ``decode``.
            rows: how many rows of each box are read; all of them where it is at least the box's height.
        """
        messages = ctypes.create_string_buffer(len(files) * self._message_bytes)
        return self._decode(files, plans, None, (len(files), rows, 1), messages)

    def _decode(self, files: Any, plans: np.ndarray, out: int | None, shape: Any, messages: Any) -> int:
        count = len(files)
        contents = (ctypes.c_char_p * count)(*files)
        sizes = (ctypes.c_size_t * count)(*map(len, files))
        return self._library.ziggurat_jpeg_crops(count, contents, sizes, plans.ctypes.data, out, *shape, messages)


def _check(files: Sequence[bytes], plans: np.ndarray, out: np.ndarray) -> None:
    """The library trusts these, so that nobody else may be wrong about them."""
    assert plans.shape == (len(files), 7)
    assert plans.dtype == np.int32
    assert plans.flags.c_contiguous
    assert out.dtype == np.uint8
    assert out.ndim == 4
    assert out.shape[3] == 3
    assert out.flags.c_contiguous
    assert out.flags.writeable


def _load(path: Path) -> Any:
    if not path.exists():
        raise EngineUnavailableError(
            "it was not built when the package was installed: that takes a C compiler and the headers of libjpeg-turbo "
            "(Debian: gcc and libjpeg62-turbo-dev)"
        )
    try:
        library = ctypes.CDLL(str(path), mode=_LOAD_MODE)
    except OSError as error:
        raise EngineUnavailableError(f"its library does not load ({error})") from error
    if library.ziggurat_abi() != _ABI:
        raise EngineUnavailableError(
            "its library was built from another version of the package; install the package again"
        )
    function = library.ziggurat_jpeg_crops
    function.restype = ctypes.c_int
    function.argtypes = [
        ctypes.c_int,  # count
        ctypes.c_void_p,  # files
        ctypes.c_void_p,  # their sizes
        ctypes.c_void_p,  # plans
        ctypes.c_void_p,  # out
        ctypes.c_int,  # slots
        ctypes.c_int,  # height
        ctypes.c_int,  # width
        ctypes.c_void_p,  # messages
    ]
    return library
