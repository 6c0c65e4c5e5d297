"""One pass of a runner: its division among workers that all run the same flow, their program, and its consumer.

Every worker runs the whole flow, and computes only its own datapoints of the last stage: number ``k`` belongs to
worker ``k % workers``. For a datapoint of another worker, a stage may yield ``share.NOT_MINE`` in place of what it
would compute. A stage that supports this has one more method::

    def take_share(self, share):
        self._share = share                 # iterate(): `if not share.mine: yield share.NOT_MINE`
        share.offer(self.ds)

A stage that only passes datapoints on, or combines several into one, needs only ``return share.offer(self.ds)``, and
must handle ``NOT_MINE`` where it looks into datapoints: ``BatchData`` yields it in place of a batch. A return value
of False means that nothing can be skipped. ``bulk()`` returns None where the stage has a share.

Places in the pass are kept, so positions, random numbers and states are those of a serial pass. Where a place would
vanish (a map function returned None), the stage calls ``share.dropped()``: the owner of each following datapoint is
then unknown, and one worker runs the pass from there on. If the last stage has no such method, one worker runs the
pass from the start. A stage that reads ahead of what it yields, such as a shuffle buffer, must not have the method.
"""

from __future__ import annotations

import copy
import hashlib
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.dataflow.base import DataFlow, StageErrors, StageStats
from ziggurat.dataflow.parallel.map_run import CheckpointInterval, Pace
from ziggurat.dataflow.parallel.pickling import Points
from ziggurat.dataflow.parallel.worker import Fault, Program, seed_global_generators
from ziggurat.dataflow.parallel.worker_pool import Report, WorkerPool, raised

__all__ = ["NOT_MINE", "Begin", "FlowProgram", "Parcel", "RoundRobin", "can_share"]

_PARCEL_S = 0.02


class _Mark:
    def __repr__(self) -> str:
        return "NOT_MINE"

    def __reduce__(self) -> str:
        return "NOT_MINE"


NOT_MINE: Final = _Mark()
"""Stands in the place of a datapoint that another worker computes."""


class ShareBrokenError(Exception):
    """A place vanished, so the workers cannot know any more which datapoints are theirs."""


class Share:
    """What one worker computes of a pass; all stages of its flow have the same one."""

    NOT_MINE: Final = NOT_MINE

    def __init__(self) -> None:
        self.mine = True
        """Whether the datapoint that is being made is this worker's."""
        self.whole = True
        """Whether all datapoints are."""

    def offer(self, flow: DataFlow) -> bool:
        """Let ``flow`` skip what is not this worker's; return False where it cannot, and yields every datapoint."""
        stage: Any = flow
        return can_share(flow) and stage._ziggurat_take_share(self) is not False

    def dropped(self) -> None:
        """Say that a datapoint vanishes from the pass.

        Raises:
            ShareBrokenError: unless this worker computes everything anyway.
        """
        if not self.whole:
            raise ShareBrokenError


def can_share(flow: DataFlow) -> bool:
    """Tell whether ``flow`` knows shares, and runs no ``iterate()`` of a subclass that does not."""
    for cls in type(flow).__mro__:
        if "_ziggurat_take_share" in vars(cls):
            return True
        if "_ziggurat_iterate" in vars(cls):
            return False
    return False


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
        independent: nothing is divided; each worker runs pass after pass with random numbers of its own.
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
            # At least one datapoint, so that the consumer goes on; then no longer than a parcel may take.
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
        # `range` comes first: it ends before one datapoint too many is taken.
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


@dataclass
class Lane:
    """What one worker owes and has sent.

    Args:
        number: of the worker.
        begin: goes with the first task.
        marks: (count, state) of the flow, see ``Parcel``: the newest that the consumer has reached, and those ahead.
        points: datapoints that wait for their turn.
        reports: what has come and was not opened yet; it lies in shared memory until then.
        asked: how many datapoints were asked for and are in no opened report.
        taken: how many the consumer has.
        last: the parcel after which nothing comes.
    """

    number: int
    begin: Begin | None
    marks: deque[tuple[int, Any]] = field(default_factory=deque)
    points: deque[Any] = field(default_factory=deque)
    reports: deque[tuple[Report, int]] = field(default_factory=deque)
    asked: int = 0
    taken: int = 0
    last: Parcel | None = None

    def owes(self) -> float:
        """Return how many datapoints were asked for or wait; infinity where nothing comes any more."""
        return math.inf if self.last is not None else self.asked + len(self.points)


class RoundRobin:
    """Takes datapoints from the workers in turn.

    Args:
        pool: the workers, each with tasks of its own.
        begins: where each begins; the same for all unless they are independent.
        prefetch: at most so many datapoints of all workers are in work or waiting.
        turn: which worker is first.
        independent: a worker's states count its own datapoints, not those of all.
    """

    def __init__(
        self, pool: WorkerPool, begins: Sequence[Begin], prefetch: int, *, turn: int = 0, independent: bool = False
    ) -> None:
        self.pool = pool
        self._turn = turn
        self._independent = independent
        self._count = 0
        self._lanes = [Lane(number, begin) for number, begin in enumerate(begins)]
        self._allowance = max(1, prefetch // len(self._lanes))
        self._pace = Pace(self._allowance, 1, fixed=None if pool.workers else 1)
        self._out: dict[int, tuple[Lane, int]] = {}
        self._busy_s = pool.busy_s
        self.newest: dict[int, Parcel] = {}
        """Of each worker, the last parcel that told how much time its stages took."""

    @property
    def turn(self) -> int:
        """Number of the worker that is next."""
        return (self._turn + self._count) % len(self._lanes)

    @property
    def count(self) -> int:
        """How many datapoints were taken."""
        return self._count

    def next_lane(self) -> Lane:
        """Wait until the worker whose turn it is has sent a datapoint, or its last parcel; return its lane."""
        lane = self._lanes[self.turn]
        if not lane.points and lane.last is None:
            self._supply()
            self._receive(wait=False)
            self._wait_for(lane)
        return lane

    def take(self, lane: Lane) -> Any:
        """Return the next datapoint of a lane that has one."""
        lane.taken += 1
        self._count += 1
        return lane.points.popleft()

    def ends(self) -> set[int | None]:
        """Wait until every worker has finished the pass; return the ends that they report."""
        for lane in self._lanes:
            while lane.last is None:
                lane.points.clear()  # beyond the end of the pass
                self._supply()
                self._wait_for(lane)
        return {lane.last.end for lane in self._lanes if lane.last is not None}

    def position(self) -> tuple[Any, int] | None:
        """Return a state of the flow, and how many datapoints were delivered after it; None before the first."""
        marks = [self._reached(lane) for lane in self._lanes if lane.marks]
        if not self._count or not marks:
            return None
        count, state = max(marks, key=lambda mark: mark[0])
        return state, self._count - count

    def positions(self) -> list[tuple[Any, int] | None]:
        """Return the same for each of several independent workers."""
        reached = [self._reached(lane) if lane.taken else None for lane in self._lanes]
        return [mark and (mark[1], lane.taken - mark[0]) for mark, lane in zip(reached, self._lanes, strict=True)]

    def _reached(self, lane: Lane) -> tuple[int, Any]:
        """Return the newest mark that the consumer has reached, and forget those before it."""
        count = lane.taken if self._independent else self._count
        while len(lane.marks) > 1 and lane.marks[1][0] <= count:
            lane.marks.popleft()
        return lane.marks[0]

    def _wait_for(self, lane: Lane) -> None:
        while not lane.points and lane.last is None:
            if lane.reports:
                self._open(lane)
                self._supply()
            elif lane.asked:
                self._receive(wait=True)
            else:  # the pool does every task that it was given, so the awaited worker gets one, room or not
                self._ask(lane, 1)

    def _supply(self) -> None:
        """Ask for datapoints in the order in which they are taken: no later one fills the memory of an earlier one."""
        items = self._pace.chunk(self.pool.item_bytes)
        turn = self.turn
        lanes = [*self._lanes[turn:], *self._lanes[:turn]]
        while self.pool.room():
            lane = min(lanes, key=Lane.owes)
            waiting = lane.owes()
            if waiting and waiting + items > self._allowance:
                return
            self._ask(lane, items)

    def _ask(self, lane: Lane, items: int) -> None:
        task, lane.begin = FlowTask(items, lane.begin), None
        lane.asked += items
        submitted = self.pool.submit(task, items=items, lane=lane.number, label="its share of the pass")
        self._out[submitted] = lane, items

    def _receive(self, *, wait: bool) -> None:
        received = 0
        for report in self.pool.collect(wait=wait):
            lane, items = self._out.pop(report.number)
            lane.reports.append((report, items))
            received += items
        if received:
            self._pace.learn(received, self.pool.busy_s - self._busy_s)
            self._busy_s = self.pool.busy_s

    def _open(self, lane: Lane) -> None:
        report, items = lane.reports.popleft()
        lane.asked -= items
        parcel = report.value()
        if isinstance(parcel, Fault):
            raise raised(self.pool.name, report.worker, parcel) from parcel.exception()
        lane.points.extend(parcel.points)
        lane.marks.extend(parcel.marks)
        if lane.marks:
            self._reached(lane)
        if parcel.stats:
            self.newest[report.worker] = parcel
        if parcel.end is not None or parcel.fault is not None or parcel.broken or not parcel.divided:
            lane.last = parcel
