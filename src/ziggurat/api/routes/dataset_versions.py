"""Routes for dataset versions: every change creates a new one."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from pydantic import Field

from ziggurat.api.requests import RequestBody
from ziggurat.api.responses import answer
from ziggurat.api.schemas import JobShape, Json
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["datasets"])


class _Named(RequestBody):
    name: str = Field("", max_length=200, description="Of the new version.")


class _Relabel(_Named):
    samples: list[str] = Field(min_length=1, description="As SPLIT/ROW or by key.")
    label: Any = Field(description="In the form that the kind says; a class also by its name.")


class _Exclude(_Named):
    samples: list[str] = []
    problem: str = Field("", description="Kind of problem; all samples that have it are left out as well.")
    reason: str = Field("", max_length=1000)


class _Classes(_Named):
    rename: list[tuple[str, str]] = []
    merge: list[tuple[list[str], str]] = Field([], description="Names, and the name that they become.")
    drop: list[str] = []
    keep: list[str] = []


class _Merge(_Named):
    datasets: list[str] = Field(min_length=2, max_length=100, description="Ids.")


@router.get("/datasets/{job_id}/versions", response_model=list[Json])
def versions(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a dataset and all that it came from, newest first: ``id``, ``name``, ``folder``, ``changes``."""
    return answer(studio.datasets.versions(job_id))


@router.post("/datasets/{job_id}/relabel", response_model=JobShape, status_code=201)
def relabel(studio: StudioDep, who: TrainerUser, job_id: str, body: _Relabel) -> Response:
    """Make a version in which samples have another label."""
    job = studio.datasets.relabel(job_id, body.samples, body.label, name=body.name, owner=who.name)
    return answer(job, 201)


@router.post("/datasets/{job_id}/exclude", response_model=JobShape, status_code=201)
def exclude(studio: StudioDep, who: TrainerUser, job_id: str, body: _Exclude) -> Response:
    """Make a version without some samples, or without those that have a problem."""
    given = body.model_dump(exclude={"samples"})
    return answer(studio.datasets.exclude(job_id, body.samples, **given, owner=who.name), 201)


@router.post("/datasets/{job_id}/classes", response_model=JobShape, status_code=201)
def change_classes(studio: StudioDep, who: TrainerUser, job_id: str, body: _Classes) -> Response:
    """Make a version with other classes."""
    changes = body.model_dump(exclude={"name"})
    return answer(studio.datasets.change_classes(job_id, changes, name=body.name, owner=who.name), 201)


@router.post("/dataset-merges", response_model=JobShape, status_code=201)
def merge(studio: StudioDep, who: TrainerUser, body: _Merge) -> Response:
    """Make one dataset of several; classes are matched by their names."""
    return answer(studio.datasets.merge(body.datasets, name=body.name, owner=who.name), 201)
