"""One pass of a parallel map: the workers' program, the inputs with the position to resume from, and the chunks.

The stage reads inputs ahead of what it has delivered. To be resumable, it records the child's state at intervals: a
*mark*. A position consists of the newest mark that is not ahead of the oldest unfinished input, and the number of
inputs to skip from there, unmapped.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.parallel.pickling import Points
from ziggurat.dataflow.parallel.worker import Fault, Program
from ziggurat.dataflow.parallel.worker_pool import Report, WorkerPool, raised
from ziggurat.dataflow.random import RandomStream
from ziggurat.dataflow.stages.batching import stack_datapoints
from ziggurat.dataflow.stages.mapping import shallow_copy, takes_rng

__all__ = ["CheckpointInterval", "Chunk", "InputWindow", "MapProgram", "MapRun", "Pace"]

MARK_EVERY_AT_MOST = 4096
"""No more datapoints than these lie between two marks, so no more are read again on resuming."""

_EVERY_AT_LEAST = 32
_EVERY_S = 0.01

_CHUNK_S = 0.002
_CHUNK_AT_MOST = 64
_CHUNK_BYTES = 1 << 20


class CheckpointInterval:
    """Tells when the next mark is due.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._at = 0
        self._at_s = clock()

    def is_due(self, count: int) -> bool:
        """Tell whether to take a mark after ``count`` datapoints; if so, it counts as taken."""
        since = count - self._at
        if since < _EVERY_AT_LEAST:
            return False
        if since < MARK_EVERY_AT_MOST and self._clock() - self._at_s < _EVERY_S:
            return False
        self.taken(count)
        return True

    def taken(self, count: int) -> None:
        """Say that a mark was taken."""
        self._at = count
        self._at_s = self._clock()


@dataclass(frozen=True)
class MapTask:
    """Datapoints to map.

    Args:
        points: the datapoints.
        indices: their numbers in the pass.
        pass_index: number of the pass.
        seed: of the stage's random numbers.
        path: the place of the stage in the pipeline.
    """

    points: Sequence[Any]
    indices: Sequence[int]
    pass_index: int
    seed: int
    path: tuple[int | str, ...]


@dataclass(frozen=True)
class MapResult:
    """Results of the datapoints of a task.

    Args:
        values: one for each datapoint; None: dropped, or failed.
        faults: errors, by place in ``values``.
        batch: instead of the values, all of them stacked.
    """

    values: Sequence[Any]
    faults: dict[int, Fault] = field(default_factory=dict)
    batch: Any = None


class MapProgram(Program):
    """Maps datapoints.

    Args:
        func: the user's function, as ``MapData`` takes it.
        copies: give it a shallow copy, because this process uses the datapoint elsewhere.
        stacks: stack the results, where none is missing.
        portable: results go to another process.
    """

    def __init__(
        self, func: Callable[..., Any], *, copies: bool = True, stacks: bool = False, portable: bool = False
    ) -> None:
        self._func = func
        self._copies = copies
        self._stacks = stacks
        self._portable = portable
        self._takes_rng = takes_rng(func)
        self._stream: RandomStream | None = None

    def for_worker(self, worker: int) -> MapProgram:
        """Return one with a random generator of its own."""
        own = copy.copy(self)
        own._stream = None
        return own

    def run(self, task: MapTask) -> MapResult:
        """Map the datapoints."""
        values: list[Any] = Points()
        faults: dict[int, Fault] = {}
        for index, point in zip(task.indices, task.points, strict=True):
            self.index = index
            try:
                value = self._apply(shallow_copy(point) if self._copies else point, task)
            except Exception as error:
                fault = Fault.of(error, index=index)
                faults[len(values)] = fault.portable() if self._portable else fault
                value = None
            values.append(value)
        if self._stacks and all(value is not None for value in values):
            return MapResult([None] * len(values), batch=stack_datapoints(values, numbers=task.indices))
        return MapResult(values, faults)

    def unsendable(self, error: Exception, result: MapResult) -> Fault:
        """Name the datapoint whose result cannot leave the worker."""
        return Fault.of(
            TypeError(f"the result of the map function cannot be sent to another process: {error}"), index=self.index
        )

    def _apply(self, point: Any, task: MapTask) -> Any:
        if not self._takes_rng:
            return self._func(point)
        stream = self._stream
        if stream is None or (stream.seed, stream.path) != (task.seed, task.path):
            stream = self._stream = RandomStream(task.seed, task.path)
        return self._func(point, rng=stream.seek(task.pass_index, self.index))


class Input(NamedTuple):
    """One datapoint to map.

    Args:
        number: counted from the start of the line.
        place: its number in the child's pass.
        point: the datapoint.
    """

    number: int
    place: int
    point: Datapoint


class Position(NamedTuple):
    """Where a pass stands.

    Args:
        child: state of the child.
        skip: how many of its next inputs are finished.
        done: numbers, counted from the child's state, of inputs beyond these that are finished too.
    """

    child: Any
    skip: int
    done: list[int]


class InputWindow:
    """Reads one pass of ``ds``, or goes on in it.

    Args:
        ds: the child.
        skip: how many inputs to pass over.
        done: numbers of further ones to pass over.
    """

    def __init__(self, ds: DataFlow, skip: int = 0, done: Collection[int] = ()) -> None:
        self._ds = ds
        self._items: Iterator[Datapoint] = iter(ds)
        self._marks: deque[tuple[int, Any]] = deque([(0, ds._ziggurat_state())])
        self._due = CheckpointInterval()
        self._read = 0
        self._finished = skip
        self._ahead = set(done)
        self._to_pass_over = set(done)
        self._skip = skip
        self.ended = False
        self.error: Exception | None = None
        """What the child raised; it is for the consumer after all inputs before it."""

    def pull(self, count: int) -> list[Input]:
        """Return the next inputs, at most ``count``; fewer only at the end of the pass."""
        inputs: list[Input] = []
        ds = self._ds
        while len(inputs) < count and not self.ended:
            if self._due.is_due(self._read):
                self._marks.append((self._read, ds._ziggurat_state()))
            try:
                point = next(self._items)
            except StopIteration:
                self.ended = True
                break
            except Exception as error:
                self.ended, self.error = True, error
                break
            number = self._read
            self._read += 1
            if number >= self._skip and number not in self._to_pass_over:
                inputs.append(Input(number, ds._ziggurat_delivered - 1, point))
        return inputs

    def finish(self, number: int) -> None:
        """Record that the result of input ``number`` reached the consumer."""
        if number != self._finished:
            self._ahead.add(number)
            return
        self._finished += 1
        while self._ahead and self._finished in self._ahead:
            self._ahead.discard(self._finished)
            self._finished += 1
        while len(self._marks) > 1 and self._marks[1][0] <= self._finished:
            self._marks.popleft()

    def position(self) -> Position:
        """Return where the pass stands."""
        number, state = self._marks[0]
        return Position(state, self._finished - number, sorted(each - number for each in self._ahead))

    def close(self) -> None:
        """Stop reading."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()


_NOTHING = MapResult(())


class Pace:
    """Chooses how many datapoints one task has: as many as make a message worth its cost, and every worker busy."""

    def __init__(self, buffer_size: int, workers: int, fixed: int | None = None) -> None:
        self._at_most = max(1, min(_CHUNK_AT_MOST, buffer_size // (2 * max(workers, 1))))
        self._fixed = fixed
        self._items = 0.0
        self._busy_s = 0.0

    def learn(self, items: int, busy_s: float) -> None:
        """Take note of how long some datapoints took."""
        # Older measurements lose half their weight each time, so that the pace follows changes.
        self._items = self._items / 2 + items
        self._busy_s = self._busy_s / 2 + busy_s

    def chunk(self, item_bytes: float) -> int:
        """Return the number of datapoints of the next task.

        Args:
            item_bytes: what each takes in a message, see ``WorkerPool``.
        """
        if self._fixed is not None:
            return self._fixed
        if not self._items:
            return 1
        in_time = _CHUNK_S * self._items / max(self._busy_s, 1e-9)
        in_size = _CHUNK_BYTES / max(item_bytes, 1.0)
        return max(1, min(self._at_most, round(min(in_time, in_size))))


@dataclass
class Chunk:
    """Inputs that were handed out together, and their results.

    Args:
        inputs: the inputs.
        report: set when they are done.
        result: their results; set when it is their turn.
    """

    inputs: list[Input]
    report: Report | None = None
    result: MapResult = _NOTHING

    @property
    def worker(self) -> int:
        """Number of the worker that did it."""
        return self.report.worker if self.report is not None else 0


class MapRun:
    """Drives a pool through one pass.

    Args:
        pool: the workers.
        line: the inputs.
        stream: the stage's random numbers.
        pace: chooses the size of the chunks.
        ordered: results come in the order of the inputs; otherwise as they are ready.
    """

    def __init__(
        self,
        pool: WorkerPool,
        line: InputWindow,
        stream: RandomStream,
        pace: Pace,
        *,
        ordered: bool,
    ) -> None:
        self._pool = pool
        self._line = line
        self._stream = stream
        self._pace = pace
        self._ordered = ordered
        self._out: dict[int, Chunk] = {}
        self._order: deque[Chunk] = deque()
        self._buffered = 0
        self._busy_s = pool.busy_s

    def fill(self, pass_index: int, buffer_size: int) -> None:
        """Hand out inputs while there is room for them, and at least one chunk, which the pool does in any case."""
        while not self._line.ended and (self._pool.room() or not self._buffered):
            size = self._pace.chunk(self._pool.item_bytes)
            if self._buffered and self._buffered + size > buffer_size:
                return
            inputs = self._line.pull(size)
            if inputs:
                self._hand_out(inputs, pass_index)

    def next_chunk(self) -> Chunk | None:
        """Wait for the next chunk; None where nothing is out any more.

        Raises:
            DataWorkerError: where a worker died, or a task failed as a whole.
        """
        order = self._order
        while not (order and order[0].report is not None):
            if not order and not self._out:
                return None
            self._take(self._pool.collect(wait=True))
        chunk = order.popleft()
        self._take(self._pool.collect(wait=False))  # also notices a dead worker before its result is missed
        self._buffered -= len(chunk.inputs)
        assert chunk.report is not None
        result = chunk.report.value()
        if isinstance(result, Fault):
            raise raised(self._pool.name, chunk.worker, result) from result.exception()
        chunk.result = result
        return chunk

    def _hand_out(self, inputs: list[Input], pass_index: int) -> None:
        self._buffered += len(inputs)
        first, last = inputs[0].place, inputs[-1].place
        indices = range(first, last + 1) if last - first + 1 == len(inputs) else [each.place for each in inputs]
        task = MapTask(Points(each.point for each in inputs), indices, pass_index, self._stream.seed, self._stream.path)
        label = f"datapoint {first}" if first == last else f"datapoints {first} to {last}"
        chunk = Chunk(inputs)
        self._out[self._pool.submit(task, items=len(inputs), label=label)] = chunk
        if self._ordered:
            self._order.append(chunk)

    def _take(self, reports: list[Report]) -> None:
        items = 0
        for report in reports:
            chunk = self._out.pop(report.number)
            chunk.report = report
            items += len(chunk.inputs)
            if not self._ordered:
                self._order.append(chunk)
        if items:
            self._pace.learn(items, self._pool.busy_s - self._busy_s)
            self._busy_s = self._pool.busy_s
