"""Consumer side of one pass of a runner: the data received from each worker, taken in round-robin order."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ziggurat.dataflow.parallel.flow_program import Begin, FlowTask, Parcel
from ziggurat.dataflow.parallel.map_run import Pace
from ziggurat.dataflow.parallel.program import Fault
from ziggurat.dataflow.parallel.worker_pool import Report, WorkerPool, raised

__all__ = ["Lane", "RoundRobin"]


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
        team: the workers, each with tasks of its own.
        begins: where each begins; the same for all unless they are independent.
        prefetch: at most so many datapoints of all workers are in work or waiting.
        turn: which worker is first.
        independent: a worker's states count its own datapoints, not those of all.
    """

    def __init__(
        self, team: WorkerPool, begins: Sequence[Begin], prefetch: int, *, turn: int = 0, independent: bool = False
    ) -> None:
        self.team = team
        self._turn = turn
        self._independent = independent
        self._count = 0
        self._lanes = [Lane(number, begin) for number, begin in enumerate(begins)]
        self._allowance = max(1, prefetch // len(self._lanes))
        self._pace = Pace(self._allowance, 1, fixed=None if team.workers else 1)
        self._out: dict[int, tuple[Lane, int]] = {}
        self._busy_s = team.busy_s
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
        """Wait until every worker has come to the end of the pass; return where they found it."""
        for lane in self._lanes:
            while lane.last is None:
                lane.points.clear()
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
            else:  # the team does every task that it was given, so the awaited worker gets one, room or not
                self._ask(lane, 1)

    def _supply(self) -> None:
        """Ask for datapoints in the order in which they are taken: no later one fills the memory of an earlier one."""
        items = self._pace.chunk(self.team.item_bytes)
        turn = self.turn
        lanes = [*self._lanes[turn:], *self._lanes[:turn]]
        while self.team.room():
            lane = min(lanes, key=Lane.owes)
            waiting = lane.owes()
            if waiting and waiting + items > self._allowance:
                return
            self._ask(lane, items)

    def _ask(self, lane: Lane, items: int) -> None:
        task, lane.begin = FlowTask(items, lane.begin), None
        lane.asked += items
        submitted = self.team.submit(task, items=items, lane=lane.number, label="its share of the pass")
        self._out[submitted] = lane, items

    def _receive(self, *, wait: bool) -> None:
        received = 0
        for report in self.team.collect(wait=wait):
            lane, items = self._out.pop(report.number)
            lane.reports.append((report, items))
            received += items
        if received:
            self._pace.learn(received, self.team.busy_s - self._busy_s)
            self._busy_s = self.team.busy_s

    def _open(self, lane: Lane) -> None:
        report, items = lane.reports.popleft()
        lane.asked -= items
        parcel = report.value()
        if isinstance(parcel, Fault):
            raise raised(self.team.name, report.worker, parcel) from parcel.exception()
        lane.points.extend(parcel.points)
        lane.marks.extend(parcel.marks)
        if lane.marks:
            self._reached(lane)
        if parcel.stats:
            self.newest[report.worker] = parcel
        if parcel.end is not None or parcel.fault is not None or parcel.broken or not parcel.divided:
            lane.last = parcel
