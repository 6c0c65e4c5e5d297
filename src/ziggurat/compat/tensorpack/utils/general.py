"""Times as text, random generators, progress bars, and what is done once."""

from __future__ import annotations

import ctypes.util
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import tqdm

from ziggurat.dataflow.random import fix_rng_seed as fix_seed_of_flows

__all__ = [
    "change_env",
    "execute_only_once",
    "find_library_full_path",
    "fix_rng_seed",
    "get_rng",
    "get_tqdm",
    "get_tqdm_kwargs",
    "humanize_time_delta",
]

_UNITS: Final = (("day", 86400), ("hour", 3600), ("minute", 60))

_done_at: set[tuple[str, int]] = set()
_sequence: np.random.SeedSequence | None = None


def humanize_time_delta(sec: float) -> str:
    """Return a time in words.

    Args:
        sec: in seconds.

    >>> humanize_time_delta(3661), humanize_time_delta(2.34)
    ('1 hour 1 minute 1 second', '2.34 seconds')
    """
    if sec < 0:
        return f"-{humanize_time_delta(-sec)}"
    if sec == 0:
        return "0 second"
    rest, parts = sec, []
    for name, size in _UNITS:
        many, rest = divmod(rest, size)
        if many:
            parts.append(_counted(int(many), name))
    seconds = int(rest) if parts else round(rest, 3)
    if seconds:
        parts.append(_counted(seconds, "second"))
    return " ".join(parts)


def _counted(many: float, name: str) -> str:
    return f"{many:g} {name}" if many == 1 else f"{many:g} {name}s"


@contextmanager
def change_env(name: str, val: str) -> Iterator[None]:
    """Give a variable of the environment another value inside the block.

    Args:
        name: of the variable.
        val: its value in the block.
    """
    before = os.environ.get(name)
    os.environ[name] = val
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


def fix_rng_seed(seed: int) -> None:
    """Make all random numbers to come the same with each run: of flows, and of ``get_rng``.

    Generators get streams that differ, from one seed.

    Args:
        seed: at least 0.
    """
    global _sequence
    _sequence = np.random.SeedSequence(int(seed))
    fix_seed_of_flows(int(seed))


def get_rng(obj: Any = None) -> np.random.RandomState:
    """Return a new random generator.

    Args:
        obj: whose it is; of no meaning here.
    """
    source = np.random.SeedSequence() if _sequence is None else _sequence.spawn(1)[0]
    return np.random.RandomState(np.random.MT19937(source))


def execute_only_once() -> bool:
    """Return True the first time that its line of the program is reached, and False from then on."""
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None:
        return True
    place = caller.f_code.co_filename, caller.f_lineno
    if place in _done_at:
        return False
    _done_at.add(place)
    return True


def get_tqdm_kwargs(**kwargs: Any) -> dict[str, Any]:
    """Return options of a progress bar: often refreshed at a terminal, rarely in a file.

    Args:
        kwargs: other options, which win.
    """
    interval_s = 0.5 if sys.stderr.isatty() else 15.0
    return {
        "smoothing": 0.5,
        "dynamic_ncols": True,
        "ascii": True,
        "bar_format": "{l_bar}{bar}|{n_fmt}/{total_fmt}[{elapsed}<{remaining},{rate_noinv_fmt}]",
        "mininterval": interval_s,
        **kwargs,
    }


def get_tqdm(*args: Any, **kwargs: Any) -> Any:
    """Return a progress bar of ``tqdm``, with the options of ``get_tqdm_kwargs``."""
    return tqdm.tqdm(*args, **get_tqdm_kwargs(**kwargs))


def find_library_full_path(name: str) -> str | None:
    """Return the file of a shared library; None where it is not found.

    Args:
        name: without ``lib`` and suffix.
    """
    return ctypes.util.find_library(name)
