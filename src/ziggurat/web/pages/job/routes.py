"""Pages of a job, with their form actions: stop, pause, resume, retry, edit, delete, learning rate."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import Form, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from ziggurat.entities import JobChange
from ziggurat.errors import ConfigurationError, NotThereError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.specs import comma_question
from ziggurat.web.pages.job.view import job_about, job_log, job_now
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()


_MOST_POINTS: Final = 10_000_000


def curves_csv(studio: Studio, job_id: str, tags: list[str]) -> Iterator[bytes]:
    """Return the points of curves as CSV, one curve after the other: ``tag,step,epoch,time,value``.

    Args:
        studio: where they are.
        job_id: whose.
        tags: names of the curves.
    """
    yield b"tag,step,epoch,time,value\r\n"
    for tag in tags:
        curve = studio.curves.curve(job_id, tag, max_points=_MOST_POINTS)
        text = io.StringIO()
        columns = (curve.steps.tolist(), curve.epochs.tolist(), curve.times.tolist(), curve.values.tolist())
        csv.writer(text).writerows((tag, *row) for row in zip(*columns, strict=True))
        yield text.getvalue().encode()


_PLACES: Final = {"train": "models", "dataset": "datasets", "evaluate": "evaluations", "infer": "evaluations"}
_PART_BYTES: Final = 256 << 10
"""How much of a log stands on one page."""


@router.get("/models/{job_id}", include_in_schema=False)
def training(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the page of a training, or the parts of it that change while it runs."""
    if is_part(request, "job-live"):
        return _live_or_gone(request, studio, job_id)
    if studio.jobs.get(job_id).kind != "train":
        return see_other(request, f"/jobs/{job_id}")
    return job_page(request, studio, job_id)


@router.get("/jobs/{job_id}", include_in_schema=False)
def any_job(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Send to the page of a job; kinds that have none are shown here."""
    if is_part(request, "job-live"):
        return _live_or_gone(request, studio, job_id)
    kind = studio.jobs.get(job_id).kind
    if kind in _PLACES:
        return see_other(request, f"/{_PLACES[kind]}/{job_id}")
    return job_page(request, studio, job_id)


@router.get("/jobs/{job_id}/log", include_in_schema=False)
def log(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, seen: Annotated[str, Query()] = ""
) -> Response:
    """Return the log as a text; for a page that shows its end already, that end where it is another one."""
    if not is_part(request, "job-log"):
        headers = {"X-Content-Type-Options": "nosniff", "Vary": "HX-Request"}
        return StreamingResponse(
            studio.outputs.whole_log(job_id), media_type="text/plain; charset=utf-8", headers=headers
        )
    found = job_log(studio, job_id)
    if found.mark == seen:
        return Response(status_code=204)
    return part(request, "job/log.html", job=studio.jobs.get(job_id), log=found)


@router.get("/jobs/{job_id}/log/part", include_in_schema=False)
def log_part(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    before: Annotated[int | None, Query(ge=0, le=1 << 62)] = None,
) -> Response:
    """Return a page with the end of a log, or with the part that ends at an offset, and links to its neighbors."""
    found = studio.outputs.log(job_id, at_most_bytes=_PART_BYTES, before=before)
    after = min(found.end + _PART_BYTES, found.size)
    return page(request, "job/log_part.html", job=studio.jobs.get(job_id), log=found, after=after)


@router.get("/jobs/{job_id}/curves.csv", include_in_schema=False)
def curves(studio: StudioDep, _who: ViewerUser, job_id: str, tag: Annotated[list[str], Query()] = []) -> Response:  # noqa: B006
    """Return the points of all curves, or of some, as a table."""
    job, known = studio.jobs.get(job_id), studio.curves.tags(job_id)
    chosen = [each for each in known if each in tag] if tag else known
    word = re.sub(r"[^A-Za-z0-9._-]+", "-", job.name).strip("-.") or job.id
    name = (
        f"attachment; filename=\"{word}-curves.csv\"; filename*=UTF-8''{quote(job.name or job.id, safe='')}-curves.csv"
    )
    parts = curves_csv(studio, job_id, chosen)
    return StreamingResponse(parts, media_type="text/csv; charset=utf-8", headers={"Content-Disposition": name})


def live_parts(request: Request, studio: Studio, job_id: str, error: ZigguratError | None = None) -> Response:
    """Return the parts of the page that change while a job runs.

    Args:
        request: that it answers.
        studio: where the job is.
        job_id: of the job.
        error: what went wrong with what was asked for; None for nothing.
    """
    return part(request, "job/live.html", now=job_now(studio, job_id), error=error, typed={})


def job_page(
    request: Request,
    studio: Studio,
    job_id: str,
    error: ZigguratError | None = None,
    **typed: Any,
) -> Response:
    """Return the whole page.

    Args:
        request: that it answers.
        studio: where the job is.
        job_id: of the job.
        error: what went wrong with what was asked for; None for nothing.
        typed: what was typed into a form that was not taken.
    """
    now = job_now(studio, job_id)
    about = job_about(studio, now.job, studio.machine.strip()["frameworks"])
    return page(
        request,
        "job/page.html",
        topics=(f"job:{job_id}",),
        now=now,
        about=about,
        log=job_log(studio, job_id),
        projects=[each.name for each, _ in studio.projects.all()],
        error=error,
        typed=typed,
    )


def _live_or_gone(request: Request, studio: Studio, job_id: str) -> Response:
    try:
        return live_parts(request, studio, job_id)
    except NotThereError:  # deleted while this page was open
        return part(request, "job/gone.html")


_LONGEST_NAME: Final = 200


class _ChangeForm(BaseModel):
    name: str | None = None
    notes: str | None = None
    project: str | None = None
    tags: str | None = None


@router.post("/jobs/{job_id}/actions/{action}", include_in_schema=False)
def act(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    action: Literal["stop", "stop_now", "pause", "resume", "retry"],
) -> Response:
    """Do what a button says."""
    jobs = studio.jobs
    try:
        if action == "stop_now":
            jobs.stop(job_id, who=who.name, now=True)
        elif action in ("stop", "pause"):
            getattr(jobs, action)(job_id, who=who.name)
        else:
            getattr(jobs, action)(job_id)
    except ZigguratError as error:
        return _refused(request, studio, job_id, error)
    studio.people.note(who, f"job.{action}", job_id)
    return _done(request, studio, job_id)


@router.post("/jobs/{job_id}/learning-rate", include_in_schema=False)
def set_learning_rate(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    value: Annotated[str, Form()] = "",
    force: Annotated[bool, Form()] = False,
) -> Response:
    """Set the learning rate of a training that runs; one of more than ten times the present one by ``force`` only."""
    try:
        number = _rate(value)
        studio.jobs.set_hyperparameter(job_id, "learning_rate", number, force=force)
    except ZigguratError as error:
        return _refused(request, studio, job_id, error, learning_rate=value)
    studio.people.note(who, "job.hyperparameter", job_id, name="learning_rate", value=number)
    return _done(request, studio, job_id)


@router.post("/jobs/{job_id}/learning-rate/schedule", include_in_schema=False)
def follow_schedule(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Let the schedule of a training that runs set the learning rate again."""
    try:
        studio.jobs.unset_hyperparameter(job_id, "learning_rate")
    except ZigguratError as error:
        return _refused(request, studio, job_id, error)
    studio.people.note(who, "job.hyperparameter", job_id, name="learning_rate", value=None)
    return _done(request, studio, job_id)


@router.post("/jobs/{job_id}/change", include_in_schema=False)
def change(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, form: Annotated[_ChangeForm, Form()]
) -> Response:
    """Change what people call a job and what they note about it; fields that are not sent stay."""
    given = form.model_dump(exclude_none=True)
    try:
        studio.jobs.change(job_id, _change(given))
    except ZigguratError as error:
        return _refused(request, studio, job_id, error, **given)
    studio.people.note(who, "job.change", job_id, fields=sorted(given))
    return see_other(request, f"/jobs/{job_id}")


@router.get("/jobs/{job_id}/delete", include_in_schema=False)
def ask_to_delete(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the page that asks before a job is deleted, for browsers without scripts."""
    return page(request, "job/delete.html", now=job_now(studio, job_id), said=None)


@router.post("/jobs/{job_id}/delete", include_in_schema=False)
def delete(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, force: Annotated[bool, Form()] = False
) -> Response:
    """Delete a job and its folder."""
    try:
        studio.jobs.delete(job_id, force=force)
    except ZigguratError as error:
        now = job_now(studio, job_id)
        return page(request, "job/delete.html", now=now, error=error)
    studio.people.note(who, "job.delete", job_id, force=force)
    return see_other(request, "/")


@router.post("/jobs/{job_id}/checkpoints/{name}/delete", include_in_schema=False)
def remove_checkpoint(request: Request, studio: StudioDep, who: TrainerUser, job_id: str, name: str) -> Response:
    """Remove a checkpoint of a job that is not running."""
    try:
        studio.outputs.remove_checkpoint(job_id, name)
    except ZigguratError as error:
        return _refused(request, studio, job_id, error)
    studio.people.note(who, "checkpoint.delete", job_id, name=name)
    return _done(request, studio, job_id)


def _done(request: Request, studio: Studio, job_id: str) -> Response:
    return live_parts(request, studio, job_id) if is_part(request) else see_other(request, f"/jobs/{job_id}")


def _refused(request: Request, studio: Studio, job_id: str, error: ZigguratError, **typed: Any) -> Response:
    """Show the page again with what was typed and what is wrong with it."""
    if status_of(error) == 404 and "/checkpoints/" not in request.url.path:
        raise error
    if is_part(request):
        return live_parts(request, studio, job_id, error)
    return job_page(request, studio, job_id, error, **typed)


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(
            "A learning rate must be a number above 0.",
            received=f"`{text[:50]}`",
            advice=comma_question(text, "number") or "Typical rates are 0.0001 to 0.1.",
            details={"field": "learning_rate"},
        ) from None


def _change(given: dict[str, str]) -> JobChange:
    name = given.get("name")
    if name is not None and not 0 < len(name.strip()) <= _LONGEST_NAME:
        raise ConfigurationError(
            f"A name has 1 to {_LONGEST_NAME} characters.",
            received=f"{len(name.strip())} characters",
            details={"field": "name"},
        )
    tags = given.get("tags")
    return JobChange(
        name=None if name is None else name.strip(),
        notes=given.get("notes"),
        project=None if "project" not in given else given["project"].strip(),
        tags=None if tags is None else tuple(dict.fromkeys(tag.strip() for tag in tags.split(",") if tag.strip())),
    )
