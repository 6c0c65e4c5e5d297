"""The engine on a separately installed TurboJPEG library (version 3 or newer); it needs no compiler.

The search covers the locations of the system's linker, and the wheel ``turbojpeg``, which contains the library.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import site
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.dataflow.fast.engine import EngineUnavailableError
from ziggurat.dataflow.fast.opencv import resize_into

__all__ = ["TurboJPEGEngine"]

# Numbers of turbojpeg.h; they never change.
_INIT_DECOMPRESS, _PIXELS_RGB = 1, 0
_PARAM_STOP_ON_WARNING, _PARAM_SUBSAMPLING, _PARAM_WIDTH, _PARAM_HEIGHT = 0, 4, 5, 6
_UNIT_WIDTHS = {0: 8, 1: 16, 2: 16, 3: 8, 4: 8, 5: 32, 6: 8}  # of each subsampling
_CONTEXT = 2  # pixels beside the box that the smooth upsampling of color looks at


class _Region(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int), ("w", ctypes.c_int), ("h", ctypes.c_int)]


class _Factor(ctypes.Structure):
    _fields_ = [("numerator", ctypes.c_int), ("denominator", ctypes.c_int)]


class TurboJPEGEngine:
    """Decodes file by file with one handle a thread; ctypes releases the GIL, and OpenCV resizes.

    Args:
        path: the library; None: look for one.

    Raises:
        EngineUnavailableError: where there is none, or it is older than version 3.
    """

    name = "turbojpeg"

    def __init__(self, path: Path | None = None) -> None:
        self._library, place = _load([str(path)] if path else list(_candidates()))
        self.version = f"TurboJPEG 3 or newer in {Path(place).name}"
        self._threads = threading.local()

    def decode(self, files: Sequence[bytes], plans: np.ndarray, out: np.ndarray) -> list[str]:
        """Decode boxes into ``out``; see ``Engine.decode``."""
        worker = getattr(self._threads, "worker", None)
        if worker is None:
            worker = self._threads.worker = _Worker(self._library)
        return [worker.decode(data, plan, out) for data, plan in zip(files, plans.tolist(), strict=True)]


class _Worker:
    """What one thread has of its own: a handle of the library, and room for decoded pixels."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handle = self._new_handle()
        self._room = np.empty(0, np.uint8)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.tj3Destroy(self._handle)

    def decode(self, data: bytes, plan: list[int], out: np.ndarray) -> str:
        library, handle = self._library, self._handle
        slot, x, y, width, height, d, flip = plan
        if library.tj3DecompressHeader(handle, data, len(data)):
            return self._error()
        get = library.tj3Get
        unit = _UNIT_WIDTHS.get(get(handle, _PARAM_SUBSAMPLING), 0) // d or 1
        reduced_width = -(-get(handle, _PARAM_WIDTH) // d)
        reduced_height = -(-get(handle, _PARAM_HEIGHT) // d)
        left, top, right, bottom = x // d, y // d, -(-(x + width) // d), -(-(y + height) // d)
        if right > reduced_width or bottom > reduced_height:
            return "the box does not lie in the image"
        start = max(left - _CONTEXT, 0) // unit * unit
        end = min(right + _CONTEXT, reduced_width)
        shape = (bottom - top, end - start, 3)
        if self._room.size < shape[0] * shape[1] * 3:
            self._room = np.empty(shape[0] * shape[1] * 3, np.uint8)
        if (
            library.tj3SetScalingFactor(handle, _Factor(1, d))
            or library.tj3SetCroppingRegion(handle, _Region(start, top, shape[1], shape[0]))
            or library.tj3Decompress8(handle, data, len(data), self._room.ctypes.data, 0, _PIXELS_RGB)
        ):
            return self._error()
        pixels = self._room[: shape[0] * shape[1] * 3].reshape(shape)
        resize_into(pixels[:, left - start : right - start], out[slot], flip=bool(flip))
        return ""

    def _error(self) -> str:
        """Return what went wrong. A handle that met damaged data refuses all that follows, so there is a new one."""
        reason = self._library.tj3GetErrorStr(self._handle).decode("latin-1")
        self._library.tj3Destroy(self._handle)
        self._handle = self._new_handle()
        return reason or "TurboJPEG cannot decode it"

    def _new_handle(self) -> Any:
        handle = self._library.tj3Init(_INIT_DECOMPRESS)
        if not handle:
            raise MemoryError("TurboJPEG could not get memory")
        self._library.tj3Set(handle, _PARAM_STOP_ON_WARNING, 1)
        return handle


def _candidates() -> Iterator[str]:
    found = ctypes.util.find_library("turbojpeg")
    if found:
        yield found
    folders = {sysconfig.get_path("platlib"), sysconfig.get_path("purelib"), *site.getsitepackages()}
    for folder in sorted(folders):
        yield from map(str, sorted(Path(folder).glob("turbojpeg.libs/libturbojpeg*.so*")))


def _load(paths: list[str]) -> tuple[Any, str]:
    reason = "no TurboJPEG library is installed"
    for path in paths:
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            reason = f"its library does not load ({error})"
            continue
        if hasattr(library, "tj3SetCroppingRegion"):
            return _with_types(library), path
        reason = f"`{path}` is older than version 3 and cannot decode a part of an image"
    raise EngineUnavailableError(reason)


def _with_types(library: Any) -> Any:
    handle, integer = ctypes.c_void_p, ctypes.c_int
    library.tj3Init.restype = handle
    library.tj3GetErrorStr.restype = ctypes.c_char_p
    for name, arguments in {
        "tj3Init": [integer],
        "tj3Destroy": [handle],
        "tj3Set": [handle, integer, integer],
        "tj3Get": [handle, integer],
        "tj3GetErrorStr": [handle],
        "tj3DecompressHeader": [handle, ctypes.c_char_p, ctypes.c_size_t],
        "tj3SetScalingFactor": [handle, _Factor],
        "tj3SetCroppingRegion": [handle, _Region],
        "tj3Decompress8": [handle, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, integer, integer],
    }.items():
        getattr(library, name).argtypes = arguments
    return library
