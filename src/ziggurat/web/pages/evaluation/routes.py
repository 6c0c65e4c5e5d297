"""Evaluation pages: figures, the samples behind them, the difference between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import Form, Path, Query, Request, Response
from pydantic import BaseModel, Field, model_validator

from ziggurat.entities import Job
from ziggurat.errors import JobError, UsageError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.tasks.report import SHARE, ScoreInfo
from ziggurat.web.pages.evaluation.confusion import cell_at, confusion_picture
from ziggurat.web.pages.evaluation.measures import Comparison, change_of, compared_with, measures_of
from ziggurat.web.pages.evaluation.task_samples import drawn_picture, metric_text, task_tiles
from ziggurat.web.pages.evaluation.task_view import (
    TaskFound,
    difference_words,
    interval_words,
    score_comparison,
    task_found,
    task_measures,
)
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
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_KINDS: Final = ("evaluate", "infer")
_GRID: Final = 48
_ORDERS: Final = {"hardest": "Hardest first", "surest_wrong": "Most confident errors first", "row": "In dataset order"}
_TASK_ORDERS: Final = {"hardest": "Worst first", "easiest": "Best first", "row": "In dataset order"}
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
    show: Literal["", "errors", "cell", "hardest", "highest", "worst", "best"] = ""
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
    order: Literal["hardest", "easiest", "surest_wrong", "row"] = "hardest"
    score_from: float | None = Field(None, allow_inf_nan=False)
    score_to: float | None = Field(None, allow_inf_nan=False)
    min_score: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    max_score: float = Field(1.0, ge=0, le=1, allow_inf_nan=False)
    offset: int = Field(0, ge=0, lt=2**31)

    def chosen(self) -> dict[str, Any]:
        """Return what ``Evaluations.samples`` takes."""
        numbers = {name: int(text) for name, text in (("label", self.label), ("predicted", self.predicted)) if text}
        return {**self.model_dump(include={"only", "order", "min_score", "max_score"}), **numbers}

    def chosen_by_score(self, info: ScoreInfo) -> dict[str, Any]:
        """Return the same for a task without classes: a range in the unit and with the sign that people see."""
        ends = [None if each is None else each * _factor(info) for each in (self.score_from, self.score_to)]
        low, high = ends if info.sign > 0 else ends[::-1]
        order = self.order if self.order in _TASK_ORDERS else "hardest"
        return {"order": order, "min_score": low, "max_score": high}


def _factor(info: ScoreInfo) -> float:
    """Return the score that one of what people see stands for."""
    return info.sign * (0.01 if info.unit == SHARE else 1.0)


@router.get("/evaluations/{job_id}", include_in_schema=False)
def evaluation(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, wanted: Annotated[_Wanted, Query()]
) -> Response:
    """Return the page, or the part of it that changes: while the job runs, or with the threshold."""
    job = studio.jobs.get(job_id)
    if job.kind not in _KINDS:
        return see_other(request, f"/jobs/{job_id}")
    asked = Asked(**wanted.model_dump())
    found = _found(request, studio, job, asked) if job.state == "done" else None
    values: dict[str, Any] = {"job": job, "found": found, "columns": COLUMNS, "is_part": False}
    if isinstance(found, Found) and is_part(request, "evaluation-results"):
        return part(request, "evaluation/results.html", **{**values, "is_part": True})
    values |= _beside(studio, job, found)
    if is_part(request, "evaluation"):
        return part(request, "evaluation/content.html", **values, brings_head=True)
    return page(request, "evaluation/page.html", topics=(f"job:{job_id}",), **values, brings_head=False)


def _found(request: Request, studio: Studio, job: Job, asked: Asked) -> Found | TaskFound:
    """Return what was found, as its page shows it: of a network that classifies, or of another task."""
    if studio.evaluations.results(job.id).is_classifier:
        return found_view(studio, job, asked)
    return task_found(studio, job, asked, lambda path: address(request, path))


def _beside(studio: Studio, job: Job, found: Found | TaskFound | None) -> dict[str, Any]:
    """Return what the page shows beside the results: state, metrics, the other run, other checkpoints."""
    state = evaluation_state(studio, job)
    if isinstance(found, TaskFound):
        return {"state": state, **_beside_task(studio, job, found, state.model)}
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


def _beside_task(studio: Studio, job: Job, found: TaskFound, model: Job | None) -> dict[str, Any]:
    others, wanted = other_runs(studio, job), found.asked.against
    is_lost = wanted not in ("", "none") and not studio.jobs.some([wanted])
    is_ranked = found.has_labels and studio.evaluations.results(job.id).task_scores is not None
    compared = score_comparison(studio, job, others, "" if is_lost else wanted, found.rank) if is_ranked else None
    return {
        "others": others if is_ranked else [],
        "compared": compared,
        "is_lost": is_lost,
        "change": None,
        "measures": task_measures(found, compared.summary if compared else None),
        "metric_text": metric_text,
        "checkpoints": checkpoint_options(studio, job, model, found.summary["checkpoint"]),
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
    found = _found(request, studio, job, Asked(against=against, all_classes=True))
    template = "evaluation/task_report.md" if isinstance(found, TaskFound) else "evaluation/report.md"
    answer = part(request, template, job=job, found=found, **_beside(studio, job, found))
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
    if not studio.evaluations.results(job_id).is_classifier:
        return _task_samples(request, studio, job, wanted)
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


def _task_samples(request: Request, studio: Studio, job: Job, wanted: _Filter) -> Response:
    """Return the samples of a task without classes, by their score."""
    results = studio.evaluations.results(job.id)
    chosen = wanted.chosen_by_score(results.task.score)
    found = studio.evaluations.samples(job.id, offset=wanted.offset, limit=_GRID, **chosen)
    view = task_found(studio, job, Asked(), lambda path: address(request, path))
    return page(
        request,
        "evaluation/task_samples.html",
        job=job,
        found=view,
        tiles=task_tiles(studio, job, found["samples"], view.source, is_drawn=not view.not_drawn),
        total=found["total"],
        wanted=_shown_filter(wanted),
        is_ranked=results.task_scores is not None,
        orders=_TASK_ORDERS,
        limit=_GRID,
    )


def _shown_filter(wanted: _Filter) -> dict[str, Any]:
    ends = {name: getattr(wanted, name) for name in ("score_from", "score_to")}
    return {
        "order": wanted.order,
        "offset": wanted.offset,
        **{name: "" if value is None else f"{value:g}" for name, value in ends.items()},
    }


@router.get("/evaluations/{job_id}/drawn/{row}/{name}", include_in_schema=False)
def drawn(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    row: Annotated[int, Path(ge=0, lt=2**31)],
    name: Annotated[str, Path(max_length=50)],
) -> Response:
    """Return an image of a sample that the task draws, such as a predicted mask; the network is asked for it now."""
    job = _done(studio, job_id)
    studio.evaluations.results(job_id).place_of_row(row)
    content = drawn_picture(request, studio, job, row, name)
    if content is None:
        return Response(status_code=404)
    return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


@router.get("/evaluations/{job_id}/differences", include_in_schema=False)
def differences(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    other: Annotated[str, Query(max_length=100)],
    which: Literal["fixed", "broken", "still_wrong", "better", "worse", "equal"] | None = None,
    margin: Annotated[str, Query(max_length=40)] = "",
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
) -> Response:
    """Return the samples that another run got right, got wrong, or still gets wrong; or by their score."""
    if not studio.evaluations.results(job_id).is_classifier:
        return _score_differences(request, studio, (_done(studio, job_id), _done(studio, other)), which, margin, offset)
    which = which or "fixed"
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


def _score_differences(
    request: Request, studio: Studio, jobs: tuple[Job, Job], which: str | None, margin: str, offset: int
) -> Response:
    first, second = jobs
    view = task_found(studio, first, Asked(), lambda path: address(request, path))
    factor = abs(_factor(view.rank))
    chosen = {"which": which, "margin": _margin(margin, factor), "offset": offset, "limit": _GRID}
    found = studio.evaluations.differences(first.id, second.id, **chosen)
    return page(
        request,
        "evaluation/task_differences.html",
        job=first,
        second=second,
        found=view,
        tiles=task_tiles(studio, first, found["samples"], view.source, is_drawn=not view.not_drawn),
        counts=found["counts"],
        total=found["total"],
        unknown=found["unknown"],
        mean=difference_words(found["mean"], view.rank)[0],
        interval_text=interval_words(found["interval"], found["mean"], view.rank),
        margin_text=f"{found['margin'] / factor:.4g}",
        which=which or "better",
        offset=offset,
        limit=_GRID,
    )


def _margin(text: str, factor: float) -> float | None:
    """Return the margin that was typed; None where the field is empty.

    Raises:
        UsageError: where it is no number from 0 up.
    """
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError("A margin is a number from 0 up.", received=text)
    return value * factor


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
