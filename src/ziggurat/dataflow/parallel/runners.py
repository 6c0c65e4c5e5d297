"""Runners: several workers run a whole flow as one serial pass, by processes or by threads."""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow, StageErrors, StageStats, UnknownLengthError
from ziggurat.dataflow.flow_state import Position as PassPosition
from ziggurat.dataflow.parallel.flow_program import Begin, FlowProgram, Parcel, RoundRobin, can_share
from ziggurat.dataflow.parallel.options import RunnerOptions, Settings, default_workers
from ziggurat.dataflow.parallel.process_pool import ProcessSettings, ProcessWorkerPool
from ziggurat.dataflow.parallel.worker_pool import InlineWorkerPool, PoolLifetime, ThreadWorkerPool, WorkerPool, raised
from ziggurat.dataflow.random import fresh_seed
from ziggurat.errors import DataError, UsageError

__all__ = [
    "MultiProcessPrefetchData",
    "MultiProcessRunner",
    "MultiProcessRunnerZMQ",
    "MultiThreadPrefetchData",
    "MultiThreadRunner",
    "PrefetchData",
    "PrefetchDataZMQ",
]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Rest:
    """Where a worker's flow is to begin.

    Args:
        state: state of the flow; None: as it was made.
        skip: datapoints delivered after that state.
        dropless: no stage dropped any among them.
        renew: how many passes, that one included, were begun and broken off; the next one is to begin.
        start: number of the pool whose workers stand there already, see ``PoolLifetime.starts``.
    """

    state: Any = None
    skip: int = 0
    dropless: bool = False
    renew: int = 0
    start: int = 0


class Runner(ProxyDataFlow):
    """Runs ``ds`` in workers, and yields one serial pass: the same datapoints in the same order.

    Every worker runs the flow, and delivers every n-th datapoint; what is not its own it passes over. Results, order,
    random numbers and states do not depend on the number of workers. The stages must know how to pass over datapoints
    (see ``share``); where the last one does not, one worker runs it all.

    A flow of one's own class, or one that gives other data in every process, cannot be divided so. With
    ``independent=True`` each worker runs its copy, for ever, with random numbers of its own, and their datapoints come
    in turn, as many as one pass has (without end where ``ds`` has no length): faster, but with duplicates, as in
    Tensorpack.

    Args:
        ds: the flow; the workers run it, this process does not.
        workers: how many; 0: none, the consumer runs it.
        prefetch: at most so many datapoints are in work or waiting.
        settings: the rest.
    """

    def __init__(self, ds: DataFlow, workers: int, prefetch: int, *, settings: Settings) -> None:
        super().__init__(ds)
        if prefetch < 1:
            raise UsageError("A runner prefetches at least 1 datapoint.", received=prefetch)
        self.workers = workers
        self.prefetch = int(prefetch)
        self.settings = settings
        self._ziggurat_spans_passes = settings.independent
        self._lifetime = PoolLifetime()
        self._lanes: RoundRobin | None = None
        self._rest = [_Rest()] * (max(workers, 1) if settings.independent else 1)
        self._turn = 0
        self._stopped_at: tuple[Any, int] | None = None
        self._divisor = 1 if settings.independent else max(workers, 1)
        self._newest: dict[int, Parcel] = {}

    in_processes: bool = True
    """True where the workers are processes."""

    @abstractmethod
    def start_pool(self, program: FlowProgram, workers: int) -> WorkerPool:
        """Start so many workers; only called where there are any."""

    def flows(self) -> Sequence[DataFlow]:
        """Return the flows that the workers run: one for each, or one for all."""
        return (self.ds,)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints."""
        user = object()
        pool = self._lifetime.claim(user, self._start)
        finished = False
        try:
            for point in self._in_turn(pool) if self.settings.independent else self._divided(pool):
                yield point
                self._lifetime.check(user)
            finished = True
        finally:
            if not finished:
                self._stop()
            self._lifetime.rest(user, finished=finished)

    def worker_pids(self) -> list[int]:
        """Return the ids of the worker processes that live now."""
        return self._lifetime.pids()

    # ---- a pass

    def _divided(self, pool: WorkerPool) -> Iterator[Datapoint]:
        """Yield a pass that the workers divide between them."""
        if self._rest[0].state is None:
            self._rest = [_Rest(self.ds._ziggurat_state())]
        while True:
            lanes = self._lanes = RoundRobin(pool, [self._begin_at(self._rest[0])] * self._divisor, self.prefetch)
            last = yield from self._points(lanes)
            assert last is not None
            if last.divided and not last.broken:
                break
            self._tell("drops datapoints, so that their division is unknown" if last.broken else None)
            self._stop()
            self._settle(broken_off=False)
            self._divisor = 1
            pool.abandon()
        self._raise_fault(last, lanes)
        ends = lanes.ends()
        # A flow that gives other data in each process would yield duplicates and gaps without any other sign.
        if ends != {lanes.count}:
            raise DataError(
                "Every worker of a runner must get the same datapoints from the flow.",
                received="passes of " + " and ".join(sorted(map(str, ends | {lanes.count}))) + " datapoints",
                advice="Let the flow draw from its `rng` only, and read the same files in the same order; or say "
                "`independent=True`, if duplicates do not matter.",
            )
        pool.abandon()  # what was asked for beyond the end
        self._lanes = None
        self._rest = [_Rest(last.final, start=self._lifetime.starts)]

    def _in_turn(self, pool: WorkerPool) -> Iterator[Datapoint]:
        """Yield what independent workers make, each in its turn, for as long as a pass of the flow is."""
        lanes = self._lanes
        if lanes is None or lanes.pool is not pool:
            begins = [self._begin_at(rest, worker) for worker, rest in enumerate(self._rest)]
            lanes = self._lanes = RoundRobin(pool, begins, self.prefetch, turn=self._turn, independent=True)
        try:
            at_most: int | None = len(self.ds) - self._ziggurat_resume_index
        except UnknownLengthError:
            at_most = None
        last = yield from self._points(lanes, at_most)
        if last is not None:
            self._raise_fault(last, lanes)

    def _points(self, lanes: RoundRobin, at_most: int | None = None) -> Generator[Datapoint, None, Parcel | None]:
        """Yield what the lanes bring; return the parcel after which nothing comes, if it came to that."""
        until = None if at_most is None else lanes.count + at_most
        while until is None or lanes.count < until:
            lane = lanes.next_lane()
            self._newest.update(lanes.newest)
            if not lane.points:
                return lane.last
            yield lanes.take(lane)
        return None

    def _raise_fault(self, last: Parcel, lanes: RoundRobin) -> None:
        if last.fault is not None:
            raise raised(lanes.pool.name, lanes.turn, last.fault) from last.fault.exception()

    def _begin_at(self, rest: _Rest, worker: int | None = None) -> Begin:
        # The workers of this pool stand there already, so they need no state.
        state = None if rest.start == self._lifetime.starts else rest.state
        path = (*self._ziggurat_life.path, 0)
        return Begin(
            self._ziggurat_life.seed or 0, path, state, rest.skip, rest.dropless, rest.renew, self._divisor, worker
        )

    def _start(self) -> WorkerPool:
        if self._divisor > 1 and not can_share(self.ds):
            self._tell(None)
            self._divisor = 1
        count = self.workers if self.settings.independent else min(self.workers, self._divisor)
        flows, independent = self.flows(), self.settings.independent
        program = FlowProgram(flows, max(count, 1), independent=independent, portable=self.in_processes)
        return self.start_pool(program, count) if count else InlineWorkerPool(type(self).__name__, program)

    def _tell(self, why: str | None) -> None:
        _logger.warning(
            "%s: %s %s, and one of the %d workers runs it all. A parallel map after a source that costs little uses "
            "them all; so does `independent=True`: each runs a copy of its own, with duplicates, as in Tensorpack.",
            type(self).__name__,
            type(self.ds).__name__,
            why or "cannot be divided",
            self.workers,
        )

    # ---- between passes

    def reset_state(self) -> None:
        """Choose the seed. The workers prepare the flow: they are the ones who use it."""
        if self._ziggurat_life.seed is None:
            self._ziggurat_seed(fresh_seed())
        self._ziggurat_life.prepared_by = os.getpid()

    def _ziggurat_begin_pass(self, position: PassPosition) -> None:
        if not self.settings.independent:
            self._settle(broken_off=True)
        super()._ziggurat_begin_pass(position)

    def _ziggurat_abandon(self) -> None:
        if self.settings.independent:
            super()._ziggurat_abandon()
            return
        is_under_way = not self._ziggurat_ended
        self._stop()
        if is_under_way and self._stopped_at is None:  # resumed or begun, and never went on
            self._stopped_at = (None, -1)
        self._settle(broken_off=True)
        life = self._ziggurat_life
        position = life.loaded or life.position
        life.loaded, position.ended, position.children_if_over = None, True, None

    def _ziggurat_abandon_children(self) -> None:
        """Leave the flow alone: the workers run it, perhaps just now, and begin the next pass by ``_rest``."""

    def _stop(self) -> None:
        """Keep where a pass stands that was not run to its end, and let go of everything else."""
        lanes, self._lanes = self._lanes, None
        if lanes is None:
            return
        if self.settings.independent:
            self._turn = lanes.turn
            found = zip(lanes.positions(), self._rest)
            self._rest = [replace(rest, start=0) if at is None else _Rest(*at) for at, rest in found]
            return
        self._stopped_at = lanes.position() or (None, -1)

    def _settle(self, *, broken_off: bool) -> None:
        """Let the next pass begin where the last one was stopped, or after it."""
        stopped, self._stopped_at = self._stopped_at, None
        if stopped is None:
            return
        state, skip = stopped
        if skip < 0:  # it had delivered nothing
            self._rest = [replace(self._rest[0], renew=self._rest[0].renew + broken_off, start=0)]
        else:
            self._rest = [_Rest(state, skip, self._divisor > 1, int(broken_off))]

    def _standing(self) -> _Rest:
        """Return where to go on with the pass that runs, or was stopped, or comes next."""
        at = self._stopped_at if self._lanes is None else self._lanes.position()
        return self._rest[0] if at is None or at[1] < 0 else _Rest(*at, self._divisor > 1)

    # ---- state

    def children_state(self) -> list[Any]:
        """Return a state of the flow at or before what was delivered."""
        state = None if self.settings.independent else self._standing().state
        return super().children_state() if state is None else [state]

    def children_state_if_over(self) -> list[Any]:
        """Return the state of the flow from which the next pass begins, see ``stage_state``."""
        return self.children_state()

    def stage_state(self) -> Any:
        """Return how many datapoints were delivered after that state; where independent workers stand."""
        if not self.settings.independent:
            rest = self._standing()
            own = {"skip": rest.skip, "dropless": rest.dropless, "renew": rest.renew}
            return own if rest.skip or rest.renew else None
        turn, at = self._turn, [None] * len(self._rest)
        if self._lanes is not None:
            turn, at = self._lanes.turn, self._lanes.positions()
        workers = [[rest.state, rest.skip] if each is None else list(each) for each, rest in zip(at, self._rest)]
        return {"turn": turn, "workers": workers}

    def load_state(self, state: dict[str, Any]) -> None:
        """Let the next ``iter()`` go on where ``state()`` was called on a flow of the same shape."""
        self._lifetime.close()  # no worker may run the flow while it is changed
        super().load_state(state)
        self._lanes = self._stopped_at = None
        own = state["own"] or {}
        if not self.settings.independent:
            rest = _Rest(state["children"][0], **own)
            if state["ended"] and not rest.renew and (rest.skip or not rest.state["ended"]):
                rest = replace(rest, renew=1)  # the stage above has broken the pass off
            self._rest = [rest]
            return
        if len(own["workers"]) != len(self._rest):
            raise DataError(
                "A runner of independent workers goes on with as many as it had.",
                received=f"the state of {len(own['workers'])} workers for {len(self._rest)}",
                advice="Use as many workers, or a runner that divides each pass: its state fits any number.",
            )
        self._turn = own["turn"]
        self._rest = [_Rest(each, skip) for each, skip in own["workers"]]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lanes": None}  # a pass under way cannot go to another process

    def stats(self) -> list[StageStats]:
        """Return the time spent: what the consumer waited, then the workers, together and by stage."""
        life = self._ziggurat_life
        busy_s = self._lifetime.busy_s
        mine = StageStats(type(self).__name__, life.path, life.datapoints, life.total_s, life.total_s)
        workers = StageStats(f"{mine.stage} workers", life.path, life.datapoints, busy_s, busy_s)
        below = merged_stats(parcel.stats for parcel in self._newest.values())
        return [mine, workers, *(below or self.ds._ziggurat_stats())]

    def error_counts(self) -> list[StageErrors]:
        """Return what the stages dropped because of errors, as far as the workers have told."""
        return merged_errors(parcel.errors for parcel in self._newest.values())

    def close(self) -> None:
        """End the workers; they start again when the flow is iterated."""
        self._stop()
        self._lifetime.close()
        super().close()


class MultiProcessRunner(Runner):
    """Runs a flow in processes; one pass is one serial pass, see ``Runner``.

    Args:
        ds: the flow. It is pickled and run by the processes only; lambdas, and classes of a script or notebook, may be
            in it.
        num_prefetch: at most so many datapoints are in work or waiting.
        num_proc: how many processes; 0: none, the consumer runs the flow.
        options: ``independent=True`` for copies of the flow with different random numbers, as in Tensorpack;
            ``start_method`` and ``buffer_bytes`` as for ``MultiProcessMapData``, whose rules on the life of large
            arrays hold here too.
    """

    def __init__(self, ds: DataFlow, num_prefetch: int, num_proc: int, **options: Unpack[RunnerOptions]) -> None:
        workers = default_workers(num_proc, "num_proc")
        super().__init__(ds, workers, num_prefetch, settings=Settings.of(options))
        self.in_processes = workers > 0

    def start_pool(self, program: FlowProgram, workers: int) -> WorkerPool:
        """Start the processes."""
        settings = ProcessSettings(
            workers,
            lanes=True,
            buffer_bytes=self.settings.buffer_bytes,
            start_method=self.settings.start_method,
            seed=self._ziggurat_stream("workers").rng.randint(1 << 31),
        )
        return ProcessWorkerPool(type(self).__name__, program, settings)


class MultiProcessRunnerZMQ(MultiProcessRunner):
    """The same, with Tensorpack's other order of arguments.

    Args:
        ds: the flow.
        num_proc: how many processes.
        hwm: at most so many datapoints are in work or waiting.
        options: see ``MultiProcessRunner``.
    """

    def __init__(self, ds: DataFlow, num_proc: int = 1, hwm: int = 50, **options: Unpack[RunnerOptions]) -> None:
        super().__init__(ds, hwm, num_proc, **options)


class MultiThreadRunner(Runner):
    """Runs copies of a flow in threads; one pass is one serial pass, see ``Runner``.

    Args:
        get_df: makes a flow; called once for each thread. All of them must be alike.
        num_prefetch: at most so many datapoints are in work or waiting.
        num_thread: how many threads; 0: none, the consumer runs the flow.
        options: ``independent=True``: see ``MultiProcessRunner``.
    """

    in_processes = False

    def __init__(
        self,
        get_df: Callable[[], DataFlow],
        num_prefetch: int,
        num_thread: int,
        **options: Unpack[RunnerOptions],
    ) -> None:
        workers = default_workers(num_thread, "num_thread")
        flows = [get_df() for _ in range(max(workers, 1))]
        if len({id(flow) for flow in flows}) < len(flows):
            raise UsageError(
                "`get_df` makes a new flow each time it is called.",
                received="the same object twice",
                advice="Build the flow inside the function: threads cannot share one.",
            )
        super().__init__(flows[0], workers, num_prefetch, settings=Settings.of(options))
        self._flows = flows

    def flows(self) -> Sequence[DataFlow]:
        """Return one flow for each thread."""
        return self._flows

    def start_pool(self, program: FlowProgram, workers: int) -> WorkerPool:
        """Start the threads."""
        return ThreadWorkerPool(type(self).__name__, program, workers, lanes=True)

    def close(self) -> None:
        """End the threads; they start again when the flow is iterated."""
        super().close()
        for flow in self._flows[1:]:
            flow._ziggurat_close()


PrefetchData = MultiProcessRunner


MultiProcessPrefetchData = MultiProcessRunner


PrefetchDataZMQ = MultiProcessRunnerZMQ


MultiThreadPrefetchData = MultiThreadRunner


def merged_stats(of_workers: Iterable[Sequence[StageStats]]) -> list[StageStats]:
    """Return one row a stage: times are added up over the workers, each of which passes through the whole pass."""
    merged: list[StageStats] = []
    for rows in zip(*of_workers):
        first = rows[0]
        merged.append(
            StageStats(
                first.stage,
                first.path,
                max(row.datapoints for row in rows),
                sum(row.total_s for row in rows),
                sum(row.own_s for row in rows),
            )
        )
    return merged


def merged_errors(of_workers: Iterable[Sequence[StageErrors]]) -> list[StageErrors]:
    """Return one row a stage: that of the worker who dropped most. Where any is dropped, every worker sees them all."""
    most: dict[tuple[int, ...], StageErrors] = {}
    for rows in of_workers:
        for row in rows:
            known = most.get(row.path)
            if known is None or row.counts.total > known.counts.total:
                most[row.path] = row
    return list(most.values())
