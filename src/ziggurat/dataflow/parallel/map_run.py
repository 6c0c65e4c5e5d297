"""One pass of a parallel map: splits inputs into chunks, keeps the workers supplied, and orders results."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ziggurat.dataflow.parallel.column_pickle import Points
from ziggurat.dataflow.parallel.input_window import Input, InputWindow
from ziggurat.dataflow.parallel.map_program import MapResult, MapTask
from ziggurat.dataflow.parallel.program import Fault
from ziggurat.dataflow.parallel.worker_pool import Report, WorkerPool, raised
from ziggurat.dataflow.random import RandomStream

__all__ = ["Chunk", "MapRun", "Pace"]

_CHUNK_S = 0.002
_CHUNK_AT_MOST = 64
_CHUNK_BYTES = 1 << 20
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
    """Drives a team through one pass.

    Args:
        team: the workers.
        line: the inputs.
        stream: the stage's random numbers.
        pace: chooses the size of the chunks.
        ordered: results come in the order of the inputs; otherwise as they are ready.
    """

    def __init__(
        self,
        team: WorkerPool,
        line: InputWindow,
        stream: RandomStream,
        pace: Pace,
        *,
        ordered: bool,
    ) -> None:
        self._team = team
        self._line = line
        self._stream = stream
        self._pace = pace
        self._ordered = ordered
        self._out: dict[int, Chunk] = {}
        self._order: deque[Chunk] = deque()
        self._buffered = 0
        self._busy_s = team.busy_s

    def fill(self, pass_index: int, buffer_size: int) -> None:
        """Hand out inputs while there is room for them, and at least one chunk, which the team does in any case."""
        while not self._line.ended and (self._team.room() or not self._buffered):
            size = self._pace.chunk(self._team.item_bytes)
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
            self._take(self._team.collect(wait=True))
        chunk = order.popleft()
        self._take(self._team.collect(wait=False))  # also notices a dead worker before its result is missed
        self._buffered -= len(chunk.inputs)
        assert chunk.report is not None
        result = chunk.report.value()
        if isinstance(result, Fault):
            raise raised(self._team.name, chunk.worker, result) from result.exception()
        chunk.result = result
        return chunk

    def _hand_out(self, inputs: list[Input], pass_index: int) -> None:
        self._buffered += len(inputs)
        first, last = inputs[0].place, inputs[-1].place
        indices = range(first, last + 1) if last - first + 1 == len(inputs) else [each.place for each in inputs]
        task = MapTask(Points(each.point for each in inputs), indices, pass_index, self._stream.seed, self._stream.path)
        label = f"datapoint {first}" if first == last else f"datapoints {first} to {last}"
        chunk = Chunk(inputs)
        self._out[self._team.submit(task, items=len(inputs), label=label)] = chunk
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
            self._pace.learn(items, self._team.busy_s - self._busy_s)
            self._busy_s = self._team.busy_s
