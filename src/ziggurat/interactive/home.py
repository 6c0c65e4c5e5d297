"""Homes of runs and datasets: what a folder and a studio both do for a Python session, under the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from ziggurat.workspace.recipes import Recipe

__all__ = ["ENDED", "CurvePoints", "Home", "InputKind", "JobState", "ModelInputs", "SampleImage"]

ENDED: Final = ("done", "failed", "stopped")
"""States of a job that no worker is at."""

InputKind = Literal["image", "row", "text"]

SampleImage = tuple[str, bytes]
"""Label and PNG file of a sample."""


@dataclass(frozen=True, kw_only=True)
class JobState:
    """State of a job at one moment.

    Args:
        name: name that pages show.
        kind: such as ``train`` or ``dataset``.
        state: ``queued``, ``running``, ``stopping``, ``done``, ``failed`` or ``stopped``.
        outcome: ``diverged`` if the training diverged, else the state; empty before the end.
        reason: sentence on why it waits or ended.
        stage: what is done now, if a job has stages; else empty.
        epoch: current epoch, from 1; 0 before the first.
        max_epoch: number of epochs; 0 if unknown.
        step: steps done; of a dataset, samples.
        total_steps: number of steps; 0 if unknown.
        scalars: tag → newest value.
        error: error that ended it, as JSON values; None if there is none.
        baselines: result beside that of simple models, in one line; else empty.
    """

    name: str
    kind: str
    state: str
    outcome: str = ""
    reason: str = ""
    stage: str = ""
    epoch: int = 0
    max_epoch: int = 0
    step: int = 0
    total_steps: int = 0
    scalars: Mapping[str, float] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    baselines: str = ""


@dataclass(frozen=True, kw_only=True)
class CurvePoints:
    """Points of a curve, in the order of their steps.

    Args:
        steps: steps, counted over the whole training.
        values: values; NaN and infinities are kept.
        epochs: epochs, from 1.
    """

    steps: Sequence[float]
    values: Sequence[float]
    epochs: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class ModelInputs:
    """Inputs of one request for predictions, all of one kind.

    Args:
        images: name and content of image files.
        rows: rows of a table, column → value.
        texts: texts.
    """

    images: Sequence[tuple[str, bytes]] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    texts: Sequence[str] = ()

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.images) + len(self.rows) + len(self.texts)


class Home(Protocol):
    """Place of runs and datasets; jobs are named by their ids: a studio's id, or the path of a folder."""

    @property
    def title(self) -> str:
        """Name for people, such as the address of a studio."""
        ...

    # ---- jobs

    def find(self, name: str, kind: str, /) -> str:
        """Return the id of the newest job of a kind that has a name or an id; MissingJobError if there is none."""
        ...

    def ids(self, kind: str, limit: int, /) -> list[str]:
        """Return the ids of the newest jobs of a kind, newest first."""
        ...

    def state(self, job: str, /) -> JobState:
        """Return the state of a job."""
        ...

    def spec(self, job: str, /) -> Mapping[str, Any]:
        """Return the decoded spec of a job."""
        ...

    def folder(self, job: str, /) -> Path:
        """Return the folder of a job on the machine of its home."""
        ...

    def page(self, job: str, /) -> str:
        """Return the address of the page of a job; empty if there is none."""
        ...

    def log(self, job: str, /) -> str:
        """Return the log of a job."""
        ...

    def work(self, job: str, watch: Callable[[JobState], None], /) -> None:
        """Have a new or stopped job done, and return when it has ended.

        Ctrl-C asks for a checkpoint and an end; KeyboardInterrupt is raised once that is done.

        Args:
            job: its id.
            watch: called with the state of the job, several times a second at most.
        """
        ...

    def follow(self, job: str, watch: Callable[[JobState], None], /) -> None:
        """Return when a job has ended that another process executes; arguments as for ``work``."""
        ...

    def stop(self, job: str, /) -> None:
        """Ask a running job to save a checkpoint and end."""
        ...

    def resume(self, job: str, /) -> None:
        """Make a stopped or failed job ready for ``work``."""
        ...

    # ---- trainings

    def recipe(self, data: str, network: str | None, /) -> Recipe | None:
        """Return the recommended recipe for data; see ``ziggurat.workspace.recipes.recommend``."""
        ...

    def create_training(self, content: dict[str, Any], data: str, pretrained: str, out: Path | None, /) -> str:
        """Create a training and return its id.

        Args:
            content: decoded spec without its data.
            data: id of a dataset, or ``digits``.
            pretrained: id of the run that it starts from; empty for none.
            out: new folder of the job; None for one in the workspace.
        """
        ...

    def curves(self, job: str, /) -> dict[str, CurvePoints]:
        """Return tag → points of the curves of a training."""
        ...

    # ---- models

    def input_kind(self, job: str, /) -> InputKind:
        """Return what the network of a training takes."""
        ...

    def predict(self, job: str, inputs: ModelInputs, top: int, checkpoint: str | None, /) -> dict[str, Any]:
        """Return ``predictions`` in the order of the inputs, ``picture`` as PNG bytes or None, and ``failures``."""
        ...

    def evaluate(self, job: str, split: str, checkpoint: str | None, /) -> dict[str, Any]:
        """Return the metrics of a model on a split, as the task ``evaluate`` does."""
        ...

    def export(self, job: str, export_format: str, out: Path, checkpoint: str | None, /) -> None:
        """Write a model for other programs into a new folder of this machine."""
        ...

    # ---- datasets

    def dataset_id(self, source: str, /) -> str:
        """Return the id of a finished dataset that a text names; empty if there is none."""
        ...

    def create_dataset(self, content: dict[str, Any], source: str, stamp: str, /) -> tuple[str, bool]:
        """Create a dataset of a source; return its id, and whether it is new.

        One that was made in the same way of the same files is taken again.

        Args:
            content: decoded spec without its source.
            source: file or folder of this machine, or a URL.
            stamp: fingerprint of the source; empty for a URL.
        """
        ...

    def describe_dataset(self, dataset: str, /) -> dict[str, Any]:
        """Return what a dataset is: ``name``, ``kind``, ``splits``, ``classes``, ``problems``, ``warnings``, …"""
        ...

    def sample_images(self, dataset: str, count: int, /) -> list[SampleImage]:
        """Return a few samples of the training split of a dataset of images."""
        ...

    def staging(self) -> Path | None:
        """Return the folder for files that are made of arrays and rows; None for a temporary one."""
        ...
