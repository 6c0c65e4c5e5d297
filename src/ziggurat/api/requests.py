"""Request models: filters in a query, and bodies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ziggurat.entities import JobChange
from ziggurat.workspace.job_query import PAGE_SIZE, JobQuery
from ziggurat.workspace.new_jobs import JobRequest

__all__ = [
    "BulkBody",
    "ChangeBody",
    "NewJobBody",
    "PageQuery",
    "RequestBody",
    "Text",
]

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
    ids: list[_Name] | None = Field(None, max_length=10_000)
    filter: JobQuery | None = None
    change: ChangeBody | None = None
    force: bool = False


class NewJobBody(RequestBody):
    """What makes a job, or the jobs of a sweep."""

    spec: dict[str, Any] = Field(description="A spec of a training or a dataset; its reference lists every field.")
    sweep: dict[str, list[Any]] = Field({}, description="Path of a field → values; one job for each combination.")
    dataset: _Name = Field("", description="Id of the dataset to train on; the job waits until it is done.")
    model: _Name = Field("", description="Id of the job whose weights it starts from.")
    checkpoint: _Name = Field("", description="Of that job: a name, `best` or `latest`.")
    project: _Name = ""
    tags: list[_Name] = []
    notes: Text = ""
    priority: _Whole = 0
    parent: _Name = Field("", description="Id of the job that it is a clone of.")

    def request(self) -> JobRequest:
        """Return it as the studio has it."""
        return JobRequest(**{**self.model_dump(), "tags": tuple(self.tags)})
