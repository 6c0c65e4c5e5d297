"""Dataset page: description, charts, and progress during creation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Form, Path, Query, Request, Response
from pydantic import BaseModel, Field

from ziggurat.entities import Job, JobFilter
from ziggurat.errors import NotThereError, ZigguratError
from ziggurat.formatting import plural
from ziggurat.operations.jobs import delete_job
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.caches import BackgroundResult, background_results
from ziggurat.web.columns import best_values
from ziggurat.web.flash import see_deleted
from ziggurat.web.pages.dataset.overview import CHECKED_AT_ONCE, Health, health_of, shown_samples
from ziggurat.web.pages.dataset.sample_images import mean_picture, places_of, sample_picture, tile_sheet
from ziggurat.web.pages.dataset.view import (
    KIND_NAMES,
    KIND_WORDS,
    class_bars,
    dataset_about,
    dataset_charts,
    dataset_problems,
    dataset_spec,
    pixel_shares,
    retrain_offer,
    used_classes,
)
from ziggurat.web.pages.job.log import job_log
from ziggurat.web.pages.job.view import job_now
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.training_checks import default_title, why_not_trainable

__all__ = ["check_result", "dataset_frame", "is_finished", "router", "statistics_result", "version_page"]

router = new_router()

_AT_ONCE_S: Final = 0.1
_PATIENCE_S: Final = 4.0
_VERSIONS: Final = 30
_SHOWN_USERS: Final = 20
_KEPT: Final = {"Cache-Control": "private, max-age=31536000, immutable"}
"""A dataset never changes, and an id is never used again."""


class _Picture(BaseModel):
    part: int = Field(0, ge=0, le=100)
    max_side_px: int = Field(1024, ge=8, le=4096)
    overlay: bool = False
    original: bool = False


class _Sheet(BaseModel):
    of: str = Field(max_length=2000)
    source: bool = False
    part: int = Field(0, ge=0, le=100)
    overlay: bool = False


@router.get("/datasets/{job_id}", include_in_schema=False)
def dataset(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    evaluation: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Return the page of a dataset, or the part of it that changes while it is being made."""
    if is_part(request, "dataset-making"):
        return _making_or_over(request, studio, job_id)
    job = studio.jobs.get(job_id)
    if job.kind != "dataset":
        return see_other(request, f"/jobs/{job_id}")
    if job.state != "done":
        return page(request, "dataset/making_page.html", topics=(f"job:{job_id}",), **_making(studio, job_id))
    return version_page(request, studio, job_id, evaluation)


def version_page(
    request: Request, studio: Studio, job_id: str, evaluation: str = "", error: ZigguratError | None = None
) -> Response:
    """Return the page of a dataset that is done.

    Args:
        request: that it answers.
        studio: where it is.
        job_id: of the dataset.
        evaluation: id of the one that a user came from; empty for none.
        error: of a retraining that was refused; None for none.
    """
    job = studio.jobs.get(job_id)
    found = statistics_result(request, studio, job_id, _AT_ONCE_S)
    about = dataset_about(studio, job)
    health = _health(request, studio, job_id, about.described, _AT_ONCE_S)
    return page(
        request,
        "dataset/page.html",
        **dataset_frame(studio, job, "", about.described),
        about=about,
        bests=best_values(studio, [each for each in about.users if each.kind == "train"][:_SHOWN_USERS]),
        health=health,
        **_shown_samples(request, studio, job_id),
        projects=studio.projects.names(),
        retrain=retrain_offer(studio, job, evaluation) if about.parents else None,
        error=error,
        **_charts(request, job_id, found),
    )


@router.get("/datasets/{job_id}/health", include_in_schema=False)
def health(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the health of a dataset once its quick check is done, which runs in the background."""
    if not is_part(request, "dataset-health") or not is_finished(studio.jobs.get(job_id)):
        return see_other(request, f"/datasets/{job_id}")
    found = _health(request, studio, job_id, studio.datasets.describe(job_id), _PATIENCE_S)
    return part(request, "dataset/health.html", job=studio.jobs.get(job_id), health=found)


@router.get("/datasets/{job_id}/shown", include_in_schema=False)
def shown(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return other samples than those that the page of a dataset shows."""
    if not is_part(request, "dataset-samples") or not is_finished(studio.jobs.get(job_id)):
        return see_other(request, f"/datasets/{job_id}", dict(request.query_params))
    values = _shown_samples(request, studio, job_id)
    return part(request, "dataset/shown.html", job=studio.jobs.get(job_id), **values)


@router.get("/datasets/{job_id}/charts", include_in_schema=False)
def charts(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the charts once they are there; they are counted in the background."""
    job = studio.jobs.get(job_id)
    if not is_part(request, "dataset-charts"):
        return see_other(request, f"/datasets/{job_id}")
    found = statistics_result(request, studio, job_id, _PATIENCE_S)
    return part(request, "dataset/charts.html", job=job, **_charts(request, job_id, found))


@router.get("/datasets/{job_id}/mean.png", include_in_schema=False)
def mean(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the mean of the training images."""
    content = mean_picture(studio, job_id)
    return Response(content, media_type="image/png", headers=_KEPT)


@router.get("/datasets/{job_id}/pictures/{split}/{row}", include_in_schema=False)
def picture(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    split: str,
    row: Annotated[int, Path(ge=0, lt=2**31)],
    wanted: Annotated[_Picture, Query()],
) -> Response:
    """Return an image of a sample, made smaller where it is larger; a mask in the colors of its classes.

    With ``original``, the file that it was made of, where that is still there.
    """
    if wanted.original:
        found = studio.datasets.original(job_id, split, row, wanted.part)
        return Response(found.content, media_type=found.media_type, headers=found.headers)
    content, media_type = sample_picture(
        studio,
        job_id,
        split,
        row,
        part=wanted.part,
        max_side_px=wanted.max_side_px,
        is_overlay=wanted.overlay,
    )
    return Response(content, media_type=media_type, headers=_KEPT)


@router.get("/datasets/{job_id}/tiles", include_in_schema=False)
def tiles(studio: StudioDep, _who: ViewerUser, job_id: str, wanted: Annotated[_Sheet, Query()]) -> Response:
    """Return one image with the small images of several samples; its address names them, so it never changes."""
    content, media_type = tile_sheet(studio, job_id, places_of(wanted.of), part=wanted.part, is_overlay=wanted.overlay)
    return Response(content, media_type=media_type, headers=_KEPT)


@router.get("/datasets/{job_id}/log", include_in_schema=False)
def log(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the end of the log of a dataset's creation."""
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    return page(request, "dataset/log.html", **dataset_frame(studio, job, "log"), log=job_log(studio, job_id))


@router.get("/datasets/{job_id}/delete", include_in_schema=False)
def ask_to_delete(request: Request, studio: StudioDep, _who: TrainerUser, job_id: str) -> Response:
    """Return the page that asks before a dataset is deleted, and says what uses it."""
    return _delete_page(request, studio, job_id)


@router.post("/datasets/{job_id}/delete", include_in_schema=False)
def delete(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, force: Annotated[bool, Form()] = False
) -> Response:
    """Delete a dataset that nothing uses; ``force`` ends the worker that makes it."""
    if studio.jobs.dependents(job_id):
        return _delete_page(request, studio, job_id, 409)
    name = studio.jobs.get(job_id).name
    try:
        delete_job(studio, who, job_id, force)
    except ZigguratError as error:
        return _delete_page(request, studio, job_id, error=error)
    return see_deleted(request, "/datasets", name, job_id)


def dataset_frame(studio: Studio, job: Job, tab: str, described: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what the head of every page of a dataset shows.

    Args:
        studio: where it is.
        job: of the dataset, which is done.
        tab: name of the page: empty, ``explore``, ``check``, ``versions``, ``log`` or ``export``.
        described: what ``Datasets.describe`` returned, where it was asked before.
    """
    if described is None:
        described = studio.datasets.describe(job.id)
    total = sum(described["splits"].values())
    word = "image" if described["image"] else KIND_WORDS.get(described["kind"], "sample")
    counts = [plural(total, word)]
    if described["classes"]:
        counts.append(plural(len(used_classes(described)), "class", "classes"))
    classes = tuple(described["classes"] or ())
    why_not = why_not_trainable(described["kind"], classes)
    chain = version_chain(studio, job)
    return {
        "job": job,
        "tab": tab,
        "kind_title": KIND_NAMES.get(described["kind"], described["kind"]),
        "counts": ", ".join(counts),
        "finding_count": studio.datasets.known_findings(job.id),
        "problem_count": sum(described["problems"].values()),
        "is_trainable": not why_not,
        "can_name_classes": bool(classes) or described["kind"] == "segmentation",
        "trained_for": default_title(described["kind"], bool(classes)),
        "why_not_trainable": why_not,
        "chain": chain,
        "version_number": sum(1 for each in chain if not each.is_newer),
    }


@dataclass(frozen=True, kw_only=True)
class ChainLink:
    """A version of a dataset in the menu of versions.

    Args:
        job: of the version.
        number: its place in the chain, from 1.
        is_newer: whether it was made of the one that is shown.
    """

    job: Job
    number: int
    is_newer: bool = False


def version_chain(studio: Studio, job: Job) -> list[ChainLink]:
    """Return a dataset with the versions that it came from and that came from it, the newest first."""
    older, at = [job], job
    while at.parent and len(older) < _VERSIONS:
        try:
            at = studio.jobs.get(at.parent)
        except NotThereError:  # deleted since
            break
        older.append(at)
    of_it = JobFilter(kinds=("dataset",), conditions=(("parent", "=", job.id),), limit=_VERSIONS)
    number = len(older)
    newer = [ChainLink(job=each, number=number + 1, is_newer=True) for each in studio.jobs.page(of_it).jobs]
    return newer + [ChainLink(job=each, number=number - place) for place, each in enumerate(older)]


def is_finished(job: Job) -> bool:
    """Return whether a job is a dataset that can be looked at; the page of any other says what it is."""
    return job.kind == "dataset" and job.state == "done"


def _making(studio: Studio, job_id: str) -> dict[str, Any]:
    now = job_now(studio, job_id)
    return {
        "now": now,
        "job": now.job,
        "bad": dataset_problems(now.job),
        "asked": dataset_spec(now.job),
        "log": job_log(studio, job_id),
    }


def _making_or_over(request: Request, studio: Studio, job_id: str) -> Response:
    """Return how it goes; the whole page is asked for again when the dataset is there, or gone."""
    try:
        if studio.jobs.get(job_id).state != "done":
            return part(request, "dataset/making.html", **_making(studio, job_id))
    except NotThereError:
        return part(request, "dataset/gone.html")
    return Response(status_code=204, headers={"HX-Refresh": "true"})


def check_result(
    request: Request, studio: Studio, job_id: str, *, verify: bool = False, wait_s: float = 0.0
) -> BackgroundResult:
    """Return the check of a dataset, which is begun in the background if it was not, and kept."""
    studio.datasets.folder(job_id)
    return background_results(request).get(
        ("check", job_id, verify), lambda: studio.datasets.check(job_id, verify=verify), wait_s=wait_s
    )


def _health(request: Request, studio: Studio, job_id: str, described: Mapping[str, Any], wait_s: float) -> Health:
    if sum(described["splits"].values()) <= CHECKED_AT_ONCE:
        found = check_result(request, studio, job_id, wait_s=wait_s)
    else:
        found = background_results(request).peek(("check", job_id, False))
    trains = not why_not_trainable(described["kind"], tuple(described["classes"] or ()))
    return health_of(job_id, described, found, trains=trains)


def _shown_samples(request: Request, studio: Studio, job_id: str) -> dict[str, Any]:
    query = request.query_params
    seed = int(text) if (text := query.get("draw", "")).isascii() and text.isdigit() and len(text) < 7 else 0
    return {"shown": shown_samples(studio, job_id, seed=seed, by_class=query.get("by") == "class")}


def statistics_result(request: Request, studio: Studio, job_id: str, wait_s: float) -> BackgroundResult:
    """Return the statistics of a dataset, which are counted in the background, once."""
    studio.datasets.folder(job_id)
    key = ("statistics", job_id)
    return background_results(request).get(key, lambda: studio.datasets.statistics(job_id), wait_s=wait_s)


def _charts(request: Request, job_id: str, found: BackgroundResult) -> dict[str, Any]:
    explore = address(request, f"/datasets/{job_id}/explore")
    statistics = found.value if found.is_ready else None
    charts, folds = dataset_charts(statistics) if statistics is not None else ([], [])
    return {
        "is_counted": found.is_ready,
        "pixels": pixel_shares(statistics) if statistics is not None else None,
        "classes": class_bars(statistics, explore) if statistics is not None else None,
        "charts": charts,
        "folds": folds,
        "notes": statistics.notes if statistics is not None else [],
        "counting_problem": found.error.as_dict() if found.is_ready and found.error is not None else None,
    }


def _delete_page(
    request: Request, studio: Studio, job_id: str, status: int = 200, error: ZigguratError | None = None
) -> Response:
    job = studio.jobs.get(job_id)
    if job.kind != "dataset":
        return see_other(request, f"/jobs/{job_id}/delete")
    users = studio.jobs.dependents(job_id)
    corrected = studio.datasets.boxes.places(job_id) if is_finished(job) else []
    return page(
        request,
        "dataset/delete.html",
        status,
        job=job,
        users=users,
        corrected=corrected,
        error=error,
        trash_days=studio.settings.trash_days,
    )
