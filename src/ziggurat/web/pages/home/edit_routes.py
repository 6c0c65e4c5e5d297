"""Job edit forms: renaming in the table; notes, tags, project and priority in a dialog or on a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response

from ziggurat.entities import Job, JobChange
from ziggurat.errors import ConfigurationError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.home.action_routes import Sent, answer, text_of
from ziggurat.web.pages.home.bulk import Outcome, named_tags
from ziggurat.web.pages.home.query import HomeQuery, query_of_text
from ziggurat.web.pages.home.results import results_of
from ziggurat.web.pages.home.routes import results_part, shown_query
from ziggurat.web.rendering import is_part, page, part
from ziggurat.workspace.studio import Studio

__all__ = ["router"]


_LONGEST_NAME: Final = 200
_LONGEST_NOTES: Final = 100_000
_PRIORITIES: Final = range(-1000, 1001)


def fields_of(job: Job) -> dict[str, str]:
    """Return what stands in the form at first."""
    return {
        "name": job.name,
        "notes": job.notes,
        "tags": ", ".join(job.tags),
        "project": job.project,
        "priority": str(job.priority),
    }


def change_from(form: Mapping[str, str]) -> JobChange:
    """Return what was typed as a change; fields that were not sent stay.

    Raises:
        ConfigurationError: where a field does not fit; ``details["field"]`` says which.
    """
    name, notes, project = (form.get(field) for field in ("name", "notes", "project"))
    if name is not None and not 0 < len(name.strip()) <= _LONGEST_NAME:
        raise _wrong("name", f"A name has 1 to {_LONGEST_NAME} characters.", f"{len(name.strip())} characters")
    if notes is not None and len(notes) > _LONGEST_NOTES:
        raise _wrong("notes", f"Notes have at most {_LONGEST_NOTES} characters.", f"{len(notes)} characters")
    if project is not None and len(project.strip()) > _LONGEST_NAME:
        raise _wrong("project", f"A project has a name of at most {_LONGEST_NAME} characters.", "a longer one")
    return JobChange(
        name=None if name is None else name.strip(),
        notes=notes,
        project=None if project is None else project.strip(),
        tags=_tags(form["tags"]) if "tags" in form else None,
        priority=_priority(form["priority"]) if "priority" in form else None,
    )


def field_of(error: Mapping[str, object]) -> str:
    """Return at which field an error is shown; empty for the form as a whole."""
    details = error.get("details")
    return str(details.get("field", "")) if isinstance(details, Mapping) else ""


def _tags(text: str) -> tuple[str, ...]:
    tags = named_tags(text)
    long = next((tag for tag in tags if len(tag) > _LONGEST_NAME), None)
    if long is not None:
        raise _wrong("tags", f"A tag has at most {_LONGEST_NAME} characters.", f"{len(long)} characters")
    return tags


def _priority(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = _PRIORITIES.stop
    if number not in _PRIORITIES:
        rule = f"A priority is a whole number from {_PRIORITIES.start} to {_PRIORITIES.stop - 1}."
        raise _wrong("priority", rule, f"`{text[:50]}`")
    return number


def _wrong(field: str, rule: str, received: str) -> ConfigurationError:
    return ConfigurationError(rule, received=received, details={"field": field})


router = new_router()

_FIELDS = ("name", "notes", "tags", "project", "priority")


@router.get("/jobs/{job_id}/edit", include_in_schema=False)
def show(
    request: Request,
    studio: StudioDep,
    _who: TrainerUser,
    job_id: str,
    back: Annotated[str, Query(max_length=5000)] = "",
) -> Response:
    """Return the form, for a dialog or as a page."""
    typed = fields_of(studio.jobs.get(job_id))
    return _form(request, studio, job_id, query_of_text(back), typed)


@router.post("/jobs/{job_id}/edit", include_in_schema=False)
def save(request: Request, studio: StudioDep, who: TrainerUser, job_id: str, sent: Sent) -> Response:
    """Change what was typed; where it does not fit, nothing is lost."""
    back = text_of(sent, "back")
    query = shown_query(request, back)
    typed = {name: text_of(sent, name) for name in _FIELDS if name in sent}
    is_in_place = "in_place" in sent
    try:
        job = studio.jobs.change(job_id, change_from(typed))
    except ZigguratError as error:
        if is_in_place:
            return _row(request, studio, job_id, query, typed.get("name", ""), error)
        return _form(request, studio, job_id, query, {**fields_of(studio.jobs.get(job_id)), **typed}, error)
    studio.people.note(who, "job.change", job_id, fields=sorted(typed))
    if is_in_place and is_part(request, "results"):
        return results_part(request, results_of(studio, dataclasses.replace(query, rename="")))
    return answer(request, studio, back, Outcome(text=f"{job.name} was changed."))


def _form(
    request: Request,
    studio: Studio,
    job_id: str,
    query: HomeQuery,
    typed: dict[str, str],
    error: ZigguratError | None = None,
) -> Response:
    shape = error.as_dict() if error is not None else None
    dialog: dict[str, Any] = {
        "kind": "edit",
        "job": studio.jobs.get(job_id),
        "typed": typed,
        "error": shape,
        "field": field_of(shape or {}),
        "projects": [each.name for each, _ in studio.projects.all()],
    }
    status = 200 if error is None else status_of(error)
    if is_part(request):
        return part(request, "home/dialog.html", status, dialog=dialog, back=query.text_form)
    return page(request, "home/asked.html", status, dialog=dialog, back=query.text_form, cancel=query.values())


def _row(request: Request, studio: Studio, job_id: str, query: HomeQuery, typed: str, error: ZigguratError) -> Response:
    """Return the table with the name as it was typed, and what is wrong with it."""
    found = results_of(studio, dataclasses.replace(query, rename=job_id))
    results = dataclasses.replace(found, typed=typed, name_problem=error.as_dict()["rule"])
    return results_part(request, results, status_of(error))
