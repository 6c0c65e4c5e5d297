"""Process pool of a dataset creation; no process outlives its parent."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for_handles
from typing import Any, TypeVar

import cv2

from ziggurat.datasets.sources.web_client import address_limits, limit_addresses
from ziggurat.errors import DataWorkerError
from ziggurat.net.ssrf import AllowedAddresses
from ziggurat.records.offered_folders import Watched, watch, watched

__all__ = ["in_processes"]

_Result = TypeVar("_Result")
_AHEAD = 3
"""Tasks that wait for each process: enough that none is idle, few enough that a stop is quick."""


def in_processes(
    function: Callable[..., _Result], shared: Any, tasks: Iterable[tuple[Any, ...]], workers: int
) -> Iterator[_Result]:
    """Yield ``function(shared, *task)`` for all tasks, as they get ready.

    Args:
        function: of a module, so that a process can find it.
        shared: what all calls get; sent to each process once.
        tasks: taken as they are needed.
        workers: processes; 0: everything is done in this one.

    Raises:
        DataWorkerError: where a process was killed.
    """
    if workers == 0:
        for task in tasks:
            yield function(shared, *task)
        return
    # Spawned, not forked: a fork of a process with threads may hang, and OpenCV has some.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin, (function, shared, address_limits(), watched())) as pool:
        waiting: set[Future[_Result]] = set()
        try:
            for task in tasks:
                waiting.add(pool.submit(_call, *task))
                if len(waiting) >= workers * _AHEAD:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (each.result() for each in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in done)
        except BrokenProcessPool:
            raise DataWorkerError(
                "The processes that read the samples must live until all is done.",
                received="one of them was killed",
                advice="Out of memory is the usual reason: use fewer workers. Then go on: what was done is kept.",
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_mine: tuple[Callable[..., Any], Any] | None = None


def _begin(
    function: Callable[..., Any], shared: Any, addresses: AllowedAddresses | None, source: Watched | None
) -> None:
    global _mine
    _mine = (function, shared)
    limit_addresses(addresses)
    watch(source)
    cv2.setNumThreads(1)  # the processes are the parallelism
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), name="lifeline", daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for_handles([sentinel])
    os._exit(1)


def _call(*task: Any) -> Any:
    assert _mine is not None
    function, shared = _mine
    return function(shared, *task)
