"""Benchmark of TensorFlow steps: a job's loop, with its callbacks and monitors, against a raw ``session.run`` loop.

All sides run in one process and take turns; batches lie in memory. A job's callbacks and monitors are those that a
worker builds from a spec. The work at the end of an epoch (saving, validation) is not measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from bench.parts.epochs import EpochTurns
from bench.parts.report import Options, Report, Row, interval
from ziggurat.callbacks import Trainer
from ziggurat.engine.program import Program
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import BuiltJob, build_job
from ziggurat.worker.heartbeat_thread import StepClock

__all__ = ["run"]

_ONE_LAYER = """
class UserModel(Tower):
    @model_property
    def inference(self):
        return slim.fully_connected(slim.flatten(self.x), self.nclasses, activation_fn=None)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""
_GOAL, _GOAL_US = 0.35, 60.0
_RAW, _OURS, _CALL = "session.run with feed_dict", "a job's loop", "prepared call alone"


def run(options: Options) -> Report:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        tiny = _measured(
            {"source": "file", "path": "one_layer.py", "text": _ONE_LAYER},
            8,
            1,
            1000,
            options.rounds,
            Path(folder, "1"),
        )
        ratios = np.array(tiny[_OURS].cpu_us) / np.array(tiny[_RAW].cpu_us)
        walls = np.array(tiny[_OURS].wall_us) / np.array(tiny[_RAW].wall_us)
        lenet = _measured("lenet", 28, 64, 937, max(3, options.rounds // 5), Path(folder, "2"), time.thread_time)
    thread = {name: interval(np.array(row.cpu_us), 0) for name, row in lenet.items()}
    own = np.array(lenet[_OURS].cpu_us) - np.array(lenet[_CALL].cpu_us)
    return Report(
        "TensorFlow steps: one layer of 640 weights, batches of one sample, SGD with momentum",
        "step",
        _RAW,
        [
            f"{options.rounds} interleaved rounds of 3000 steps a side in one process, warm-up dropped; CPU time of it",
            f"CPU time, a job's loop / session.run: {interval(ratios)}; goal: at most {_GOAL}",
            f"wall time, a job's loop / session.run: {interval(walls)}",
            f"LeNet, batches of 64, CPU time a step of the thread that trains: a job's loop {thread[_OURS]} µs, "
            f"the prepared call alone {thread[_CALL]}, session.run {thread[_RAW]}",
            f"own CPU time on LeNet, of that thread, beyond the call: {interval(own, 0)} µs a step; "
            f"goal: at most {_GOAL_US:g}",
        ],
        list(tiny.values()),
    )


def _measured(
    network: Any,
    size: int,
    batch_size: int,
    steps: int,
    rounds: int,
    folder: Path,
    cpu_clock: Callable[[], float] = time.process_time,
) -> dict[str, Row]:
    batches = _batches(size, batch_size)
    # A loop of steps that are all alike needs fewer of them than an epoch, in which points of curves are written.
    taken = {_RAW: max(50, steps // batch_size), _CALL: max(200, steps // batch_size), _OURS: steps}
    rows = {name: Row(name, [], []) for name in (_RAW, _CALL, _OURS)}
    with ExitStack() as stack:
        built = []
        for name in rows:
            job = _job(network, size, batch_size, steps, folder / name.replace(" ", "-"))
            stack.callback(job.trainer.program.close)
            built.append(job)
        raw, call, ours = built
        turns = {
            _RAW: _loop(_raw_step(raw.trainer.program), batches, taken[_RAW], cpu_clock),
            _CALL: _loop(_prepared_step(call.trainer.program), batches, taken[_CALL], cpu_clock),
            _OURS: EpochTurns(_on_batches(ours, batches, steps), cpu_clock).take,
        }
        for number in range(rounds + 1):
            for name, take in turns.items():
                cpu_s, wall_s = take()
                if number:  # the first round warms up
                    rows[name].cpu_us.append(1e6 * cpu_s / taken[name])
                    rows[name].wall_us.append(1e6 * wall_s / taken[name])
    return rows


def _job(network: Any, size: int, batch_size: int, steps: int, folder: Path) -> BuiltJob:
    folder.mkdir(parents=True)
    spec = {
        "kind": "train",
        "version": 1,
        "data": {"source": "digits", "options": {"size": size}},
        "network": network,
        "backend": "tensorflow",
        "batch_size": batch_size,
        "optimizer": "momentum",
        "learning_rate": 0.001,
        "steps_per_epoch": steps,
        "monitors": ["events", "tensorboard"],
        "validation": {"every_epochs": 0},
    }
    parsed = parse_spec(spec)
    assert isinstance(parsed, TrainSpec)
    return build_job(parsed, JobFolder(folder), StepClock(), Settings(progress="none"))


def _on_batches(job: BuiltJob, batches: list[list[np.ndarray]], steps: int) -> Trainer:
    """Return a trainer with all of a job but its data pipeline."""
    monitors = list(job.trainer.monitors)
    callbacks = [each for each in job.trainer.callbacks if each not in monitors]
    return Trainer(job.trainer.program, batches, callbacks=callbacks, monitors=monitors, steps_per_epoch=steps)


def _raw_step(program: Any) -> Callable[[list[np.ndarray]], object]:
    run, graph = program.session.run, program.graph
    return lambda batch: run(graph.train_op, {graph.x: batch[0], graph.y: batch[1]})


def _prepared_step(program: Program) -> Callable[[list[np.ndarray]], object]:
    program.declare(())
    return lambda batch: program.step(batch, ())


def _loop(
    step: Callable[[list[np.ndarray]], object],
    batches: list[list[np.ndarray]],
    steps: int,
    cpu_clock: Callable[[], float],
) -> Callable[[], tuple[float, float]]:
    def take() -> tuple[float, float]:
        began = cpu_clock(), time.perf_counter()
        for number in range(steps):
            step(batches[number % len(batches)])
        return cpu_clock() - began[0], time.perf_counter() - began[1]

    return take


def _batches(size: int, batch_size: int) -> list[list[np.ndarray]]:
    random = np.random.default_rng(0)
    shape = (batch_size, size, size, 1)
    return [[random.uniform(0, 255, shape).astype(np.float32), random.integers(0, 10, batch_size)] for _ in range(16)]
