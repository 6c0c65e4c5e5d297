"""Pipeline inspection: throughput, time per stage, and the content of datapoints."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np
from tqdm import tqdm

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow, StageStats
from ziggurat.errors import DataError, UsageError

__all__ = ["DataSpeed", "PrintData", "TestDataSpeed"]


@dataclass(frozen=True)
class DataSpeed:
    """What ``TestDataSpeed`` measured.

    Args:
        datapoints: how many were read.
        duration_s: how long it took.
        array_bytes: size of the arrays and bytes in them.
        stages: time of each stage while it was measured, the last stage first.
    """

    datapoints: int
    duration_s: float
    array_bytes: int
    stages: list[StageStats]

    @property
    def per_s(self) -> float:
        """Datapoints a second."""
        return self.datapoints / max(self.duration_s, 1e-9)

    @property
    def slowest(self) -> StageStats:
        """The stage that took most of the time itself."""
        return max(self.stages, key=lambda stage: stage.own_s)

    def __str__(self) -> str:
        rate = f"{self.per_s:.4g} datapoints/s, {self.array_bytes / max(self.duration_s, 1e-9) / 1e6:.4g} MB/s"
        share = self.slowest.own_s / max(self.duration_s, 1e-9)
        return f"{self.datapoints} datapoints in {self.duration_s:.3g} s: {rate}; {self.slowest.stage} took {share:.0%}"


class TestDataSpeed(ProxyDataFlow):
    """Measures how fast a flow is. Iterating it measures first, and then yields the data.

    Measuring changes nothing: the flow is put back to where it stood (a queue cannot be put back).

    Args:
        ds: the flow; it is begun again where it ends.
        size: datapoints to read.
        warmup: datapoints to read before, which are not counted.
        output: where the result is written; by default standard output.
    """

    __test__ = False  # pytest takes the name for a class of tests

    def __init__(self, ds: DataFlow, size: int = 5000, warmup: int = 0, *, output: TextIO | None = None) -> None:
        super().__init__(ds)
        if size < 1 or warmup < 0:
            raise UsageError("`size` is 1 or more, `warmup` 0 or more.", received=f"{size} and {warmup}")
        self.test_size = int(size)
        self.warmup = int(warmup)
        self.output = output

    def start(self) -> DataSpeed:
        """Measure, write a line, and return the numbers."""
        return self.start_test()

    def start_test(self) -> DataSpeed:
        """Do the same: an old name."""
        self.ds.reset_state()
        before = self.ds._ziggurat_state()
        items = self._endless()
        for _ in range(self.warmup):
            next(items)
        stats = self.ds._ziggurat_stats()
        array_bytes = 0
        began = time.perf_counter()
        for _ in tqdm(range(self.test_size), leave=False, disable=None):
            array_bytes += _array_bytes(next(items))
        seconds = time.perf_counter() - began
        items.close()
        self.ds._ziggurat_load_state(before)
        speed = DataSpeed(self.test_size, seconds, array_bytes, _difference(stats, self.ds._ziggurat_stats()))
        (self.output or sys.stdout).write(f"{speed}\n")
        return speed

    def iterate(self) -> Iterator[Datapoint]:
        """Measure once, then yield what the flow yields."""
        if self._ziggurat_pass_index == 0 and not self._ziggurat_resume_index:
            self.start_test()
        yield from self.ds

    def _endless(self) -> Any:
        while True:
            yield from self.ds
            if not self.ds._ziggurat_delivered:
                raise DataError("The flow has no datapoints to measure.")


class PrintData(ProxyDataFlow):
    """Passes the data on and prints what the first datapoints are: types, shapes, ranges, of any depth.

    Args:
        ds: a flow.
        num: how many datapoints of the first pass are printed.
        name: a title.
        max_depth: how deep lists and dicts are opened.
        max_list: how many items of a list are printed.
        output: where it is written; by default standard output.
    """

    def __init__(
        self,
        ds: DataFlow,
        num: int = 1,
        name: str | None = None,
        max_depth: int = 3,
        max_list: int = 3,
        *,
        output: TextIO | None = None,
    ) -> None:
        super().__init__(ds)
        self.num = num
        self.name = name
        self.max_depth = max_depth
        self.max_list = max_list
        self.output = output

    def iterate(self) -> Iterator[Datapoint]:
        """Yield what the flow yields."""
        for point in self.ds:
            number = self._ziggurat_delivered
            if self._ziggurat_pass_index == 0 and number < self.num:
                (self.output or sys.stdout).write(self.describe(point, number))
            yield point

    def describe(self, point: Datapoint, number: int = 0) -> str:
        """Return the text for one datapoint, with a line for each component."""
        title = f"{self.name}: datapoint {number}" if self.name else f"Datapoint {number}"
        return "\n".join([f"{title}: {_kind(point)}", *self._lines(point, 1), ""])

    def _lines(self, value: Any, depth: int) -> list[str]:
        """Return the lines for what is inside a value."""
        if depth > self.max_depth:
            return []
        if isinstance(value, dict):
            inner = [(repr(key), item) for key, item in value.items()]
        elif isinstance(value, (list, tuple)):
            inner = [(str(place), item) for place, item in enumerate(value)]
        else:
            return []
        lines = []
        shown = len(inner) if depth == 1 or isinstance(value, dict) else self.max_list
        for key, item in inner[:shown]:
            lines += [f"{'  ' * depth}{key}: {_kind(item)}", *self._lines(item, depth + 1)]
        return lines + ([f"{'  ' * depth}… {len(inner) - shown} more"] if len(inner) > shown else [])


def _kind(value: Any) -> str:
    """Return a line about one value."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _array_kind(np.asarray(value))
    if isinstance(value, (list, tuple, dict)):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, (bytes, str)) and len(value) > 40:
        return f"{type(value).__name__} of {len(value)}, {value[:40]!r}…"
    text = repr(value)
    return f"{type(value).__name__}, {text if len(text) <= 80 else text[:80] + '…'}"


def _array_kind(array: np.ndarray) -> str:
    if array.dtype.kind not in "biuf" or not array.size:
        return f"{array.dtype} of shape {array.shape}"
    low, high = array.min(), array.max()
    numbers = f"from {low} to {high}" if array.ndim else f"{low}"
    bad = array.size - int(np.isfinite(array).sum()) if array.dtype.kind == "f" else 0
    return f"{array.dtype} of shape {array.shape}, {numbers}" + (f", {bad} not finite" if bad else "")


def _array_bytes(value: Any) -> int:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.nbytes
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_array_bytes, value.values()))
    return sum(map(_array_bytes, value)) if isinstance(value, (list, tuple)) else 0


def _difference(before: list[StageStats], after: list[StageStats]) -> list[StageStats]:
    return [
        StageStats(b.stage, b.path, b.datapoints - a.datapoints, b.total_s - a.total_s, b.own_s - a.own_s)
        for a, b in zip(before, after, strict=True)
    ]
