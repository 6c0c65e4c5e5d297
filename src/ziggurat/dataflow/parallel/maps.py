"""Parallel maps: by threads, by processes, and with batching in the workers."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Unpack

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow, StageStats
from ziggurat.dataflow.flow_state import Position as PassPosition
from ziggurat.dataflow.parallel.map_run import Chunk, InputWindow, MapProgram, MapRun, Pace
from ziggurat.dataflow.parallel.options import BatchOptions, MapOptions, ProcessOptions, Settings, default_workers
from ziggurat.dataflow.parallel.process_pool import ProcessSettings, ProcessWorkerPool
from ziggurat.dataflow.parallel.worker import Fault
from ziggurat.dataflow.parallel.worker_pool import InlineWorkerPool, PoolLifetime, ThreadWorkerPool, WorkerPool, raised
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.stages.batching import stack_datapoints
from ziggurat.dataflow.stages.repeating import FixedSizeData, RepeatedData
from ziggurat.errors import UsageError

__all__ = [
    "MultiProcessMapAndBatchData",
    "MultiProcessMapAndBatchDataZMQ",
    "MultiProcessMapData",
    "MultiProcessMapDataZMQ",
    "MultiThreadMapData",
]


class ParallelMap(ProxyDataFlow):
    """Runs a map function in workers, and yields what a serial map would.

    The datapoints, their order, and the random numbers that ``func`` gets do not depend on the number of workers, the
    buffer, or who is faster. Inputs are read ahead in the consumer's thread while it asks for datapoints. State and
    resume are exact; on resuming, the inputs that were in the buffer are read again.

    Args:
        ds: the flow to map; it is run in this process.
        func: see ``MapData``.
        workers: how many; 0: none, the consumer maps.
        buffer_size: at most so many datapoints are read ahead, in work, or waiting.
        on_error: see ``MapData``. What it raises is a ``DataWorkerError`` (a ``DatapointError`` too).
        settings: the rest.
    """

    def __init__(
        self,
        ds: DataFlow,
        func: Callable[..., Datapoint | None] | None,
        workers: int,
        buffer_size: int,
        on_error: OnError | ErrorPolicy,
        *,
        settings: Settings,
    ) -> None:
        name = type(self).__name__
        if not callable(func):
            raise UsageError(f"{name} needs a function: `map_func=…`.", received=repr(func))
        if buffer_size < 1:
            raise UsageError("`buffer_size` is 1 or more.", received=buffer_size)
        super().__init__(RepeatedData(ds, -1) if settings.never_ends else ds)
        self.func = func
        self.workers = workers
        self.buffer_size = int(buffer_size)
        self.policy = ErrorPolicy.of(on_error)
        self._source = ds
        self.settings = settings
        self._lifetime = PoolLifetime()
        self._line: InputWindow | None = None
        self._loaded: tuple[int, list[int]] = (0, [])

    @abstractmethod
    def start_pool(self, program: MapProgram) -> WorkerPool:
        """Start the workers; only called where there are any."""

    def __len__(self) -> int:
        """Return the length of the flow that is read: an upper bound where the function drops datapoints."""
        return len(self._source)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the mapped datapoints."""
        user = object()
        pool = self._lifetime.claim(user, self._start)
        line = self._line = InputWindow(self.ds, *self._loaded)
        self._loaded = (0, [])
        finished = False
        try:
            run = MapRun(pool, line, self._ziggurat_stream("map"), self.pace(), ordered=self.settings.in_order)
            for point in self.outcomes(self._chunks(run), line, pool):
                yield point
                self._lifetime.check(user)
            if line.error is not None:
                raise line.error
            finished = True
            self._line = None
        finally:
            line.close()
            self._lifetime.rest(user, finished=finished)

    def outcomes(self, chunks: Iterator[Chunk], line: InputWindow, pool: WorkerPool) -> Iterator[Datapoint]:
        """Yield the results of the inputs, and tell ``line`` what is finished before each yield."""
        for chunk in chunks:
            faults = chunk.result.faults
            for place, (each, value) in enumerate(zip(chunk.inputs, chunk.result.values, strict=True)):
                line.finish(each.number)
                if value is not None:
                    yield value
                    continue
                if place in faults:
                    self.judge(faults[place], pool, chunk.worker)

    def judge(self, fault: Fault, pool: WorkerPool, worker: int) -> None:
        """Let the policy decide about a datapoint that failed; return where it is dropped."""
        cause = fault.exception()
        try:
            self._ziggurat_policy.take(fault.failure, cause)
        except Exception as error:
            # The policy raises the bare error; the consumer gets one that names the worker and has its traceback.
            raise raised(pool.name, worker, fault, advice=getattr(error, "advice", "")) from cause

    def pace(self) -> Pace:
        """Return what chooses the size of the tasks."""
        return Pace(self.buffer_size, self.workers)

    def program(self) -> MapProgram:
        """Return what the workers run."""
        return MapProgram(self.func)

    def worker_pids(self) -> list[int]:
        """Return the ids of the worker processes that live now."""
        return self._lifetime.pids()

    # ---- state

    def children_state(self) -> list[Any]:
        """Return the state of ``ds`` at or before the first input that is not finished."""
        return super().children_state() if self._line is None else [self._line.position().child]

    def stage_state(self) -> Any:
        """Return which inputs after that state are finished."""
        skip, done = self._loaded if self._line is None else self._line.position()[1:]
        return {"skip": skip, "done": done} if skip or done else None

    def load_stage_state(self, state: Any) -> None:
        """Take back which inputs are finished."""
        self._line = None
        self._loaded = (0, [])
        if state is not None and not self._ziggurat_life.position.ended:
            self._loaded = (state["skip"], state["done"])

    def stats(self) -> list[StageStats]:
        """Return the time spent, this stage first: what the consumer waited, then what the workers worked."""
        mine, *rest = super().stats()
        busy_s = self._lifetime.busy_s
        return [mine, StageStats(f"{mine.stage} workers", mine.path, mine.datapoints, busy_s, busy_s), *rest]

    def close(self) -> None:
        """End the workers; they start again when the flow is iterated."""
        self._lifetime.close()
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_line": None}  # a pass under way cannot go to another process

    # ---- inside

    def _start(self) -> WorkerPool:
        program = self.program()
        if self.workers == 0:
            return InlineWorkerPool(type(self).__name__, program)
        return self.start_pool(program)

    def _chunks(self, run: MapRun) -> Iterator[Chunk]:
        while True:
            run.fill(self.ds._ziggurat_pass_index, self.buffer_size)
            chunk = run.next_chunk()
            if chunk is None:
                return
            yield chunk

    def _ziggurat_begin_pass(self, position: PassPosition) -> None:
        self._settle()
        super()._ziggurat_begin_pass(position)

    def _ziggurat_abandon(self) -> None:
        self._settle()
        self._loaded = (0, [])  # of a pass that was resumed and never went on
        super()._ziggurat_abandon()

    def _settle(self) -> None:
        """After a pass that was broken off: forget what was read ahead.

        A child that goes on from pass to pass must go on after what was *delivered*, so it is led there; so is one that
        repeats another flow, whose passes it counts: how far it was read ahead is a matter of time.
        """
        line, self._line = self._line, None
        if line is None:
            return
        line.close()
        if counts_passes(self.ds):
            position = line.position()
            self.ds._ziggurat_load_state(position.child)
            items = iter(self.ds)
            for _ in zip(range(position.skip), items):
                pass
            del items
            self.ds._ziggurat_abandon()


def counts_passes(flow: DataFlow) -> bool:
    """Tell whether a pass of ``flow``, or of any flow that it reads, may begin where the last one stopped, or may have
    several passes of another flow in it.
    """
    repeats = isinstance(flow, RepeatedData | FixedSizeData)
    return repeats or flow._ziggurat_spans_passes or any(map(counts_passes, flow._ziggurat_children()))


class MultiThreadMapData(ParallelMap):
    """``MapData`` with the function run by threads: for functions that release the interpreter's lock, as OpenCV's do.

    Args:
        ds: the flow to map.
        num_thread: how many threads; None: one for each processor; 0: the consumer maps.
        map_func: see ``MapData``.
        buffer_size: at most so many datapoints are read ahead, in work, or waiting.
        on_error: see ``MapData``; what it raises is a ``DataWorkerError``.
        options: ``ordered=False`` to deliver what is ready first, ``endless=True`` for a pass without end,
            ``strict=False`` for both, as in Tensorpack.
    """

    def __init__(
        self,
        ds: DataFlow,
        num_thread: int | None = None,
        map_func: Callable[..., Datapoint | None] | None = None,
        *,
        buffer_size: int = 200,
        on_error: OnError | ErrorPolicy = "raise",
        **options: Unpack[MapOptions],
    ) -> None:
        workers = default_workers(num_thread, "num_thread")
        super().__init__(ds, map_func, workers, buffer_size, on_error, settings=Settings.of(options))

    def start_pool(self, program: MapProgram) -> WorkerPool:
        """Start the threads."""
        return ThreadWorkerPool(type(self).__name__, program, self.workers)


class MultiProcessMapData(ParallelMap):
    """``MapData`` with the function run by processes.

    Args:
        ds: the flow to map; it is run in this process.
        num_proc: how many processes; None: one for each processor; 0: the consumer maps.
        map_func: see ``MapData``. It is pickled; lambdas and functions of a script or notebook may be used too.
        buffer_size: at most so many datapoints are read ahead, in work, or waiting.
        on_error: see ``MapData``; what it raises is a ``DataWorkerError``.
        options: those of ``MultiThreadMapData``; ``start_method``: ``"forkserver"`` (the default), ``"spawn"`` or
            ``"fork"``; ``buffer_bytes``: the shared memory through which arrays go (default 256 MiB).

    Large arrays of a datapoint lie in shared memory, without a copy, for as long as the consumer holds them; they may
    be written to. While the consumer holds more than half of ``buffer_bytes``, it gets copies. A process that the
    consumer forks must not use such arrays after the consumer has dropped them.
    """

    def __init__(
        self,
        ds: DataFlow,
        num_proc: int | None = None,
        map_func: Callable[..., Datapoint | None] | None = None,
        *,
        buffer_size: int = 200,
        on_error: OnError | ErrorPolicy = "raise",
        **options: Unpack[ProcessOptions],
    ) -> None:
        workers = default_workers(num_proc, "num_proc")
        super().__init__(ds, map_func, workers, buffer_size, on_error, settings=Settings.of(options))

    def program(self) -> MapProgram:
        """Return what the workers run; without workers, what the consumer runs."""
        return MapProgram(self.func, copies=self.workers == 0, portable=self.workers > 0)

    def start_pool(self, program: MapProgram) -> WorkerPool:
        """Start the processes."""
        settings = ProcessSettings(
            self.workers,
            buffer_bytes=self.settings.buffer_bytes,
            start_method=self.settings.start_method,
            seed=self._ziggurat_stream("workers").rng.randint(1 << 31),
        )
        return ProcessWorkerPool(type(self).__name__, program, settings)


MultiProcessMapDataZMQ = MultiProcessMapData


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

    def outcomes(self, chunks: Iterator[Chunk], line: InputWindow, pool: WorkerPool) -> Iterator[Datapoint]:
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
            kept.extend(self._points(chunk, pool))
            while sum(point is not None for _, point in kept) >= self.batch_size:
                yield self._cut(kept, line)
        if self.remainder and any(point is not None for _, point in kept):
            yield self._cut(kept, line)

    def _points(self, chunk: Chunk, pool: WorkerPool) -> Iterator[tuple[int, Any]]:
        """Yield the number and the result of each input."""
        result = chunk.result
        for place, each in enumerate(chunk.inputs):
            if place in result.faults:
                self.judge(result.faults[place], pool, chunk.worker)
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
