"""Worker program of a parallel map: the user's function, applied to a chunk of datapoints."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ziggurat.dataflow.parallel.column_pickle import Points
from ziggurat.dataflow.parallel.program import Fault, Program
from ziggurat.dataflow.random import RandomStream
from ziggurat.dataflow.stacking import stack_datapoints
from ziggurat.dataflow.stages.components import shallow_copy
from ziggurat.dataflow.stages.mapping import takes_rng

__all__ = ["MapProgram", "MapResult", "MapTask"]


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
        copies: give it a shallow copy, because the datapoint belongs to somebody else in this process.
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
