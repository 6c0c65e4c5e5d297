"""Trained jobs opened for use, and what their backends can do beside training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.sources import DataFromList
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.capabilities import SupportsInference, TrainedNetwork
from ziggurat.engine.checkpoints import CheckpointStore, with_averages
from ziggurat.engine.program import Program
from ziggurat.engine.run_state import RunState
from ziggurat.entities.backend_info import backend_infos, open_capability
from ziggurat.entities.best_checkpoint import best_checkpoint, find_checkpoint
from ziggurat.entities.operating_point import checkpoint_digest, read_operating_point
from ziggurat.errors import ConfigurationError, DataError, PluginError
from ziggurat.layout import JobFolder
from ziggurat.specs import TrainSpec, load_train_spec
from ziggurat.tasks import Task, TaskContext
from ziggurat.worker.build import load_backend, program_request
from ziggurat.worker.context import load_context
from ziggurat.worker.job_network import kept_network
from ziggurat.worker.pipeline import JobData

__all__ = ["TrainedJob", "open_network", "open_trained_job", "provider_of"]


Offer = TypeVar("Offer")


def provider_of(backend: str, offer: type[Offer], what: str) -> Offer:
    """Return the object of a backend that offers something.

    Args:
        backend: its name.
        offer: the protocol, of ``ziggurat.engine.capabilities``.
        what: it in words, to end the sentence "The backend … does not …".

    Raises:
        UnknownNameError: where there is no such backend.
        MissingDependencyError: where its framework is not installed.
        ConfigurationError: where it does not offer that.
    """
    found = capability(backend, offer)
    if found is None:
        others = [name for name, info in backend_infos().items() if offer.__name__ in info.capabilities]
        raise ConfigurationError(
            f"The backend `{backend}` does not {what}.",
            advice=f"Backends that do: {', '.join(others)}." if others else "",
        )
    return found


def capability(backend: str, offer: type[Offer]) -> Offer | None:
    """Return the object of a backend that offers something, or None where it does not.

    Args:
        backend: its name.
        offer: the protocol, of ``ziggurat.engine.capabilities``.

    Raises:
        UnknownNameError: where there is no such backend.
        MissingDependencyError: where its framework is not installed.
        PluginError: where the backend names something that does not implement the protocol.
    """
    found = open_capability(backend, offer.__name__)
    if found is not None and not isinstance(found, offer):
        raise PluginError(
            f"The `{offer.__name__}` of the backend `{backend}` is a {type(found).__name__}, which "
            "does not implement that protocol.",
            advice="Update the package that brings the backend.",
        )
    return found


@dataclass(frozen=True, kw_only=True)
class TrainedJob:
    """What a job has trained so far.

    Args:
        folder: the job folder.
        spec: what was asked.
        context: its task, and what its network was trained with.
        checkpoint: name of the checkpoint.
        state: what the checkpoint holds; of weights that were averaged, the averages in their place.
        request: the network, for the backend.
        operating_point: what answers say of the chosen thresholds, as ``OperatingPoint.document`` has it; empty if none
            were chosen. Those that are used are in the context.
    """

    folder: Path
    spec: TrainSpec
    context: TaskContext
    checkpoint: str
    state: RunState
    request: ProgramRequest
    operating_point: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        """What it learned."""
        return self.context.task

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, by number; empty where there are none."""
        return self.context.class_names

    @property
    def images(self) -> Preprocessing:
        """Preprocessing of its images.

        Raises:
            DataError: where the network does not take images.
        """
        found = self.context.preprocessing
        if not isinstance(found, Preprocessing):
            raise DataError(
                "This needs a network that takes images.",
                received=f"a network for {self.task.title} of {self.context.schema.kind} data",
            )
        return found

    def summary(self) -> dict[str, Any]:
        """Return which checkpoint of which job it is, as JSON values."""
        meta = self.state.meta
        return {
            "folder": str(self.folder),
            "checkpoint": self.checkpoint,
            "step": int(meta["global_step"]),
            "epoch": int(meta["epoch_num"]),
        }

    def prediction_summary(self) -> dict[str, Any]:
        """Return ``summary``, ``task``, and ``operating_point`` if one was chosen."""
        point = {"operating_point": dict(self.operating_point)} if self.operating_point else {}
        return {**self.summary(), "task": self.task.name, **point}


def open_trained_job(folder: Path, checkpoint: str | None = None) -> TrainedJob:
    """Return what a job has trained.

    Args:
        folder: the job folder.
        checkpoint: its name, a given name, ``best`` or ``latest``; None for the best, else the latest.

    Raises:
        SpecError: where its spec is damaged.
        CheckpointError: where there is no such checkpoint.
        DataError: where it has no preprocessing: it never began to train.
        StorageError: where its operating point is damaged.
    """
    job = JobFolder(folder)
    spec = load_train_spec(job.spec)
    name, state = _state(job, checkpoint)
    context, point = _operated(load_context(job), job, name)
    return TrainedJob(
        folder=folder,
        spec=spec,
        context=context,
        checkpoint=name,
        state=replace(state, arrays=with_averages(state.arrays)),
        request=_request(spec, context, kept_network(spec, job)),
        operating_point=point,
    )


def _operated(context: TaskContext, job: JobFolder, checkpoint: str) -> tuple[TaskContext, dict[str, Any]]:
    """Return the context with the thresholds that this checkpoint obeys, and what answers say of them."""
    point = read_operating_point(job) if job.operating_point.exists() else None
    if point is None:
        return context, {}
    problem = point.problem(checkpoint, checkpoint_digest(job, checkpoint))
    if not problem and point.names != context.task.threshold_names(context.class_names):
        problem = "The operating point is of other classes and is not used: choose it again."
    return context if problem else replace(context, thresholds=point.thresholds), point.document(problem)


@contextmanager
def open_network(job: TrainedJob) -> Iterator[TrainedNetwork]:
    """Yield the network of a job with its weights; by the backend's own means, else by its program."""
    opener = capability(job.spec.backend, SupportsInference)
    if opener is not None:
        network = opener.open_trained(job.request, job.state.arrays)
    else:
        network = _ProgramNetwork(load_backend(job.spec.backend).build(job.request), job.state.arrays, job.request)
    try:
        yield network
    finally:
        network.close()


class _ProgramNetwork:
    """A trained network by means of the program that trains it."""

    def __init__(self, program: Program, arrays: Mapping[str, np.ndarray], request: ProgramRequest) -> None:
        self._program = program
        self._target = request.targets.get("y")
        self._names = [name for name in ("cost", "probabilities", "output") if name in program.names()]
        program.declare(self._names)
        program.load_state(arrays)

    def evaluate(self, x: np.ndarray, y: np.ndarray | None = None) -> Mapping[str, Any]:
        return self._program.evaluate([x] if y is None else [x, y], self._names)

    def predict(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        names = [name for name in self._names if name != "cost"]
        target = self._target
        if target is None:
            return self._program.evaluate([x], names)
        # A program evaluates labeled batches; what is asked for does not depend on the labels.
        return self._program.evaluate([x, np.zeros((len(x), *target.shape), target.dtype)], names)

    def close(self) -> None:
        self._program.close()


def _state(job: JobFolder, name: str | None) -> tuple[str, RunState]:
    store = CheckpointStore(job.checkpoints, writable=False)
    best = best_checkpoint(job) if name is None else None
    if name == "latest" or (best is not None and best.basis == "newest"):
        newest = store.latest()  # the newest that is whole
        if newest is not None:
            return newest[0].name, newest[1]
    found = find_checkpoint(job, name or "").name
    return found, store.load(found)


def _request(spec: TrainSpec, context: TaskContext, standard_text: str | None) -> ProgramRequest:
    """Return what the job's program was made of; the pretrained model that it started from is not read again."""
    data = JobData(train=DataFromList([]), evaluation={}, context=context, sizes={"train": 0})
    request = program_request(spec.model_copy(update={"pretrained": None}), data, standard_text=standard_text)
    return replace(request, pretrained=None if spec.pretrained is None else {})
