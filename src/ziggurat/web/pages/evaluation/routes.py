"""Evaluation pages: figures, the samples behind them, the difference between two runs."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, Field

from ziggurat.entities import Job
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.evaluation.confusion import cell_at, confusion_picture
from ziggurat.web.pages.evaluation.view import COLUMNS, Asked, evaluation_state, found_view, other_runs, sample_source
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_KINDS: Final = ("evaluate", "infer")
_GRID: Final = 48
_ORDERS: Final = {"hardest": "Hardest first", "surest_wrong": "Most confident errors first", "row": "By their place"}
_CHANGES: Final = {"fixed": "Fixed", "broken": "Broken", "still_wrong": "Still wrong"}

_Share = Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)]


class _Wanted(BaseModel):
    threshold: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    class_number: int | None = Field(None, alias="class", ge=0, lt=2**31)
    sort: Literal["", "precision", "recall", "f1", "support"] = ""
    down: bool = False
    all_classes: bool = Field(False, alias="all")


class _Filter(BaseModel):
    label: str = Field("", pattern=r"^(-1|[0-9]{0,9})$")
    predicted: str = Field("", pattern=r"^[0-9]{0,9}$")
    only: Literal["", "wrong", "right"] = ""
    order: Literal["hardest", "surest_wrong", "row"] = "hardest"
    min_score: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    max_score: float = Field(1.0, ge=0, le=1, allow_inf_nan=False)
    offset: int = Field(0, ge=0, lt=2**31)

    def chosen(self) -> dict[str, Any]:
        """Return what ``Evaluations.samples`` takes."""
        numbers = {name: int(text) for name, text in (("label", self.label), ("predicted", self.predicted)) if text}
        return {**self.model_dump(include={"only", "order", "min_score", "max_score"}), **numbers}


@router.get("/evaluations/{job_id}", include_in_schema=False)
def evaluation(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, wanted: Annotated[_Wanted, Query()]
) -> Response:
    """Return the page, or the part of it that changes: while the job runs, or with the threshold."""
    job = studio.jobs.get(job_id)
    if job.kind not in _KINDS:
        return see_other(request, f"/jobs/{job_id}")
    asked = Asked(**wanted.model_dump())
    found = found_view(studio, job, asked) if job.state == "done" else None
    values = {"job": job, "found": found, "columns": COLUMNS}
    if found is not None and is_part(request, "evaluation-results"):
        return part(request, "evaluation/results.html", **values)
    values |= {"state": evaluation_state(studio, job), "others": other_runs(studio, job) if found is not None else []}
    if is_part(request, "evaluation"):
        return part(request, "evaluation/content.html", **values)
    return page(request, "evaluation/page.html", topics=(f"job:{job_id}",), **values)


@router.get("/evaluations/{job_id}/samples", include_in_schema=False)
def samples(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, wanted: Annotated[_Filter, Query()]
) -> Response:
    """Return the samples that a filter leaves, as images."""
    job = _done(studio, job_id)
    found = studio.evaluations.samples(job_id, offset=wanted.offset, limit=_GRID, **wanted.chosen())
    summary = studio.evaluations.summary(job_id)
    return page(
        request,
        "evaluation/samples.html",
        job=job,
        found=found,
        summary=summary,
        source=sample_source(studio, job, summary),
        wanted=wanted,
        orders=_ORDERS,
        limit=_GRID,
    )


@router.get("/evaluations/{job_id}/differences", include_in_schema=False)
def differences(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    other: Annotated[str, Query(max_length=100)],
    which: Literal["fixed", "broken", "still_wrong"] = "fixed",
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
) -> Response:
    """Return the samples that another run got right, got wrong, or still gets wrong."""
    found = studio.evaluations.differences(job_id, other, which=which, offset=offset, limit=_GRID)
    first, second = _done(studio, job_id), _done(studio, other)
    summary = studio.evaluations.summary(job_id)
    return page(
        request,
        "evaluation/differences.html",
        job=first,
        second=second,
        found=found,
        summary=summary,
        second_summary=studio.evaluations.summary(other),
        source=sample_source(studio, first, summary),
        which=which,
        words=_CHANGES,
        offset=offset,
        limit=_GRID,
    )


@router.get("/evaluations/{job_id}/matrix.png", include_in_schema=False)
def matrix(studio: StudioDep, _who: ViewerUser, job_id: str, threshold: _Share = 0.0) -> Response:
    """Return the confusion matrix of many classes as an image."""
    content = confusion_picture(studio.evaluations.at_threshold(job_id, threshold)["confusion"])
    return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


@router.get("/evaluations/{job_id}/cell/{threshold}", include_in_schema=False)
def cell(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    threshold: Annotated[float, Path(ge=0, le=1, allow_inf_nan=False)],
) -> Response:
    """Send to the samples of the cell that was clicked in the image: a browser adds its place to the address."""
    classes = len(studio.evaluations.summary(job_id)["classes"])
    place = cell_at(request.url.query.replace("%2C", ","), classes)
    if place is None:
        return see_other(request, f"/evaluations/{job_id}/samples")
    query = {"label": str(place[0]), "predicted": str(place[1]), "min_score": threshold or None}
    return see_other(request, f"/evaluations/{job_id}/samples", query)


def _done(studio: Studio, job_id: str) -> Job:
    studio.evaluations.summary(job_id)  # raises where it is no evaluation, or not done
    return studio.jobs.get(job_id)
