"""What a failing test leaves behind: the command that runs it alone; and a limit of time for each, with its name.

A test that hangs fails by a signal in the main thread, which shows where it hung, and the run goes on. Where the
signal finds no way in, as in a call of C, or the clean-up hangs as well, the process ends a little later and says which
test it was in; xdist starts another process in its place.
"""

from __future__ import annotations

import faulthandler
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["LONG_S", "pytest_itemcollected", "pytest_runtest_protocol", "pytest_terminal_summary"]

TESTS = Path(__file__).parent

LONG_S = 600
"""Limit of a test that is ``nightly``, or stands in a folder of long ones; of others, ``timeout`` in pyproject.toml."""

LONG = {"matrix", "slow"}

GRACE_S = 60.0
"""From the limit of a test to the end of the process, where the test did not end by itself."""

ENVIRONMENT = {"torch": "OMP_NUM_THREADS=1"}
"""Folder → variables of its session in ``tools.run_tests``."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give the long tests their limit, where they have none of their own."""
    folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    is_long = folder in LONG or item.get_closest_marker("nightly") is not None
    if is_long and item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(LONG_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process where a test, with its fixtures, goes on long after its limit."""
    limit_s = _limit_of(item)
    if not limit_s:
        return (yield)
    timer = threading.Timer(limit_s + GRACE_S, _give_up, (item.nodeid, limit_s))
    timer.name = f"limit of {item.nodeid}"
    timer.daemon = True
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()
        timer.join()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the command of each test that failed, once."""
    reports = [report for kind in ("failed", "error") for report in terminalreporter.getreports(kind)]
    names = dict.fromkeys(report.nodeid for report in reports if "::" in report.nodeid)
    if names:
        terminalreporter.section("each alone")
        for name in names:
            terminalreporter.line(command_of(name))


def command_of(name: str) -> str:
    """Return the line for a shell that runs one test.

    >>> command_of("tests/torch/test_torch_library.py::test_a[x y]")
    "OMP_NUM_THREADS=1 .venv/bin/python -m pytest 'tests/torch/test_torch_library.py::test_a[x y]'"
    """
    parts = Path(name.partition("::")[0]).parts
    variables = ENVIRONMENT.get(parts[1], "") if len(parts) > 2 else ""
    return f"{variables} .venv/bin/python -m pytest {shlex.quote(name)}".strip()


def _limit_of(item: pytest.Item) -> float:
    """Return the seconds that a test may take; 0 without a limit."""
    marker = item.get_closest_marker("timeout")
    if marker is not None:
        return float(marker.args[0] if marker.args else marker.kwargs.get("timeout", 0))
    return float(item.config.getoption("timeout", None) or 0)


def _give_up(name: str, limit_s: float) -> None:
    file = sys.__stderr__
    assert file is not None
    print(f"\n{name} did not end within {limit_s:g} s, nor in {GRACE_S:g} s more; its process ends.", file=file)
    faulthandler.dump_traceback(file)
    file.flush()
    os._exit(1)
