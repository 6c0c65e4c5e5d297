"""Queue of one model: requests that wait are computed in one batch; one that is alone does not wait.

All methods run in the thread of the event loop. A fast model also computes there, because a change of threads would
take longer than the model; a slow one computes in a thread of its own, while requests gather.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ["BatchLimits", "Batcher", "QueueFullError"]

Run = Callable[[np.ndarray], Mapping[str, np.ndarray]]

_INLINE_S: Final = 0.0005
"""Longest expected time of a batch for which the event loop computes itself."""

_SHARE: Final = 0.1
"""Of the newest batch in the mean time of a sample."""


class QueueFullError(Exception):
    """The queue takes no more now.

    Args:
        retry_after_s: when it probably does, in whole seconds.
    """

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"full for {retry_after_s} s")
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, kw_only=True)
class BatchLimits:
    """Limits of a queue.

    Args:
        max_batch: samples of one batch.
        max_wait_s: longest time that a batch gathers while requests still arrive.
        max_samples: samples that wait.
        max_bytes: bytes of the inputs that wait.
        max_queue_s: longest expected time in the queue.
        exact: whether each sample is computed alone, so that its bits do not depend on its neighbors.
    """

    max_batch: int = 64
    max_wait_s: float = 0.002
    max_samples: int = 4096
    max_bytes: int = 256 << 20
    max_queue_s: float = 10.0
    exact: bool = False


class Batcher:
    """The queue of a model.

    Args:
        run: computes a batch; it may be exchanged between batches.
        limits: of the queue.
        sample_s: expected time of one sample, in seconds.
        executor: with a single thread, for slow models.
        batched: called with the size of each batch.
    """

    def __init__(
        self,
        run: Run,
        limits: BatchLimits,
        sample_s: float,
        executor: Executor,
        batched: Callable[[int], None] = lambda _samples: None,
    ) -> None:
        self._run = run
        self._limits = limits
        self._sample_s = sample_s
        self._executor = executor
        self._batched = batched
        self._waiting: deque[tuple[np.ndarray, asyncio.Future[Mapping[str, np.ndarray]]]] = deque()
        self._samples = 0
        self._bytes = 0
        self._is_scheduled = False
        self._is_running = False

    @property
    def waiting(self) -> int:
        """Samples that wait or are being computed."""
        return self._samples

    def exchange(self, run: Run, sample_s: float) -> None:
        """Compute what comes from now on by another model."""
        self._run, self._sample_s = run, sample_s

    async def predict(self, batch: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return name → output of a batch (N, …), which shares a larger one with others.

        Raises:
            QueueFullError: if too much waits.
            Exception: what the model raises for these samples.
        """
        limits, count = self._limits, len(batch)
        expected_s = self._samples * self._sample_s
        is_full = (
            self._samples + count > limits.max_samples
            or self._bytes + batch.nbytes > limits.max_bytes
            or expected_s > limits.max_queue_s
        )
        if is_full and self._samples:  # one that is alone is as large as the limits of a request allow
            raise QueueFullError(max(1, math.ceil(min(expected_s, 60.0))))
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Mapping[str, np.ndarray]] = loop.create_future()
        self._waiting.append((batch, answer))
        self._samples += count
        self._bytes += batch.nbytes
        if not self._is_scheduled and not self._is_running:
            self._is_scheduled = True
            loop.call_soon(self._gather, loop, len(self._waiting), loop.time() + limits.max_wait_s)
        return await answer

    def _gather(self, loop: asyncio.AbstractEventLoop, before: int, until: float) -> None:
        """Begin a batch, unless further requests arrived since the last look, and there is time and room for more."""
        now = len(self._waiting)
        if before < now < self._limits.max_batch and loop.time() < until:
            loop.call_soon(self._gather, loop, now, until)
            return
        self._is_scheduled = False
        self._begin(loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        entries = self._take()
        if not entries:
            return
        if self._sample_s * sum(len(batch) for batch, _ in entries) <= _INLINE_S:
            self._finish(loop, entries, _computed(self._run, entries, self._limits))
            return
        self._is_running = True
        run = self._run
        done = loop.run_in_executor(self._executor, _computed, run, entries, self._limits)
        done.add_done_callback(lambda future: self._finish(loop, entries, future.result()))

    def _take(self) -> list[tuple[np.ndarray, Any]]:
        """Return the requests of the next batch, without those whose clients are gone."""
        entries: list[tuple[np.ndarray, Any]] = []
        count = 0
        while self._waiting and (not entries or count + len(self._waiting[0][0]) <= self._limits.max_batch):
            batch, answer = self._waiting.popleft()
            if answer.done():
                self._release(batch)
                continue
            entries.append((batch, answer))
            count += len(batch)
        return entries

    def _finish(
        self, loop: asyncio.AbstractEventLoop, entries: list[tuple[np.ndarray, Any]], computed: tuple[float, list[Any]]
    ) -> None:
        taken_s, results = computed
        count = sum(len(batch) for batch, _ in entries)
        self._batched(count)
        self._sample_s += _SHARE * (taken_s / max(1, count) - self._sample_s)
        for (batch, answer), result in zip(entries, results, strict=True):
            self._release(batch)
            if answer.done():
                continue
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)
        self._is_running = False
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._gather, loop, len(self._waiting), loop.time() + self._limits.max_wait_s)

    def _release(self, batch: np.ndarray) -> None:
        self._samples -= len(batch)
        self._bytes -= batch.nbytes


def _computed(run: Run, entries: list[tuple[np.ndarray, Any]], limits: BatchLimits) -> tuple[float, list[Any]]:
    """Return the seconds that it took, and the outputs or the error of each entry."""
    began = time.perf_counter()
    at_once = 1 if limits.exact else limits.max_batch
    batches = [batch for batch, _ in entries]
    try:
        joined = batches[0] if len(batches) == 1 else np.concatenate(batches)
        outputs = _in_parts(run, joined, at_once)
    except Exception as error:  # it may be that of one of them alone
        if len(batches) == 1:
            return time.perf_counter() - began, [error]
        return time.perf_counter() - began, [_alone(run, batch, at_once) for batch in batches]
    results, start = [], 0
    for batch in batches:
        results.append({name: each[start : start + len(batch)] for name, each in outputs.items()})
        start += len(batch)
    return time.perf_counter() - began, results


def _alone(run: Run, batch: np.ndarray, at_once: int) -> Any:
    try:
        return _in_parts(run, batch, at_once)
    except Exception as error:
        return error


def _in_parts(run: Run, batch: np.ndarray, at_once: int) -> Mapping[str, np.ndarray]:
    if len(batch) <= at_once:
        return run(batch)
    parts = [run(batch[start : start + at_once]) for start in range(0, len(batch), at_once)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
