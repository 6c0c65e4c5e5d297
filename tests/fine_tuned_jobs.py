"""Jobs that are fine-tuned, trained in this process and interrupted, for the tests of either framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.engine.callback import Callback
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.events import HyperparameterChanged, effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import load_train_spec, parse_spec, save_spec
from ziggurat.worker.build import build_job

STEPS = 4
"""Of an epoch."""

EPOCHS = 4


class StopAfter(Callback):
    """Stops a training once it has taken so many steps; 0 for never."""

    def __init__(self, step: int) -> None:
        self._step = step

    def trigger_step(self) -> None:
        if self.global_step == self._step:
            self.trainer.request_stop("a test")


def new_job(folder: Path, backend: str, **fields: Any) -> Path:
    """Return the folder of a job that is to be trained.

    Args:
        folder: where it goes.
        backend: of the job.
        fields: of its spec.
    """
    content = {
        "kind": "train",
        "version": 1,
        "backend": backend,
        "data": {"source": "digits", "options": {"size": 8}},
        "batch_size": 32,
        "epochs": EPOCHS,
        "steps_per_epoch": STEPS,
        "learning_rate": 0.01,
        "monitors": ["events"],
        "sample_predictions": False,
        "seed": 3,
        **fields,
    }
    job = JobFolder(folder)
    folder.mkdir(parents=True)
    save_spec(parse_spec(content), job.spec)
    return folder


def train(folder: Path, stop_after: int = 0) -> None:
    """Train a job from its newest checkpoint to its end, or stop it after a step."""
    job = JobFolder(folder)
    spec = load_train_spec(job.spec)
    built = build_job(spec, job, StopAfter(stop_after), Settings(progress="none"))
    newest = built.store.latest()
    if newest is not None:
        built.trainer.max_epoch = spec.epochs
        built.trainer.load_state(newest[1])
    built.trainer.train(spec.epochs)
    built.trainer.program.close()


def arrays(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the newest checkpoint of a job."""
    newest = CheckpointStore(JobFolder(folder).checkpoints, writable=False).latest()
    assert newest is not None
    return dict(newest[1].arrays)


def costs(folder: Path) -> list[tuple[int, float]]:
    """Return (step, cost) of a job."""
    found = effective_scalars(read_events(JobFolder(folder).events)[0])
    return [(each.step, each.value) for each in found if each.tag == "cost"]


def backbone_rates(folder: Path) -> list[tuple[int, float]]:
    """Return (step, value) of each change of the backbone's rate."""
    found = read_events(JobFolder(folder).events)[0]
    changes = [each for each in found if isinstance(each, HyperparameterChanged)]
    return [(each.step, each.value) for each in changes if each.name == "backbone_rate"]
