"""Home page: running and queued jobs, the table of all jobs, actions on them, edit forms; the status bar."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import Depends, Query, Request, Response
from starlette.datastructures import FormData
from starlette.responses import FileResponse

from ziggurat.entities import Job, JobChange
from ziggurat.errors import ConfigurationError, UnknownNameError, UsageError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import anyone, new_router
from ziggurat.web.pages.home.bulk import Choice, Outcome, carry_out, flash_messages, named_tags
from ziggurat.web.pages.home.view import (
    PAGE_SIZES,
    HomeQuery,
    Results,
    move_in_queue,
    place_in_queue,
    query_of,
    query_of_text,
    queue_of,
    results_of,
)
from ziggurat.web.pages.job.view import actions_of
from ziggurat.web.rendering import is_part, page, part, see_other, status_bar_of
from ziggurat.web.static_files import STATIC
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.training_checks import why_not_trainable

__all__ = ["router"]

router = new_router()


@router.get("/", include_in_schema=False)
def home(
    request: Request, studio: StudioDep, _who: ViewerUser, said: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Return the first page, or the part of it with the table."""
    kinds = studio.jobs.kind_counts()
    query = query_of(request.query_params, kinds)
    if is_part(request, "results"):
        return results_part(request, results_of(studio, query, kinds))
    strip = status_bar_of(request)
    results = results_of(studio, query, kinds, strip.states)
    outcome = flash_messages(request).take(said) if said else None
    found = queue_of(studio, query.waiting_limit, is_whole=bool(query.waiting), running=strip.running)
    status = 400 if results.where_problem else 200
    seen = {"strip": strip, "outcome": outcome, "kinds": kinds, "remarks": studio.remarks}
    values = {**seen, **home_values(request, results, found)}
    return page(request, "home/page.html", status, **values)


@router.get("/parts/menu/{job_id}", include_in_schema=False)
def menu(request: Request, studio: StudioDep, _who: TrainerUser, job_id: str) -> Response:
    """Return what can be done with a job of the table."""
    job = studio.jobs.get(job_id)
    is_dataset = job.kind == "dataset" and job.state == "done"
    return part(
        request,
        "home/menu.html",
        job=job,
        actions=actions_of(job),
        is_trainable=is_dataset and not why_not_trainable(studio.datasets.describe(job_id)["kind"]),
        back=shown_query(request, "").text_form,
    )


@router.get("/parts/queue", include_in_schema=False)
def queue(request: Request, studio: StudioDep, _who: ViewerUser) -> Response:
    """Return what runs and what waits."""
    query = shown_query(request, "")
    found = queue_of(studio, query.waiting_limit, is_whole=bool(query.waiting))
    return part(request, "home/queue.html", queue=found, **_page_values(request, query))


@router.get("/parts/strip", include_in_schema=False)
def strip(request: Request, _who: ViewerUser) -> Response:
    """Return the strip."""
    return part(request, "parts/strip.html", strip=status_bar_of(request))


@router.get("/favicon.ico", dependencies=[anyone()], include_in_schema=False)
def icon() -> Response:
    """Return the icon; browsers ask here on pages that name none."""
    path = STATIC / "icon.svg"
    return FileResponse(path, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})


def results_part(request: Request, results: Results, status: int = 200) -> Response:
    """Return the part with the table; the browser's address becomes the one that it is shown under."""
    query = results.query
    answer = part(request, "home/results.html", status, **home_values(request, results))
    target = address(request, "/", query.values(offset=query.offset, rename=query.rename))
    shown = urlsplit(request.headers.get("hx-current-url", ""))
    if target != f"{shown.path}?{shown.query}":
        answer.headers["HX-Push-Url"] = target
    return answer


def shown_query(request: Request, back: str) -> HomeQuery:
    """Return what the page shows on which a form stands.

    Args:
        request: the form, as it was sent.
        back: its own word for it, which holds where no script changed the page since it was made.
    """
    if is_part(request):
        back = urlsplit(request.headers.get("hx-current-url", "")).query or back
    return query_of_text(back)


def home_values(request: Request, results: Results, queue: Any = None) -> dict[str, Any]:
    """Return what the templates of the first page use.

    Args:
        request: that is answered.
        results: that the table shows.
        queue: what runs and waits; None where it is not shown.
    """
    return {"results": results, "queue": queue, **_page_values(request, results.query)}


def _page_values(request: Request, query: HomeQuery) -> dict[str, Any]:
    made: dict[str, str] = {}  # rows share most of their addresses

    def link(**changes: Any) -> str:
        wanted = repr(changes)
        if wanted not in made:
            made[wanted] = address(request, "/", query.values(**changes))
        return made[wanted]

    return {
        "query": query,
        "link": link,
        "again": link(offset=query.offset, rename=query.rename),
        "renaming": f"{link(offset=query.offset)}&rename=",  # the id of a job comes behind it
        "back": query.text_form,
        "page_sizes": PAGE_SIZES,
    }


_ACTIONS: Final = ("stop", "stop_now", "pause", "resume", "retry", "delete", "describe")
_MOST_COMPARED: Final = 20
_NAMED: Final = 10


async def _sent(request: Request) -> FormData:
    return await request.form()


Sent = Annotated[FormData, Depends(_sent)]
"""What stands in the form that was sent."""


@router.post("/jobs/bulk", include_in_schema=False)
def bulk(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Do something with the jobs that were ticked, with all that the filter leaves, or with one by its own button."""
    action, choice = _asked(sent)
    form = {name: text_of(sent, name) for name in ("add_tags", "remove_tags", "project")}
    try:
        if action == "compare":
            return _compare(request, studio, choice)
        if action not in _ACTIONS:
            raise UnknownNameError("action", action, _ACTIONS)
        ids = choice.resolve(studio)
        # A filter may leave other jobs by now than those that were seen, and what is deleted is gone.
        if (action == "delete" or choice.is_all) and text_of(sent, "confirmed") != str(len(ids)):
            return _ask(request, studio, action, choice, ids, form, text_of(sent, "confirmed"))
        force = text_of(sent, "force") == "true"
        outcome = carry_out(studio, who, action, ids, form=form, force=force)
    except ZigguratError as error:
        return answer(request, studio, choice.query.text_form, Outcome(error=error.as_dict()), status_of(error))
    return answer(request, studio, choice.query.text_form, outcome)


@router.post("/jobs/compare", include_in_schema=False)
def compare(request: Request, studio: StudioDep, _who: ViewerUser, sent: Sent) -> Response:
    """Send to the page that compares the jobs that were ticked."""
    _, choice = _asked(sent)
    try:
        return _compare(request, studio, choice)
    except ZigguratError as error:
        return answer(request, studio, choice.query.text_form, Outcome(error=error.as_dict()), status_of(error))


@router.post("/jobs/place", include_in_schema=False)
def place(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Move a job of the queue: by a button, or before the one that it was dropped on."""
    back = text_of(sent, "back")
    move, _, moved = text_of(sent, "move").partition(":")
    job_id = moved or text_of(sent, "job")
    try:
        if moved:
            number = move_in_queue(studio.jobs, job_id, move)
        else:
            number = place_in_queue(studio.jobs, job_id, text_of(sent, "before") or None)
    except ZigguratError as error:
        return answer(request, studio, back, Outcome(error=error.as_dict()), status_of(error))
    studio.people.note(who, "job.reorder", job_id)
    name = studio.jobs.get(job_id).name
    return answer(request, studio, back, Outcome(text=f"{name} is number {number} of the queue."))


def answer(
    request: Request, studio: Studio, back: str, outcome: Outcome, status: int = 200, /, **dialog: Any
) -> Response:
    """Return what changed on the first page and what is said; a browser without scripts is sent there.

    Args:
        request: that it answers.
        studio: that is held.
        back: the query of the page's address, as the form had it.
        outcome: what is said.
        status: of HTTP.
        dialog: values of ``home/dialog.html``; without any, a dialog that is open is closed.
    """
    query = shown_query(request, back)
    if not is_part(request):
        values = query.values(offset=query.offset)
        return see_other(request, "/", {**values, "said": flash_messages(request).add(outcome)})
    queue = queue_of(studio, query.waiting_limit, is_whole=bool(query.waiting))
    values = home_values(request, results_of(studio, query), queue)
    return part(request, "home/answer.html", status, outcome=outcome, dialog=dialog or None, **values)


def text_of(sent: FormData, name: str) -> str:
    """Return what stands in a field of a form; empty where it was not sent."""
    value = sent.get(name, "")
    return value if isinstance(value, str) else ""


def _asked(sent: FormData) -> tuple[str, Choice]:
    query = query_of_text(text_of(sent, "back"))
    action, _, job_id = text_of(sent, "act").partition(":")
    if job_id:
        return action, Choice(ids=(job_id,), query=query)
    ids = tuple(each for each in sent.getlist("ids") if isinstance(each, str))
    return text_of(sent, "action"), Choice(ids=ids, query=query, is_all=text_of(sent, "all") == "true")


def _compare(request: Request, studio: Studio, choice: Choice) -> Response:
    ids = choice.resolve(studio)
    if not 2 <= len(ids) <= _MOST_COMPARED:
        raise UsageError(
            f"2 to {_MOST_COMPARED} jobs are compared.", received=str(len(ids)), advice="Select others in the table."
        )
    return see_other(request, "/compare", {"job": ids})


def _ask(
    request: Request,
    studio: Studio,
    action: str,
    choice: Choice,
    ids: Sequence[str],
    form: dict[str, str],
    seen: str,
) -> Response:
    """Return what asks whether it is meant: how many jobs, the first few by name, and how many of them run."""
    known = studio.jobs.some(ids)
    if not known:
        raise UsageError("The jobs that were chosen are not there any more.", advice="Check the table again.")
    dialog = {
        "kind": "confirm",
        "action": action,
        "choice": choice,
        "count": len(ids),
        "seen": seen,
        "names": [known[each].name for each in ids[:_NAMED] if each in known],
        "running": sum(job.is_active for job in known.values()),
        "form": form,
    }
    if is_part(request):
        return answer(request, studio, choice.query.text_form, Outcome(), **dialog)
    query = choice.query
    return page(request, "home/asked.html", dialog=dialog, back=query.text_form, cancel=query.values())


@router.get("/jobs/compare", include_in_schema=False)
def come_back(request: Request, _who: ViewerUser, back: Annotated[str, Query(max_length=5000)] = "") -> Response:
    """Send those who ask by the address of a form to the first page."""
    return see_other(request, "/", query_of_text(back).values())


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
