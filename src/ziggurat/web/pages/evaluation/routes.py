"""Evaluation pages: figures, the samples behind them, the difference between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import Form, Path, Query, Request, Response
from pydantic import BaseModel, Field, model_validator

from ziggurat.entities import Job
from ziggurat.errors import JobError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.evaluation.confusion import cell_at, confusion_picture
from ziggurat.web.pages.evaluation.measures import Comparison, change_of, compared_with, measures_of
from ziggurat.web.pages.evaluation.view import (
    COLUMNS,
    Asked,
    Found,
    checkpoint_options,
    evaluation_state,
    found_view,
    other_runs,
    sample_source,
)
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_KINDS: Final = ("evaluate", "infer")
_GRID: Final = 48
_ORDERS: Final = {"hardest": "Hardest first", "surest_wrong": "Most confident errors first", "row": "In dataset order"}
_CHANGES: Final = {"fixed": "Fixed", "broken": "Broken", "still_wrong": "Still wrong"}

_Share = Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)]


class _Wanted(BaseModel):
    threshold: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    class_number: int | None = Field(None, alias="class", ge=0, lt=2**31)
    sort: Literal["name", "precision", "recall", "f1", "ap", "support"] = "f1"
    down: bool = False
    all_classes: bool = Field(False, alias="all")
    label: int | None = Field(None, ge=0, lt=2**31)
    predicted: int | None = Field(None, ge=0, lt=2**31)
    show: Literal["", "errors", "cell", "hardest", "highest"] = ""
    values: Literal["count", "percent"] = "count"
    curve: Literal["pr", "roc"] = "pr"
    against: str = Field("", max_length=100)


class _Filter(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: Any) -> Any:
        """Leave out fields that were left empty in the form: their defaults hold."""
        return {name: value for name, value in dict(values).items() if value != ""}

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
    values: dict[str, Any] = {"job": job, "found": found, "columns": COLUMNS, "is_part": False}
    if found is not None and is_part(request, "evaluation-results"):
        return part(request, "evaluation/results.html", **{**values, "is_part": True})
    values |= _beside(studio, job, found)
    if is_part(request, "evaluation"):
        return part(request, "evaluation/content.html", **values, brings_head=True)
    return page(request, "evaluation/page.html", topics=(f"job:{job_id}",), **values, brings_head=False)


def _beside(studio: Studio, job: Job, found: Found | None) -> dict[str, Any]:
    """Return what the page shows beside the results: state, metrics, the other run, other checkpoints."""
    state = evaluation_state(studio, job)
    others = other_runs(studio, job) if found is not None else []
    wanted = found.asked.against if found else ""
    is_lost = wanted not in ("", "none") and not studio.jobs.some([wanted])
    compared = compared_with(studio, job, others, "" if is_lost else wanted) if found and found.has_labels else None
    return {
        "state": state,
        "others": others,
        "compared": compared,
        "is_lost": is_lost,
        "change": _accuracy_change(found.summary, compared) if found else None,
        "measures": measures_of(found.summary, compared.summary if compared else None) if found else [],
        "checkpoints": checkpoint_options(studio, job, state.model, found.summary["checkpoint"]) if found else [],
    }


def _accuracy_change(summary: Mapping[str, Any], compared: Comparison | None) -> tuple[str, str] | None:
    if compared is None or summary["accuracy"] is None:
        return None
    return change_of(summary["accuracy"], compared.summary["accuracy"], rises=True, is_share=True)


@router.get("/evaluations/{job_id}/report.md", include_in_schema=False)
def report(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    against: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Return the results as Markdown, for a review or a wiki."""
    job = _done(studio, job_id)
    found = found_view(studio, job, Asked(against=against, all_classes=True))
    answer = part(request, "evaluation/report.md", job=job, found=found, **_beside(studio, job, found))
    name = f"evaluation-{job_id}.md"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return Response(answer.body, media_type="text/markdown; charset=utf-8", headers=headers)


@router.post("/evaluations/{job_id}/checkpoint", include_in_schema=False)
def evaluate_checkpoint(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    checkpoint: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Evaluate another checkpoint of the same model on the same split, and show the job."""
    job = _done(studio, job_id)
    if job.kind != "evaluate":
        raise JobError("Another checkpoint is evaluated on a split.", received=f"{job_id}, of kind {job.kind}")
    split = str(job.spec["split"])
    made = studio.evaluations.create(str(job.parent), split=split, checkpoint=checkpoint, owner=who.name)
    studio.people.note(who, "evaluation.create", made.id, model=job.parent, split=split)
    return see_other(request, f"/evaluations/{made.id}")


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
