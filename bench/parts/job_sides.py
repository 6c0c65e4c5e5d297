"""Sides of the benchmark of whole jobs: one function each, which trains until its process is ended.

Each side but the raw loop has one part more of a job than the one before: its program, its callbacks and monitors, its
data, its worker with all threads, and the ends of its epochs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.parts.turns import Turns
from ziggurat.callbacks import Callback, Trainer
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import TrainSpec, parse_spec, save_spec
from ziggurat.worker import main as worker
from ziggurat.worker.build import BuiltJob, build_job
from ziggurat.worker.heartbeat_thread import StepClock

__all__ = ["CALLBACKS", "DATA", "ENDS", "FLOOR", "JOB", "PROGRAM", "RAW", "SIDES", "Case"]

RAW, FLOOR = "raw loop", "raw loop that keeps a job's numbers"
PROGRAM, CALLBACKS, DATA = "a job's program", "with callbacks and monitors", "with its data"
JOB, ENDS = "a whole job", "a whole job with the ends of epochs"

_FOREVER = 1_000_000
_SIZE = 8
_CLASSES = 10
_RATE, _MOMENTUM = 1e-5, 0.9
"""The rate is so small that no gradient vanishes: on numbers below the normal ones a processor computes slowly."""
_NETWORKS = {
    "torch": """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc = nn.Linear(64, nclasses)

    def forward(self, x):
        return self.fc(x.flatten(1) / 255)
""",
    "tensorflow": """
class UserModel(Tower):
    @model_property
    def inference(self):
        return slim.fully_connected(slim.flatten(self.x) / 255, self.nclasses, activation_fn=None)

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar("accuracy", accuracy))
        return digits.classification_loss(self.inference, self.y)
""",
}


@dataclass(frozen=True)
class Case:
    """What is trained: one layer on digits of 8 × 8 px that lie in memory.

    Args:
        backend: ``torch`` or ``tensorflow``.
        batch_size: images in a step.
        steps: steps in a turn, which is an epoch.
    """

    backend: str
    batch_size: int
    steps: int

    def spec(self) -> TrainSpec:
        """Return the spec of the job."""
        network = {"source": "file", "path": "one_layer.py", "text": _NETWORKS[self.backend]}
        content = {
            "kind": "train",
            "version": 1,
            "backend": self.backend,
            "network": network,
            "data": {"source": "digits", "options": {"size": _SIZE}},
            "epochs": _FOREVER,
            "steps_per_epoch": self.steps,
            "batch_size": self.batch_size,
            "learning_rate": _RATE,
            "optimizer": "momentum",
            "validation": {"every_epochs": 0},
            "threads": 1,
        }
        parsed = parse_spec(content)
        assert isinstance(parsed, TrainSpec)
        return parsed


@contextmanager
def _job_folder(case: Case) -> Iterator[JobFolder]:
    with tempfile.TemporaryDirectory() as path:
        folder = JobFolder(Path(path, "job"))
        folder.path.mkdir()
        save_spec(case.spec(), folder.spec)
        yield folder


def _silent() -> None:
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what a terminal shows is not measured


# ---- loops by hand


def _raw(case: Case, turns: Turns) -> None:
    _RAW_LOOPS[case.backend](case, turns, keeps_numbers=False)


def _floor(case: Case, turns: Turns) -> None:
    _RAW_LOOPS[case.backend](case, turns, keeps_numbers=True)


def _random_batches(arrays: list[np.ndarray], batch_size: int) -> Iterator[list[np.ndarray]]:
    """Yield batches in a new random order in each epoch, without end."""
    random = np.random.default_rng(0)
    while True:
        order = random.permutation(len(arrays[0]))
        for first in range(0, len(order) - batch_size + 1, batch_size):
            chosen = order[first : first + batch_size]
            yield [array[chosen] for array in arrays]


def _arrays(built: BuiltJob) -> list[np.ndarray]:
    """Return all samples of the training split as the network gets them."""
    batches = [[part.copy() for part in batch] for batch in built.data.train]
    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]


def _raw_torch(case: Case, turns: Turns, *, keeps_numbers: bool) -> None:
    import torch
    from torch import nn

    with _job_folder(case) as folder:
        arrays = _arrays(build_job(case.spec(), folder, StepClock(), Settings(progress="none")))
    torch.set_num_threads(1)
    names: dict[str, Any] = {"nn": nn}
    exec(_NETWORKS["torch"], names)
    module = names["UserModel"](_CLASSES, [_SIZE, _SIZE, 1])
    optimizer = torch.optim.SGD(module.parameters(), _RATE, momentum=_MOMENTUM)
    batches = _random_batches(arrays, case.batch_size)
    while True:
        turns.begin()
        accuracies, errors = [], []
        for _ in range(case.steps):
            images, labels = next(batches)
            x, y = torch.from_numpy(images).float(), torch.from_numpy(labels).long()
            output = module(x.permute(0, 3, 1, 2))  # as a network file gets images
            loss = nn.functional.cross_entropy(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if keeps_numbers:
                found = output.detach().argmax(1)
                accuracies.append((found == y).float().mean())
                errors.append((found != y).float().mean())
            loss.item()
        turns.end()


def _raw_tensorflow(case: Case, turns: Turns, *, keeps_numbers: bool) -> None:
    with _job_folder(case) as folder:
        built = build_job(case.spec(), folder, StepClock(), Settings(progress="none"))
        arrays = _arrays(built)
        program: Any = built.trainer.program
        run, graph = program.session.run, program.graph
        batches = _random_batches(arrays, case.batch_size)
        names = program.summary_names() if keeps_numbers else ["cost"]
        fetched = [graph.train_op, *(graph.train_values[name] for name in names)]
        while True:
            turns.begin()
            for _ in range(case.steps):
                images, labels = next(batches)
                run(fetched, {graph.x: images, graph.y: labels})
            turns.end()


_RAW_LOOPS: dict[str, Callable[..., None]] = {"torch": _raw_torch, "tensorflow": _raw_tensorflow}


# ---- parts of a job


class _First(Callback):
    """Ends a turn before any other callback ends the epoch."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def _after_epoch(self) -> None:
        self._turns.end()


class _Last(Callback):
    """Begins a turn when all other callbacks have begun the epoch."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def _before_epoch(self) -> None:
        self._turns.begin()


class _WholeEpochs(Callback):
    """Ends a turn where the next epoch begins, so that all that ends an epoch is in it."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def _before_epoch(self) -> None:
        if self.epoch_num > 1:
            self._turns.end()
        self._turns.begin()


def _program(case: Case, turns: Turns) -> None:
    """Take the steps of a job's program on batches that lie in memory."""
    with _job_folder(case) as folder:
        built = build_job(case.spec(), folder, StepClock(), Settings(progress="none"))
        batches = _few_batches(built)
        built.trainer.setup()
        program: Any = built.trainer.program
        while True:
            turns.begin()
            for number in range(case.steps):
                program.step(batches[number % len(batches)], ())
            turns.end()
            program.recorded()


def _callbacks(case: Case, turns: Turns) -> None:
    """Train with all of a job but its data and the threads of its worker."""
    _silent()
    with _job_folder(case) as folder:
        built = build_job(case.spec(), folder, StepClock(), Settings(progress="none"))
        monitors = list(built.trainer.monitors)
        callbacks = [each for each in built.trainer.callbacks if each not in monitors]
        trainer = Trainer(
            built.trainer.program,
            _few_batches(built),
            callbacks=[_First(turns), *callbacks],
            monitors=monitors,
            steps_per_epoch=case.steps,
        )
        trainer.add(last=[_Last(turns)])
        trainer.train(_FOREVER)


def _few_batches(built: BuiltJob) -> list[list[np.ndarray]]:
    """Return 16 batches of a job."""
    found: list[list[np.ndarray]] = []
    for batch in built.data.train:
        found.append([part.copy() for part in batch])
        if len(found) == 16:
            break
    built.data.train.close()
    return found


def _data(case: Case, turns: Turns) -> None:
    """Train with all of a job but the threads of its worker."""
    _silent()
    with _job_folder(case) as folder:
        trainer = build_job(case.spec(), folder, StepClock(), Settings(progress="none")).trainer
        trainer.add(first=[_First(turns)], last=[_Last(turns)])
        trainer.train(_FOREVER)


def _job(case: Case, turns: Turns) -> None:
    _work(case, lambda trainer: trainer.add(first=[_First(turns)], last=[_Last(turns)]))


def _job_with_ends(case: Case, turns: Turns) -> None:
    _work(case, lambda trainer: trainer.add(last=[_WholeEpochs(turns)]))


def _work(case: Case, change: Callable[[Trainer], None]) -> None:
    """Execute a job as a worker does."""

    def built(*arguments: Any, **options: Any) -> BuiltJob:
        job = build_job(*arguments, **options)
        change(job.trainer)
        return job

    _silent()
    with _job_folder(case) as folder, patch.object(worker, "build_job", built):
        worker.main([str(folder.path)])


SIDES: dict[str, Callable[[Case, Turns], None]] = {
    RAW: _raw,
    FLOOR: _floor,
    PROGRAM: _program,
    CALLBACKS: _callbacks,
    DATA: _data,
    JOB: _job,
    ENDS: _job_with_ends,
}
"""Side → what trains."""
