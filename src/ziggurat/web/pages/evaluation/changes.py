"""Page of what changed between two evaluations: samples, labels, and the difference of the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from ziggurat.entities import ENDED_STATES, Job
from ziggurat.errors import UsageError
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.evaluation.measures import change_of
from ziggurat.web.pages.evaluation.task_samples import score_factor, task_tiles
from ziggurat.web.pages.evaluation.task_view import difference_words, interval_words, task_found
from ziggurat.web.pages.evaluation.view import Asked, sample_source
from ziggurat.web.rendering import is_part, page, part
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.evaluation_differences import Difference

__all__ = ["router"]

router = new_router()

_GRID: Final = 48
_KINDS: Final = ("evaluate", "infer")
_TITLES: Final[Mapping[str, tuple[str, str, str]]] = {
    "fixed": ("Fixed", "The first was wrong, the second is correct.", "The second run fixed nothing."),
    "broken": ("Broken", "The first was correct, the second is wrong.", "The second run broke nothing."),
    "still_wrong": ("Still wrong", "Both are wrong: a wrong label, or a hard sample.", "No sample is wrong in both."),
    "better": ("Better", "The second has a better score.", "No sample has a better score."),
    "worse": ("Worse", "The second has a worse score.", "No sample has a worse score."),
    "equal": ("Equal", "The scores differ by less than the margin.", "No sample has an equal score."),
    "label_changed": ("Label changed", "The label differs between the two datasets.", "No label changed."),
    "only_first": ("Only in the first", "The second dataset does not have them in this split.", "No sample."),
    "only_second": ("Only in the second", "The first dataset does not have them in this split.", "No sample."),
}
"""List of samples → its title, what it holds, and what is said where it is empty."""


class _Wanted(BaseModel):
    other: Annotated[str, Field(max_length=100)]
    which: Difference | None = None
    margin: str = Field("", max_length=40)
    offset: int = Field(0, ge=0, lt=2**31)


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """One of two evaluations.

    Args:
        job: the evaluation.
        model: its training; None where that was deleted.
        dataset: that it was made on; None where the studio does not have it.
        summary: as ``Evaluations.summary`` gives it.
    """

    job: Job
    model: Job | None
    dataset: Job | None
    summary: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A job that must be done before two evaluations can be compared.

    Args:
        title: what it is.
        job: it.
    """

    title: str
    job: Job


@router.get("/evaluations/{job_id}/differences", include_in_schema=False)
def differences(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, wanted: Annotated[_Wanted, Query()]
) -> Response:
    """Return what changed from an evaluation to another one, or what is still to be done before that is known."""
    first, second = studio.jobs.get(job_id), studio.jobs.get(wanted.other)
    if any(job.kind in _KINDS and job.state != "done" for job in (first, second)):
        return _waiting(request, studio, first, second)
    if is_part(request, "comparison-waiting"):  # all is done now: the whole page is asked for
        return Response(status_code=204, headers={"HX-Refresh": "true"})
    if studio.evaluations.results(job_id).is_classifier:
        return _classified(request, studio, (first, second), wanted)
    return _scored(request, studio, (first, second), wanted)


def _waiting(request: Request, studio: Studio, first: Job, second: Job) -> Response:
    models = studio.jobs.some([str(job.parent) for job in (first, second) if job.parent])
    model = models.get(str(second.parent))
    steps = [Step(title="Training", job=model)] if model is not None else []
    steps += [Step(title="Evaluation", job=second)]
    if first.state != "done":
        steps.append(Step(title="Evaluation of the former training", job=first))
    values: dict[str, Any] = {
        "first": first,
        "second": second,
        "former": models.get(str(first.parent)),
        "model": model,
        "steps": steps,
        "has_ended": any(each.job.state in ("failed", "stopped") for each in steps),
    }
    if is_part(request, "comparison-waiting"):
        return part(request, "evaluation/comparison_steps.html", **values)
    topics = tuple(f"job:{each.job.id}" for each in steps if each.job.state not in ENDED_STATES)
    return page(request, "evaluation/comparison_waiting.html", topics=topics, **values)


def _classified(request: Request, studio: Studio, jobs: tuple[Job, Job], wanted: _Wanted) -> Response:
    first, second = jobs
    which = wanted.which or "fixed"
    found = studio.evaluations.differences(first.id, second.id, which=which, offset=wanted.offset, limit=_GRID)
    runs = [_run(studio, each) for each in jobs]
    accuracy = found["accuracy"]
    change = change_of(accuracy["second"], accuracy["first"], rises=True, is_share=True) if accuracy else None
    shown = runs[1] if which == "only_second" else runs[0]
    return page(
        request,
        "evaluation/differences.html",
        **_shared(runs, found, which, wanted.offset),
        change=change,
        is_significant=accuracy is not None and not accuracy["interval"][0] <= 0 <= accuracy["interval"][1],
        classes=shown.summary["classes"],
        source=sample_source(studio, shown.job, shown.summary),
    )


def _scored(request: Request, studio: Studio, jobs: tuple[Job, Job], wanted: _Wanted) -> Response:
    first, second = jobs
    chosen: Any = {"which": wanted.which, "offset": wanted.offset, "limit": _GRID}
    factor = abs(score_factor(studio.evaluations.results(first.id).task.score))
    found = studio.evaluations.differences(first.id, second.id, margin=_margin(wanted.margin, factor), **chosen)
    which = wanted.which or "better"
    shown = second if which == "only_second" else first
    view = task_found(studio, shown, Asked(), lambda path: address(request, path))
    words, verdict = difference_words(found["mean"], view.rank)
    interval = found["interval"]
    return page(
        request,
        "evaluation/task_differences.html",
        **_shared([_run(studio, each) for each in jobs], found, which, wanted.offset),
        job=shown,
        found=view,
        tiles=task_tiles(studio, shown, found["samples"], view.source, is_drawn=not view.not_drawn),
        unknown=found["unknown"],
        mean=words,
        verdict=verdict if interval is not None and not interval[0] <= 0 <= interval[1] else "",
        interval_text=interval_words(interval, found["mean"], view.rank),
        margin_text=f"{found['margin'] / factor:.4g}",
    )


def _shared(runs: Sequence[ComparedRun], found: Mapping[str, Any], which: str, offset: int) -> dict[str, Any]:
    """Return what the pages of all tasks show."""
    return {
        "runs": runs,
        "differences": found,
        "versions": found["versions"],
        "which": which,
        "titles": _TITLES,
        "offset": offset,
        "limit": _GRID,
    }


def _run(studio: Studio, job: Job) -> ComparedRun:
    summary = studio.evaluations.summary(job.id)
    others = studio.jobs.some([str(each) for each in (job.parent, summary["dataset"]) if each])
    return ComparedRun(
        job=job,
        model=others.get(str(job.parent)),
        dataset=others.get(str(summary["dataset"])),
        summary=summary,
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
