"""Samples of the tests of parallel stages: small flows, map functions, a bound on time, scripts in own processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.parallel import MultiProcessMapData, MultiThreadMapData
from ziggurat.dataflow.sources import DataFromList
from ziggurat.dataflow.stages.mapping import MapData

MAPS = [MultiThreadMapData, MultiProcessMapData]


def numbers(count: int, *, shuffle: bool = False) -> DataFlow:
    """Return a flow of [0], [1], …"""
    return DataFromList([[number] for number in range(count)], shuffle=shuffle)


def double(dp: list[int]) -> list[int]:
    return [2 * dp[0]]


def noisy(dp: list[int], rng: np.random.RandomState) -> list[Any]:
    """Return the number, a random one, and an array of both."""
    drawn = int(rng.randint(1_000_000))
    return [dp[0], drawn, np.array([dp[0], drawn])]


def odd_only(dp: list[int], rng: np.random.RandomState) -> list[Any] | None:
    return noisy(dp, rng) if dp[0] % 2 else None


def plain(points: Any) -> list[Any]:
    """Return datapoints with lists in place of arrays, so that they can be compared."""
    return [_plain(point) for point in points]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(each) for each in value)
    return value


def serial(ds: DataFlow, func: Callable[..., Any], seed: int = 5, *, passes: int = 1) -> list[list[Any]]:
    """Return what a serial map yields, pass by pass."""
    flow = MapData(ds, func).seed(seed)
    return [plain(flow) for _ in range(passes)]


def children() -> list[psutil.Process]:
    """Return the processes below this one that live."""
    below = psutil.Process().children(recursive=True)
    return [each for each in below if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@contextlib.contextmanager
def bound(seconds: float, what: str) -> Iterator[None]:
    """Fail where the block has not ended after so many seconds, and say what hangs."""

    def give_up(_number: int, _frame: Any) -> None:
        raise AssertionError(f"This hangs; it has not ended after {seconds:g} s: {what}.")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def start_script(folder: Path, text: str, **options: Any) -> subprocess.Popen[str]:
    """Run a script, as a user's, in a process of its own."""
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        **options,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    """Wait until a script has said something."""
    assert process.stdout is not None
    return process.stdout.readline()


def run_script(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a script to its end."""
    with start_script(folder, text) as process:
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
