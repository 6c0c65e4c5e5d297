"""Evaluation pages: figures, report, and images that are drawn on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import Form, Path, Query, Request, Response
from pydantic import BaseModel, Field

from ziggurat.entities import Job
from ziggurat.errors import JobError, UsageError
from ziggurat.operations.models import clear_operating_point, create_evaluation, set_operating_point
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.evaluation.confusion import cell_at, confusion_picture
from ziggurat.web.pages.evaluation.measures import Comparison, change_of, compared_with, measures_of
from ziggurat.web.pages.evaluation.relabeling import relabeling_of
from ziggurat.web.pages.evaluation.task_samples import drawn_picture, metric_text
from ziggurat.web.pages.evaluation.task_view import (
    TaskFound,
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
)
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_KINDS: Final = ("evaluate", "infer")

_Share = Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)]
_Threshold = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


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


@router.get("/evaluations/{job_id}", include_in_schema=False)
def evaluation(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, wanted: Annotated[_Wanted, Query()]
) -> Response:
    """Return the page, or the part of it that changes: while the job runs, or with the threshold."""
    job = studio.jobs.get(job_id)
    if job.kind not in _KINDS:
        return see_other(request, f"/jobs/{job_id}")
    asked = Asked(**wanted.model_dump(), fields=dict(request.query_params))
    found = _found(request, studio, job, asked) if job.state == "done" else None
    is_cell = isinstance(found, Found) and asked.cell is not None
    likely = asked.predicted if asked.predicted != asked.label else None
    relabeling = relabeling_of(studio, job, found.summary, likely) if found and is_cell else None
    values: dict[str, Any] = {
        "job": job,
        "found": found,
        "columns": COLUMNS,
        "relabeling": relabeling,
        "is_part": False,
    }
    if isinstance(found, Found) and is_part(request, "evaluation-results"):
        return part(request, "evaluation/results.html", **{**values, "is_part": True})
    if isinstance(found, TaskFound) and is_part(request, "evaluation-results"):
        asked_measures = [each for each in task_measures(found, None) if each.is_asked]
        values |= {"is_part": True, "measures": asked_measures, "metric_text": metric_text}
        return part(request, "evaluation/task_results.html", **values)
    values |= _beside(studio, job, found)
    values["operating_point"] = studio.operating_points.choice(job_id) if found is not None else None
    values["next_step"] = studio.next_steps.of(job)
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
        raise JobError(f"{job_id} is of kind {job.kind}, and another checkpoint is evaluated on a split.")
    split = str(job.spec["split"])
    made = create_evaluation(studio, who, str(job.parent), split=split, checkpoint=checkpoint)
    return see_other(request, f"/evaluations/{made.id}")


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


@router.post("/evaluations/{job_id}/operating-point", include_in_schema=False)
def choose_threshold(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    action: Annotated[Literal["set", "best", "clear"], Form()],
    threshold: Annotated[list[_Threshold] | None, Form()] = None,
) -> Response:
    """Choose the thresholds of the form, or those with the best F1, or clear the operating point; show the page."""
    model, choice = str(_done(studio, job_id).parent), studio.operating_points.choice(job_id)
    if action == "clear":
        clear_operating_point(studio, who, model)
    else:
        chosen = [each.best.threshold if each.best else each.threshold for each in choice.rows]
        values = chosen if action == "best" else threshold or []
        if choice.rows and len(values) != len(choice.rows):
            raise UsageError(f"{len(values)} thresholds are given for {len(choice.rows)} classes.")
        named = {row.name: value for row, value in zip(choice.rows, values, strict=False)}
        set_operating_point(studio, who, model, evaluation=job_id, thresholds=named)
    return see_other(request, f"/evaluations/{job_id}#operating-point")


def _done(studio: Studio, job_id: str) -> Job:
    studio.evaluations.summary(job_id)  # raises where it is no evaluation, or not done
    return studio.jobs.get(job_id)
