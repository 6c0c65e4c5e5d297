"""Public runners: by processes, and by threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.parallel.flow_program import FlowProgram
from ziggurat.dataflow.parallel.options import RunnerOptions, Settings, default_workers
from ziggurat.dataflow.parallel.processes import ProcessTeam
from ziggurat.dataflow.parallel.resources import ProcessSettings
from ziggurat.dataflow.parallel.runner import Runner
from ziggurat.dataflow.parallel.threads import ThreadTeam
from ziggurat.dataflow.parallel.worker_pool import WorkerPool
from ziggurat.errors import UsageError

__all__ = [
    "MultiProcessPrefetchData",
    "MultiProcessRunner",
    "MultiProcessRunnerZMQ",
    "MultiThreadPrefetchData",
    "MultiThreadRunner",
    "PrefetchData",
    "PrefetchDataZMQ",
]


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

    def start_team(self, program: FlowProgram, workers: int) -> WorkerPool:
        """Start the processes."""
        settings = ProcessSettings(
            workers,
            lanes=True,
            buffer_bytes=self.settings.buffer_bytes,
            start_method=self.settings.start_method,
            seed=self._ziggurat_stream("workers").rng.randint(1 << 31),
        )
        return ProcessTeam(type(self).__name__, program, settings)


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

    def start_team(self, program: FlowProgram, workers: int) -> WorkerPool:
        """Start the threads."""
        return ThreadTeam(type(self).__name__, program, workers, lanes=True)

    def close(self) -> None:
        """End the threads; they start again when the flow is iterated."""
        super().close()
        for flow in self._flows[1:]:
            flow._ziggurat_close()


PrefetchData = MultiProcessRunner
MultiProcessPrefetchData = MultiProcessRunner
PrefetchDataZMQ = MultiProcessRunnerZMQ
MultiThreadPrefetchData = MultiThreadRunner
