"""Public parallel maps: by threads, and by processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.parallel.map_program import MapProgram
from ziggurat.dataflow.parallel.options import MapOptions, ProcessOptions, Settings, default_workers
from ziggurat.dataflow.parallel.parallel_map import ParallelMap
from ziggurat.dataflow.parallel.processes import ProcessTeam
from ziggurat.dataflow.parallel.resources import ProcessSettings
from ziggurat.dataflow.parallel.threads import ThreadTeam
from ziggurat.dataflow.parallel.worker_pool import WorkerPool
from ziggurat.dataflow.policy import ErrorPolicy, OnError

__all__ = ["MultiProcessMapData", "MultiProcessMapDataZMQ", "MultiThreadMapData"]


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

    def start_team(self, program: MapProgram) -> WorkerPool:
        """Start the threads."""
        return ThreadTeam(type(self).__name__, program, self.workers)


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

    def start_team(self, program: MapProgram) -> WorkerPool:
        """Start the processes."""
        settings = ProcessSettings(
            self.workers,
            buffer_bytes=self.settings.buffer_bytes,
            start_method=self.settings.start_method,
            seed=self._ziggurat_stream("workers").rng.randint(1 << 31),
        )
        return ProcessTeam(type(self).__name__, program, settings)


MultiProcessMapDataZMQ = MultiProcessMapData
