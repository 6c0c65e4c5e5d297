"""Samples of an evaluation: the list that a filter leaves, and their relabeling in a new version of the dataset."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import Form, Query, Request, Response
from pydantic import BaseModel, Field, model_validator

from ziggurat.entities import Job
from ziggurat.entities.task_report import ScoreInfo
from ziggurat.errors import JobError, UsageError, ZigguratError
from ziggurat.operations import datasets
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.evaluation.relabeling import LONGEST_NAME, relabeling_of
from ziggurat.web.pages.evaluation.task_samples import score_factor, task_tiles
from ziggurat.web.pages.evaluation.task_view import task_found
from ziggurat.web.pages.evaluation.view import Asked, sample_source
from ziggurat.web.rendering import page, see_other
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_GRID: Final = 48
_ORDERS: Final = {"hardest": "Hardest first", "surest_wrong": "Most confident errors first", "row": "In dataset order"}
_TASK_ORDERS: Final = {"hardest": "Worst first", "easiest": "Best first", "row": "In dataset order"}


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
        ends = [None if each is None else each * score_factor(info) for each in (self.score_from, self.score_to)]
        low, high = ends if info.sign > 0 else ends[::-1]
        order = self.order if self.order in _TASK_ORDERS else "hardest"
        return {"order": order, "min_score": low, "max_score": high}


class _Relabel(_Filter):
    """What the form sends: the filter of the list, and what is to be done with its samples."""

    scope: Literal["all", "chosen"] = "chosen"
    samples: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(default_factory=list, max_length=20_000)
    to: str = Field("", max_length=1000)
    version_name: str = Field("", max_length=1000)


@router.get("/evaluations/{job_id}/samples", include_in_schema=False)
def samples(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, wanted: Annotated[_Filter, Query()]
) -> Response:
    """Return the samples that a filter leaves, as images."""
    studio.evaluations.summary(job_id)  # raises where it is no evaluation, or not done
    return _samples_page(request, studio, studio.jobs.get(job_id), wanted)


def _samples_page(
    request: Request, studio: Studio, job: Job, wanted: _Filter, refused: _Relabel | None = None, **more: Any
) -> Response:
    """Return the list; ``more`` is the error of a relabeling that was refused."""
    if not studio.evaluations.results(job.id).is_classifier:
        return _task_samples(request, studio, job, wanted)
    found = studio.evaluations.samples(job.id, offset=wanted.offset, limit=_GRID, **wanted.chosen())
    summary = studio.evaluations.summary(job.id)
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
        relabeling=relabeling_of(studio, job, summary, "" if wanted.predicted == wanted.label else wanted.predicted),
        typed=refused or _Relabel.model_validate({}),
        **more,
    )


def _task_samples(request: Request, studio: Studio, job: Job, wanted: _Filter) -> Response:
    """Return the samples of a task without classes, by their score."""
    results = studio.evaluations.results(job.id)
    chosen = wanted.chosen_by_score(results.task.score)
    names = [each.name for each in results.sample_fields]
    asked = {name: value for name, value in request.query_params.items() if name in names and value}
    found = studio.evaluations.samples(job.id, offset=wanted.offset, limit=_GRID, asked=asked, **chosen)
    view = task_found(studio, job, Asked(), lambda path: address(request, path))
    return page(
        request,
        "evaluation/task_samples.html",
        job=job,
        found=view,
        tiles=task_tiles(studio, job, found["samples"], view.source, is_drawn=not view.not_drawn, asked=asked),
        fields=results.sample_fields,
        field_values=results.checked(asked),
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


@router.post("/evaluations/{job_id}/relabel", include_in_schema=False)
def relabel(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, asked: Annotated[_Relabel, Form()]
) -> Response:
    """Make a version in which the samples of the list, or some of them, have another label; show it."""
    summary = studio.evaluations.summary(job_id)
    job = studio.jobs.get(job_id)
    dataset = str(summary["dataset"])
    if relabeling_of(studio, job, summary, "") is None:
        raise JobError(
            "Samples are relabeled where each has one class, in a dataset that is still there.", received=job_id
        )
    try:
        rows = studio.evaluations.rows(job_id, **asked.chosen()) if asked.scope == "all" else asked.samples
        _check(asked, rows, summary["classes"])
        places = [f"{summary['split']}/{row}" for row in rows]
        name = asked.version_name.strip()
        made = datasets.relabel(studio, who, dataset, places, asked.to, name, evaluation=job_id)
    except ZigguratError as error:
        return _samples_page(request, studio, job, asked, asked, error=error)
    return see_other(request, f"/datasets/{made.id}", {"evaluation": job_id})


def _check(asked: _Relabel, rows: list[int], classes: list[str]) -> None:
    if not rows:
        raise UsageError("Choose at least one sample.", advice="Select the boxes beside the samples.")
    if asked.to not in classes:
        wrong = f"`{asked.to[:40]}` is no class of the dataset" if asked.to else "No label is chosen"
        raise UsageError(f"{wrong}: choose the label that the samples are to get.")
    if not 0 < len(asked.version_name.strip()) <= LONGEST_NAME:
        raise UsageError(
            f"A version has a name of 1 to {LONGEST_NAME} characters.",
            received=f"{len(asked.version_name.strip())} characters",
        )
