"""JSON schemas of requests and responses: filters in a query, bodies, and the entities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from ziggurat.entities import Checkpoint, Job, JobChange, SavedItem
from ziggurat.entities.backend_info import backend_infos
from ziggurat.server.job_names import JobName
from ziggurat.workspace.job_query import PAGE_SIZE, JobQuery
from ziggurat.workspace.new_jobs import JobRequest

__all__ = [
    "ActionShape",
    "BackendName",
    "BulkBody",
    "ChangeBody",
    "CheckpointShape",
    "CurveShape",
    "JobPageShape",
    "JobShape",
    "JobsShape",
    "Json",
    "MessageShape",
    "NewJobBody",
    "PageQuery",
    "PredictionsShape",
    "ProjectShape",
    "RequestBody",
    "RequestShape",
    "RootsShape",
    "SamplePageShape",
    "SavedItemShape",
    "SuggestionsShape",
    "Text",
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
    """What makes a job; send it to ``/trainings``, ``/datasets`` or, of a program, ``/programs``."""

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
class SavedItemShape(SavedItem):
    """A saved view, preset or draft."""


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


Text = Annotated[str, Field(max_length=100_000)]
_Name = Annotated[str, Field(max_length=200)]
_Whole = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class RequestBody(BaseModel):
    """A body or query without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(RequestBody):
    """Which part of a list."""

    offset: int = Field(0, ge=0, lt=2**31, description="How many to leave out first.")
    limit: int = Field(PAGE_SIZE, ge=1, le=1000, description="How many to return at most.")


class ChangeBody(RequestBody):
    """What is changed of a job; what is left out stays."""

    name: _Name | None = None
    notes: Text | None = None
    project: _Name | None = None
    priority: _Whole | None = None
    tags: list[_Name] | None = None

    def change(self) -> JobChange:
        """Return it as the studio has it."""
        tags = None if self.tags is None else tuple(self.tags)
        return JobChange(name=self.name, notes=self.notes, project=self.project, priority=self.priority, tags=tags)


class BulkBody(RequestBody):
    """What is done with which jobs: those of ``ids``, or all that ``filter`` leaves."""

    action: Literal["stop", "stop_now", "pause", "resume", "retry", "delete", "change"]
    ids: Annotated[list[_Name] | None, JobName()] = Field(None, max_length=10_000)
    filter: JobQuery | None = None
    change: ChangeBody | None = None
    force: bool = False


class NewJobBody(RequestBody):
    """What makes a job, or the jobs of a sweep."""

    spec: dict[str, Any] = Field(description="A spec of a training or a dataset; its reference lists every field.")
    sweep: dict[str, list[Any]] = Field({}, description="Path of a field → values; one job for each combination.")
    dataset: Annotated[_Name, JobName("dataset")] = Field(
        "", description="Id or name of the dataset to train on; the job waits until it is done."
    )
    model: Annotated[_Name, JobName("train")] = Field(
        "", description="Id or name of the job whose weights it starts from."
    )
    checkpoint: _Name = Field("", description="Of that job: a name, `best` or `latest`.")
    project: _Name = ""
    tags: list[_Name] = []
    notes: Text = ""
    priority: _Whole = 0
    parent: Annotated[_Name, JobName()] = Field("", description="Id or name of the job that it is a clone of.")

    def request(self) -> JobRequest:
        """Return it as the studio has it, without the further fields of a subclass."""
        content = self.model_dump(include=set(NewJobBody.model_fields))
        return JobRequest(**{**content, "tags": tuple(self.tags)})


_NAMES: Final = tuple(backend_infos())


def _known(name: str) -> str:
    if name not in _NAMES:
        raise ValueError(f"Input should be one of: {', '.join(_NAMES)}")
    return name


BackendName = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(_NAMES)})]
"""Name of an installed backend."""
