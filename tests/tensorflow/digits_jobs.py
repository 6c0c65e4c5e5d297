"""Jobs for the numbered behaviors of DIGITS: specs that the worker executes by its own entry, in this process."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tensorflow_networks import SMALL

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import global_random_state, load_global_random_state
from ziggurat.events import AttemptEnded, ErrorRaised, Event, effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import TrainSpec, parse_spec, save_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.worker.main import main as work
from ziggurat.worker.stopping import StopRequest

Kind = TypeVar("Kind", bound=Event)

LINEAR = """
class UserModel(Tower):
    @model_property
    def inference(self):
        return slim.fully_connected(slim.flatten(self.x * 0.0125), self.nclasses, activation_fn=None, scope='fc1')

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


@dataclass(frozen=True)
class Attempt:
    """A job after one attempt.

    Args:
        folder: of the job.
        exit_code: of the worker.
        events: all that it said.
    """

    folder: Path
    exit_code: int
    events: list[Event]

    @property
    def outcome(self) -> str:
        """``done``, ``stopped`` or ``failed``."""
        return self.said(AttemptEnded)[-1].outcome

    @property
    def error(self) -> Mapping[str, Any]:
        """JSON shape of the error that ended it."""
        return self.said(ErrorRaised)[-1].error

    @property
    def log(self) -> str:
        """What stands in its log."""
        return JobFolder(self.folder).log.read_text()

    @property
    def saved_steps(self) -> list[int]:
        """Steps of the checkpoints that are there."""
        return [info.step for info in CheckpointStore(JobFolder(self.folder).checkpoints, writable=False).list()]

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """What the newest checkpoint holds."""
        newest = CheckpointStore(JobFolder(self.folder).checkpoints, writable=False).latest()
        assert newest is not None
        return newest[1].arrays

    def said(self, kind: type[Kind]) -> list[Kind]:
        """Return the events of a type."""
        return [event for event in self.events if isinstance(event, kind)]

    def curve(self, tag: str) -> list[tuple[int, float]]:
        """Return (step, value) of a curve."""
        return [(each.step, each.value) for each in effective_scalars(self.events) if each.tag == tag]


def small_spec(network: str = SMALL, **changes: Any) -> TrainSpec:
    """Return the spec of a network file on the 8 x 8 digits, for one epoch of 20 steps."""
    plain = {
        "backend": "tensorflow",
        "network": {"source": "file", "path": "network.py", "text": network},
        "data": {"source": "digits", "options": {"size": 8}},
        "epochs": 1,
        "steps_per_epoch": 20,
        "batch_size": 32,
        "learning_rate": 0.05,
        "seed": 3,
        "schedule": "fixed",
        "monitors": ["events"],
    }
    spec = parse_spec({"kind": "train", "version": 1, **plain, **changes}, source="a test")
    assert isinstance(spec, TrainSpec)
    return spec


def train(folder: Path, network: str = SMALL, **changes: Any) -> Attempt:
    """Execute such a job with the worker; the random generators of this process stay as they were."""
    job = JobFolder(folder)
    folder.mkdir(parents=True)
    save_spec(small_spec(network, **changes), job.spec)
    before = global_random_state()
    try:
        code = work([str(folder)], request=StopRequest())
    finally:
        load_global_random_state(before)
    return Attempt(folder, code, _all_events(job.events))


def program_of(spec: TrainSpec) -> tuple[Any, Any]:
    """Return the TensorFlow program of a spec and its data, as a worker builds them."""
    data = data_of(spec)
    backend = load_backend(spec.backend)
    return backend.build(program_request(spec, data, backend)), data


def _all_events(path: Path) -> list[Event]:
    events, offset = [], 0
    while True:
        batch, after = read_events(path, offset)
        events += batch
        if after == offset:
            return events
        offset = after
