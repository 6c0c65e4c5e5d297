"""Waits of the tests: for what comes from elsewhere, for what must not come, and for the time that slow code takes.

No other file of the tests sleeps; ``tools.check_sleeps`` sees to it. Programs that tests start in processes of their
own cannot import this module, and block on ``threading.Event().wait`` instead.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["PROCESS_S", "stays", "take_time", "wait_until"]

T = TypeVar("T")

PROCESS_S = 180.0
"""Limit of a wait for what a whole process does first: to start, to import a framework, to train."""


def wait_until(
    condition: Callable[[], T], timeout_s: float = 30.0, *, what: str | Callable[[], str] = "", every_s: float = 0.01
) -> T:
    """Wait until a condition gives something true, and return that.

    Args:
        condition: asked again and again.
        timeout_s: far away: it is reached where something is broken, and not where a machine is busy.
        what: is waited for, or gives the text once it did not come; the source of the condition where it is empty.
        every_s: between two questions.

    Raises:
        AssertionError: naming what did not come, and what the condition gave last.
    """
    last_s = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > last_s:
            awaited = (what() if callable(what) else what) or _source_of(condition)
            raise AssertionError(f"Waited {timeout_s:g} s for: {awaited}. Last value: {found!r}.")
        time.sleep(every_s)
    return found


def stays(condition: Callable[[], object], for_s: float, *, what: str = "", every_s: float = 0.01) -> None:
    """Check that a condition holds now and all the while.

    Only for what must not happen and leaves no other trace; where something can be awaited that comes after it, that is
    faster and surer.

    Raises:
        AssertionError: as soon as it does not hold.
    """
    last_s = time.monotonic() + for_s
    while True:
        found = condition()
        assert found, f"Held for less than {for_s:g} s: {what or _source_of(condition)}. Last value: {found!r}."
        if time.monotonic() > last_s:
            return
        time.sleep(every_s)


def take_time(duration_s: float) -> None:
    """Take as long as the slow part of a program does: a step, a row of data, a callback.

    It stands in for work, inside of what is tested. A test itself never waits this way.
    """
    time.sleep(duration_s)


def _source_of(condition: Callable[[], object]) -> str:
    """Return the line of a lambda, or the name of another condition."""
    name = getattr(condition, "__qualname__", repr(condition))
    if not name.endswith("<lambda>"):
        return name
    try:
        return " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):
        return name
