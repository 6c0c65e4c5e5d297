"""Engines that decode boxes of JPEG files into a batch, and the choice of the best one that works here.

- ``native``: ``jpeg_crops.c`` on libjpeg-turbo, compiled when the package is built. It decodes only the box.
- ``opencv``: decodes the whole file, at reduced size where possible, and resizes the box. It works everywhere.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import cv2
import numpy as np

from ziggurat.errors import DataError, UnknownNameError

__all__ = [
    "Engine",
    "EngineName",
    "EngineReport",
    "EngineUnavailableError",
    "NativeEngine",
    "engine",
    "open_engine",
    "resize_into",
]

PLAN_FIELDS = ("slot", "x", "y", "width", "height", "denominator", "flip")
"""Columns of a plan, (N, 7) int32: place in the batch, box in the full image, reduction, whether mirrored."""

_REDUCED = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}
LIBRARY_NAME = "libziggurat_jpeg.so"
"""File that the build makes beside this module (``hatch_build.py``)."""

_ABI = 1
_LOAD_MODE = getattr(os, "RTLD_LOCAL", 0) | getattr(os, "RTLD_DEEPBIND", 0)  # never another package's libjpeg
EngineName = Literal["auto", "native", "opencv"]


class EngineUnavailableError(Exception):
    """An engine cannot be used here; the message says why."""


@dataclass(frozen=True)
class EngineReport:
    """Which engine decodes.

    Args:
        name: "native" or "opencv".
        version: of the JPEG library behind it.
        passed_over: better engines that cannot be used here, with the reason.
    """

    name: str
    version: str
    passed_over: dict[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """Decodes; one object serves any number of threads."""

    name: str
    version: str

    def decode(self, files: Sequence[bytes], plans: np.ndarray, out: np.ndarray) -> list[str]:
        """Decode the box of each file, reduced by its denominator, resize it bilinearly, and write it into its slot.

        Args:
            files: complete JPEG files of 8 bits, with 1 or 3 components.
            plans: (N, 7) int32, C-contiguous; columns as ``PLAN_FIELDS``. x and y are multiples of the denominator.
            out: (slots, H, W, 3) uint8, RGB, C-contiguous.

        Returns:
            For each file why it was not decoded; empty where it was.
        """
        ...


class OpenCVEngine:
    """Decodes file by file; OpenCV works without the GIL."""

    name = "opencv"
    version = f"OpenCV {cv2.__version__}"

    def decode(self, files: Sequence[bytes], plans: np.ndarray, out: np.ndarray) -> list[str]:
        """Decode boxes into ``out``; see ``Engine.decode``."""
        return [_decode(data, plan, out) for data, plan in zip(files, plans.tolist(), strict=True)]


def resize_into(box: np.ndarray, target: np.ndarray, *, flip: bool, swap: bool = False) -> None:
    """Resize ``box`` bilinearly into ``target``.

    Args:
        box: (H, W, 3) uint8; its rows may lie apart from each other.
        target: (height, width, 3) uint8, C-contiguous.
        flip: mirror left and right.
        swap: exchange the first and the last channel (BGR and RGB).
    """
    height, width = target.shape[:2]
    result: Any = cv2.resize(box, (width, height), dst=target, interpolation=cv2.INTER_LINEAR)
    if swap:
        result = cv2.cvtColor(result, cv2.COLOR_BGR2RGB, dst=target)
    if flip:
        result = cv2.flip(result, 1, dst=target)
    if result is not target:
        np.copyto(target, result)


def _decode(data: bytes, plan: list[int], out: np.ndarray) -> str:
    slot, x, y, width, height, d, flip = plan
    try:
        image: Any = cv2.imdecode(np.frombuffer(data, np.uint8), _REDUCED[d] | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        return str(error)
    if image is None:
        return "OpenCV cannot decode it"
    box = image[y // d : -(-(y + height) // d), x // d : -(-(x + width) // d)]
    if box.shape[:2] != (-(-height // d), -(-width // d)):
        return "the box does not lie in the image"
    resize_into(box, out[slot], flip=bool(flip), swap=True)
    return ""


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
    """Check what the library trusts: a wrong size would write outside of the batch."""
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


_BEST_FIRST: dict[str, Callable[[], Engine]] = {
    "native": NativeEngine,
    "opencv": OpenCVEngine,
}


def engine(name: EngineName = "auto") -> EngineReport:
    """Tell which engine decodes JPEG files here, and why not a better one.

    All engines give the same boxes, and pixels that differ by rounding only; they differ in speed.

    Args:
        name: an engine, or "auto" for the best.

    Raises:
        UnknownNameError: where there is no such engine.
        DataError: where it cannot be used here.
    """
    chosen, passed_over = _choose(name)
    return EngineReport(chosen.name, chosen.version, dict(passed_over))


def open_engine(name: EngineName = "auto") -> Engine:
    """Return the engine that ``engine(name)`` tells of."""
    return _choose(name)[0]


def _choose(name: str) -> tuple[Engine, dict[str, str]]:
    if name not in get_args(EngineName):
        raise UnknownNameError("JPEG engine", name, get_args(EngineName))
    passed_over: dict[str, str] = {}
    for candidate in _BEST_FIRST if name == "auto" else (name,):
        found = _opened(candidate)
        if not isinstance(found, str):
            return found, passed_over
        passed_over[candidate] = found
    raise DataError(
        f"The JPEG engine `{name}` is used where it is installed.",
        received=f"a machine where {passed_over[name]}",
        advice='Use engine="auto", which takes the best that works.',
    )


@functools.cache
def _opened(name: str) -> Engine | str:
    """Return an engine, or why it cannot be used."""
    try:
        return _BEST_FIRST[name]()
    except EngineUnavailableError as error:
        return str(error)
