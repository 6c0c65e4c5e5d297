"""Selection of the decoding engine: the best one that works here, or the one requested."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, get_args

from ziggurat.dataflow.fast.engine import Engine, EngineReport, EngineUnavailableError
from ziggurat.dataflow.fast.native import NativeEngine
from ziggurat.dataflow.fast.opencv import OpenCVEngine
from ziggurat.dataflow.fast.turbojpeg import TurboJPEGEngine
from ziggurat.errors import DataError, UnknownNameError

__all__ = ["EngineName", "engine", "open_engine"]

EngineName = Literal["auto", "native", "turbojpeg", "opencv"]

_BEST_FIRST: dict[str, Callable[[], Engine]] = {
    "native": NativeEngine,
    "turbojpeg": TurboJPEGEngine,
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
