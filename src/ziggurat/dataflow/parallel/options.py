"""Options shared by the parallel stages, and their defaults."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypedDict

from ziggurat.dataflow.parallel.launch import StartMethod
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.errors import UsageError

__all__ = ["BatchOptions", "MapOptions", "ProcessOptions", "RunnerOptions", "Settings", "default_workers"]

_MEGABYTE = 1 << 20


class MapOptions(TypedDict, total=False):
    """Options of a parallel map.

    Args:
        strict: False: what Tensorpack calls non-strict: ``ordered=False, endless=True``.
        ordered: False: deliver what is ready first. A pass still has each datapoint once.
        endless: begin again at the end of ``ds``; a pass never ends.
    """

    strict: bool
    ordered: bool
    endless: bool


class ProcessOptions(MapOptions, total=False):
    """Options of a parallel map in processes.

    Args:
        start_method: ``"forkserver"``, ``"spawn"`` or ``"fork"``; chosen by default.
        buffer_bytes: shared memory of the stage; it grows where the datapoint that is next does not fit.
    """

    start_method: StartMethod | None
    buffer_bytes: int


class BatchOptions(ProcessOptions, total=False):
    """Options of a parallel map that batches.

    Args:
        remainder: also yield a smaller last batch.
        on_error: see ``MapData``.
    """

    remainder: bool
    on_error: OnError | ErrorPolicy


class RunnerOptions(TypedDict, total=False):
    """Options of a runner.

    Args:
        independent: every worker runs a copy of its own, with random numbers of its own, as in Tensorpack.
        start_method: ``"forkserver"``, ``"spawn"`` or ``"fork"``; chosen by default.
        buffer_bytes: shared memory of the stage; it grows where the datapoint that is next does not fit.
    """

    independent: bool
    start_method: StartMethod | None
    buffer_bytes: int


@dataclass(frozen=True)
class Settings:
    """All of them, with their defaults."""

    strict: bool = True
    ordered: bool | None = None
    endless: bool | None = None
    independent: bool = False
    start_method: StartMethod | None = None
    buffer_bytes: int = 256 * _MEGABYTE

    @classmethod
    def of(cls, options: Any) -> Settings:
        """Return the settings that keyword arguments mean.

        Raises:
            UsageError: for a buffer that holds nothing.
        """
        settings = cls(**options)
        if settings.buffer_bytes < _MEGABYTE:
            raise UsageError("`buffer_bytes` is at least 1 MiB.", received=settings.buffer_bytes)
        return settings

    @property
    def in_order(self) -> bool:
        """Tell whether datapoints come in the order of a serial pass."""
        return self.strict if self.ordered is None else self.ordered

    @property
    def never_ends(self) -> bool:
        """Tell whether a pass goes on for ever."""
        return not self.strict if self.endless is None else self.endless


def default_workers(given: int | None, name: str) -> int:
    """Return the number of workers: what was given, or one for each processor that this process may use.

    Raises:
        UsageError: for a negative number.
    """
    if given is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if given < 0:
        raise UsageError(f"`{name}` is 0 (no workers: the consumer does it) or more.", received=given)
    return int(given)
