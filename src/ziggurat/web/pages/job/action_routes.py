"""Form actions of a job page: stop, pause, resume, retry, edit, delete, and control of the learning rate."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import Form, Request, Response
from pydantic import BaseModel

from ziggurat.entities import JobChange
from ziggurat.errors import ConfigurationError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.specs import comma_question
from ziggurat.web.pages.job.routes import job_page, live_parts
from ziggurat.web.pages.job.view import job_now
from ziggurat.web.rendering import is_part, page, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

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
        return page(request, "job/delete.html", status_of(error), now=now, said=error.as_dict())
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
    status = status_of(error)
    if status == 404 and "/checkpoints/" not in request.url.path:
        raise error
    if is_part(request):
        return live_parts(request, studio, job_id, status, error)
    return job_page(request, studio, job_id, status, error, **typed)


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
