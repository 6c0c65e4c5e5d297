"""Benchmark of threads: two jobs on PyTorch side by side, with a core that is busy and on a quiet machine.

Each side is two processes that train LeNet, one step after another, as two jobs of a studio do. The busy core is a
process that counts, and belongs to no side.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from bench.parts.report import Options, Report, Row
from bench.parts.rounds import Side, measure
from ziggurat.settings import load_settings
from ziggurat.workspace.frameworks import worker_environment

__all__ = ["run", "train", "two_jobs"]

_BATCH = 64
_STEPS = 10
"""Steps of each job in a round."""

_JOBS = 2
_BY_HAND = "one thread, by hand"
_SIDES = {
    _BY_HAND: {"threads": 1, "is_worker": False},
    "as a worker does": {"threads": 0, "is_worker": True},
    "two threads that sleep when idle": {"threads": 2, "is_worker": True},
    "PyTorch's default": {"threads": None, "is_worker": False},
}
"""Side → threads (0: chosen by the backend, None: PyTorch's), and whether it has the environment of a worker."""


def run(options: Options) -> Report:
    """Measure."""
    rows: list[Row] = []
    left_out: dict[str, str] = {}
    for place, count in (("beside a busy core", 1), ("quiet", 0)):
        sides = [Side(f"{place}: {name}", "bench.threads_torch:two_jobs", dict(each)) for name, each in _SIDES.items()]
        with _busy(count):
            part = measure(Report("", "step", ""), sides, options, batches=_STEPS, batch_size=_JOBS)
        rows += part.rows
        left_out |= part.left_out
    notes = [
        f"{_JOBS} jobs with LeNet at once, batches of {_BATCH} of 28 × 28 px; a job may use all cores",
        f"{options.rounds} interleaved rounds a side of {_STEPS} steps of each job, warm-up dropped; medians",
        "compare the sides of one place",
    ]
    baseline = f"beside a busy core: {_BY_HAND}"
    return Report("Threads of two PyTorch jobs at once", "step", baseline, notes, rows, left_out)


def two_jobs(threads: int | None, *, is_worker: bool) -> Iterator[None]:
    """Yield after each step that both jobs have done.

    Args:
        threads: of each; 0 for those that the backend chooses, None for PyTorch's.
        is_worker: whether they have the environment of a worker.
    """
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    environment = worker_environment(load_settings(plain), plain) if is_worker else plain
    code = f"from bench.threads_torch import train; train({threads!r})"
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(_JOBS)
    ]
    try:
        while True:
            for job in jobs:
                assert job.stdin is not None
                print("step", file=job.stdin, flush=True)
            for job in jobs:
                assert job.stdout is not None
                if not job.stdout.readline():
                    raise RuntimeError("a job has ended")
            yield
    finally:
        for job in jobs:
            job.kill()
            job.wait()


def train(threads: int | None) -> None:
    """Take a step for each line of the standard input, and answer with a line."""
    from ziggurat.backends.torch.backend import TorchBackend
    from ziggurat.engine.backend import ProgramRequest, class_arrays

    backend, cores = TorchBackend(), len(os.sched_getaffinity(0))
    arrays = class_arrays((28, 28, 1), 10)

    def request(count: int) -> ProgramRequest:
        return ProgramRequest(
            network="lenet", batch_size=_BATCH, threads=count, optimizer="momentum", learning_rate=0.01, **arrays
        )

    chosen = backend.choose_threads(request(0), cores) if threads == 0 else threads or 0
    program = backend.build(request(chosen))
    program.declare(())
    random = np.random.default_rng(0)
    batch = [random.random((_BATCH, 28, 28, 1), np.float32), random.integers(0, 10, _BATCH)]
    for _ in sys.stdin:
        program.step(batch, ())
        print(flush=True)


@contextlib.contextmanager
def _busy(count: int) -> Iterator[None]:
    """Keep so many cores busy inside."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
