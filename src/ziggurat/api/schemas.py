"""Response schemas for the OpenAPI document: the entities, with numbers that JSON cannot express."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ziggurat.entities import Checkpoint, Job

__all__ = [
    "ActionShape",
    "CheckpointShape",
    "CurveShape",
    "JobPageShape",
    "JobShape",
    "JobsShape",
    "Json",
    "MessageShape",
    "Number",
    "PredictionsShape",
    "ProjectShape",
    "RequestShape",
    "RootsShape",
    "SamplePageShape",
    "ScalarShape",
    "SuggestionsShape",
    "TextShape",
]

Number = float | Literal["NaN", "Infinity", "-Infinity"]
"""A number, or the text that stands for one that JSON has not."""

Json = dict[str, Any]
"""An object whose members the description of the route names."""


@dataclass(frozen=True, kw_only=True)
class ScalarShape:
    """What a curve came to."""

    tag: str
    last: Number
    minimum: Number
    maximum: Number
    count: int
    last_step: int


@dataclass(frozen=True, kw_only=True)
class JobShape(Job):
    """A job."""

    scalars: Mapping[str, ScalarShape] = field(default_factory=dict)  # pyright: ignore[reportIncompatibleVariableOverride]


@dataclass(frozen=True, kw_only=True)
class JobPageShape:
    """Some of the jobs that a filter leaves; ``total`` counts all that it leaves."""

    total: int
    jobs: list[JobShape]


@dataclass(frozen=True, kw_only=True)
class JobsShape:
    """Jobs."""

    jobs: list[JobShape]


@dataclass(frozen=True, kw_only=True)
class CheckpointShape(Checkpoint):
    """A checkpoint."""

    scalars: Mapping[str, Number] = field(default_factory=dict)  # pyright: ignore[reportIncompatibleVariableOverride]


@dataclass(frozen=True, kw_only=True)
class CurveShape:
    """Points of a curve, in the order of their steps; ``total`` counts those that there are before thinning."""

    tag: str
    steps: list[int]
    values: list[Number]
    epochs: list[int]
    times: list[float]
    total: int


@dataclass(frozen=True, kw_only=True)
class MessageShape:
    """Messages of a worker, the oldest first; each has ``time``, ``level``, ``text`` and ``step``."""

    messages: list[Json]


@dataclass(frozen=True, kw_only=True)
class ActionShape:
    """Outcome for each job: ``id``, ``done``, and ``error`` or null."""

    results: list[Json]


@dataclass(frozen=True, kw_only=True)
class RequestShape:
    """What makes a job; send it to ``/trainings`` or ``/datasets``."""

    spec: Json
    sweep: dict[str, list[Any]]
    dataset: str
    model: str
    checkpoint: str
    project: str
    tags: list[str]
    notes: str
    priority: int
    parent: str


@dataclass(frozen=True, kw_only=True)
class SamplePageShape:
    """Some of the samples that a filter leaves."""

    total: int
    offset: int
    samples: list[Json]


@dataclass(frozen=True, kw_only=True)
class ProjectShape:
    """A project, and how many jobs it has."""

    id: int
    name: str
    created: float
    jobs: int


@dataclass(frozen=True, kw_only=True)
class SuggestionsShape:
    """What a path that is being typed may become."""

    suggestions: list[str]


@dataclass(frozen=True, kw_only=True)
class RootsShape:
    """Absolute paths of folders."""

    roots: list[str]


@dataclass(frozen=True, kw_only=True)
class PredictionsShape:
    """Predictions in the order of the images, and failures: each the error of an image that cannot be read."""

    predictions: list[Json]
    failures: list[Json]


@dataclass(frozen=True, kw_only=True)
class TextShape:
    """A text."""

    text: str
