"""Worker program of a runner: each worker runs the whole flow and delivers its share."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ziggurat.dataflow.base import DataFlow, StageErrors, StageStats
from ziggurat.dataflow.parallel.checkpoint_interval import CheckpointInterval
from ziggurat.dataflow.parallel.column_pickle import Points
from ziggurat.dataflow.parallel.program import Fault, Program, seed_global_generators
from ziggurat.dataflow.parallel.share import Share, ShareBrokenError

__all__ = ["Begin", "FlowProgram", "FlowTask", "Parcel"]

_PARCEL_S = 0.02


@dataclass(frozen=True)
class Begin:
    """Where a pass begins.

    Args:
        seed: of the flow's random numbers.
        path: the place of the flow in the whole pipeline.
        state: state of the flow; None: it stands right.
        skip: datapoints after that state that were delivered.
        dropless: a pass that was divided brought them, so no stage dropped any among them.
        renew: how many passes, that one included, were begun and broken off: begin the next.
        workers: how many divide the pass; 1: the first one computes everything.
        worker: number of an independent worker, which draws numbers of its own.
    """

    seed: int
    path: tuple[int, ...]
    state: Any = None
    skip: int = 0
    dropless: bool = False
    renew: int = 0
    workers: int = 1
    worker: int | None = None


@dataclass(frozen=True)
class FlowTask:
    """Ask for the next datapoints.

    Args:
        items: at most so many.
        begin: begin here first.
    """

    items: int
    begin: Begin | None = None


@dataclass
class Parcel:
    """The next datapoints of one worker's share.

    Args:
        points: the datapoints.
        marks: states of the flow: (datapoints of the pass since its beginning, over all workers; state).
        end: number of datapoints in the pass, where it ended.
        final: state of the flow then.
        fault: the error that ended it.
        broken: the pass cannot be divided any more, see ``share``.
        divided: False where it never could.
        stats: time spent by the stages so far, with a mark.
        errors: datapoints dropped by the stages so far, with a mark.
    """

    points: list[Any] = field(default_factory=Points)
    marks: list[tuple[int, Any]] = field(default_factory=list)
    end: int | None = None
    final: Any = None
    fault: Fault | None = None
    broken: bool = False
    divided: bool = True
    stats: list[StageStats] = field(default_factory=list)
    errors: list[StageErrors] = field(default_factory=list)


class FlowProgram(Program):
    """Runs a flow.

    Args:
        flows: one flow for each worker, or one that each worker has its copy of.
        workers: how many divide a pass.
        independent: nobody divides; each worker runs pass after pass with random numbers of its own.
        portable: datapoints go to another process.
    """

    def __init__(
        self, flows: Sequence[DataFlow], workers: int, *, independent: bool = False, portable: bool = False
    ) -> None:
        self._flows = flows
        self._workers = workers
        self._independent = independent
        self._portable = portable
        self._worker = 0
        self._items: Iterator[Any] = iter(())
        self._count = 0
        self._marks = CheckpointInterval()
        self._divisor = 1
        self._divides = False

    def for_worker(self, worker: int) -> FlowProgram:
        """Return one with a flow of its own."""
        own = copy.copy(self)
        own._worker = worker
        own._flow = self._flows[worker % len(self._flows)]
        own._share = Share()
        own._marks = CheckpointInterval()
        own._divides = not self._independent and self._workers > 1 and own._share.offer(own._flow)
        return own

    def run(self, task: FlowTask) -> Parcel:
        """Make the next datapoints."""
        parcel = Parcel()
        if task.begin is not None:
            self._begin(task.begin)
            self._mark(parcel)
            parcel.divided = self._divides or self._divisor == 1
            if not parcel.divided:
                return parcel
        share = self._share
        until = time.perf_counter() + _PARCEL_S
        try:
            while len(parcel.points) < task.items and (not parcel.points or time.perf_counter() < until):
                place = self._count
                share.mine = mine = share.whole or place % self._divisor == self._worker
                self.index = place
                point = next(self._items)
                self._count = place + 1
                if place == 0 and self._portable:
                    self._seed_apart()
                if not mine:
                    continue
                parcel.points.append(point)
                if self._marks.is_due(self._count):
                    self._mark(parcel)
        except StopIteration:
            parcel.end, parcel.final = self._count, self._flow._ziggurat_state()
            self._count_up(parcel)
        except ShareBrokenError:
            parcel.broken = True
        except Exception as error:
            fault = Fault.of(error, index=self._flow._ziggurat_delivered)
            parcel.fault = fault.portable() if self._portable else fault
        return parcel

    _flow: DataFlow
    _share: Share

    def _begin(self, begin: Begin) -> None:
        self._close()
        flow, share = self._flow, self._share
        self.index = 0
        seed = begin.seed
        if begin.worker is not None:
            words = repr((seed, "worker", begin.worker)).encode()
            seed = int.from_bytes(hashlib.blake2b(words, digest_size=8).digest())
        if (flow._ziggurat_life.seed, flow._ziggurat_life.path) != (seed, begin.path):
            flow._ziggurat_assign_seed(seed, begin.path)
        if begin.state is not None:
            flow._ziggurat_load_state(begin.state)
        self._divisor = begin.workers
        # All workers pass over the same: where any of it may be dropped, it must be computed to be counted.
        share.whole = share.mine = not begin.dropless
        skip = begin.skip
        for _ in range(begin.renew):
            self._opened(skip, seed)
            flow._ziggurat_abandon()
            skip = 0
        items = self._opened(skip, seed)
        share.whole = begin.workers == 1
        self._items = self._passes(items) if self._independent else items
        self._count = 0

    def _opened(self, skip: int, seed: int) -> Iterator[Any]:
        """Begin a pass, or go on, and go through the next datapoints; return the rest."""
        items = iter(self._flow)
        if self._portable:
            seed_global_generators(seed, self._flow._ziggurat_life.path, self._flow._ziggurat_pass_index)
        for _ in zip(range(skip), items):
            pass
        return items

    def _passes(self, items: Iterator[Any]) -> Iterator[Any]:
        while True:
            before = self._count
            yield from items
            if self._count == before:
                return
            items = iter(self._flow)

    def _seed_apart(self) -> None:
        """Let user code that draws from the global generators draw apart, after a shuffle that all must do alike."""
        life = self._flow._ziggurat_life
        seed_global_generators(life.seed, life.path, self._flow._ziggurat_pass_index, "worker", self._worker)

    def _mark(self, parcel: Parcel) -> None:
        self._marks.taken(self._count)
        parcel.marks.append((self._count, self._flow._ziggurat_state()))
        self._count_up(parcel)

    def _count_up(self, parcel: Parcel) -> None:
        parcel.stats, parcel.errors = self._flow._ziggurat_stats(), self._flow._ziggurat_error_counts()

    def _close(self) -> None:
        items, self._items = self._items, iter(())
        close = getattr(items, "close", None)
        if close is not None:
            close()
