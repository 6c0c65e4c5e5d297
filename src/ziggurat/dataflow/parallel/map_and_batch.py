"""Mapping and batching in the same worker: one message per batch, and no stacking in the consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Unpack

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.parallel.input_window import InputWindow
from ziggurat.dataflow.parallel.map_program import MapProgram
from ziggurat.dataflow.parallel.map_run import Chunk, Pace
from ziggurat.dataflow.parallel.maps import MultiProcessMapData
from ziggurat.dataflow.parallel.options import BatchOptions
from ziggurat.dataflow.parallel.worker_pool import WorkerPool
from ziggurat.dataflow.stacking import stack_datapoints
from ziggurat.errors import UsageError

__all__ = ["MultiProcessMapAndBatchData", "MultiProcessMapAndBatchDataZMQ"]


class MultiProcessMapAndBatchData(MultiProcessMapData):
    """``BatchData(MapData(ds, map_func), batch_size)``, mapped and stacked by processes.

    Args:
        ds: the flow to map; it is run in this process.
        num_proc: how many processes; 0: none, the consumer does it.
        map_func: see ``MapData``.
        batch_size: datapoints in a batch.
        buffer_size: at most so many datapoints (not batches) are read ahead, in work, or waiting; None: 10 batches.
        options: ``remainder=True`` also yields a smaller last batch; the others are those of ``MultiProcessMapData``.

    Where the function drops datapoints, the consumer puts the batches together from there on.
    """

    def __init__(
        self,
        ds: DataFlow,
        num_proc: int | None,
        map_func: Callable[..., Datapoint | None],
        batch_size: int,
        buffer_size: int | None = None,
        **options: Unpack[BatchOptions],
    ) -> None:
        if batch_size < 1:
            raise UsageError("`batch_size` is 1 or more.", received=batch_size)
        self.batch_size = int(batch_size)
        self.remainder = options.pop("remainder", False)
        on_error = options.pop("on_error", "raise")
        rest: Any = options
        buffer = 10 * self.batch_size if buffer_size is None else max(buffer_size, self.batch_size)
        super().__init__(ds, num_proc, map_func, buffer_size=buffer, on_error=on_error, **rest)

    def __len__(self) -> int:
        """Return the number of batches in a pass: an upper bound where the function drops datapoints."""
        full, over = divmod(super().__len__(), self.batch_size)
        return full + (1 if over and self.remainder else 0)

    def program(self) -> MapProgram:
        """Return what the workers run."""
        return MapProgram(self.func, copies=self.workers == 0, stacks=True, portable=self.workers > 0)

    def pace(self) -> Pace:
        """Let each task be a batch."""
        return Pace(self.buffer_size, self.workers, fixed=self.batch_size)

    def outcomes(self, chunks: Iterator[Chunk], line: InputWindow, team: WorkerPool) -> Iterator[Datapoint]:
        """Yield the batches."""
        kept: deque[tuple[int, Any]] = deque()
        for chunk in chunks:
            batch = chunk.result.batch
            full = len(chunk.inputs) == self.batch_size
            if batch is not None and full and all(point is None for _, point in kept):
                self._finish(line, [number for number, _ in kept] + [each.number for each in chunk.inputs])
                kept.clear()
                yield batch
                continue
            kept.extend(self._points(chunk, team))
            while sum(point is not None for _, point in kept) >= self.batch_size:
                yield self._cut(kept, line)
        if self.remainder and any(point is not None for _, point in kept):
            yield self._cut(kept, line)

    def _points(self, chunk: Chunk, team: WorkerPool) -> Iterator[tuple[int, Any]]:
        """Yield the number and the result of each input."""
        result = chunk.result
        for place, each in enumerate(chunk.inputs):
            if place in result.faults:
                self.judge(result.faults[place], team, chunk.worker)
            point = result.values[place] if result.batch is None else _row(result.batch, place)
            yield each.number, point

    def _cut(self, kept: deque[tuple[int, Any]], line: InputWindow) -> Datapoint:
        """Make a batch of the first datapoints of ``kept``, and take them out."""
        points: list[Any] = []
        numbers: list[int] = []
        while kept and len(points) < self.batch_size:
            number, point = kept.popleft()
            numbers.append(number)
            if point is not None:
                points.append(point)
        self._finish(line, numbers)
        return stack_datapoints(points, first=numbers[0])

    def _finish(self, line: InputWindow, numbers: list[int]) -> None:
        for number in numbers:
            line.finish(number)


def _row(batch: Any, place: int) -> Any:
    """Return one datapoint of a batch."""
    if isinstance(batch, dict):
        return {name: _row(component, place) for name, component in batch.items()}
    if isinstance(batch, list):
        return [_row(component, place) for component in batch]
    return batch[place]


MultiProcessMapAndBatchDataZMQ = MultiProcessMapAndBatchData
