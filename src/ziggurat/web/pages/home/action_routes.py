"""Form actions of the home page: for one job, for many jobs, and for the queue order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request, Response
from starlette.datastructures import FormData

from ziggurat.errors import UnknownNameError, UsageError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.home.bulk import Choice, Outcome, carry_out
from ziggurat.web.pages.home.flash import flash_messages
from ziggurat.web.pages.home.query import query_of_text
from ziggurat.web.pages.home.queue import move_in_queue, place_in_queue, queue_of
from ziggurat.web.pages.home.results import results_of
from ziggurat.web.pages.home.routes import home_values, shown_query
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["Sent", "answer", "router", "text_of"]

router = new_router()

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
        return see_other(request, "/", {**values, "said": flash_messages(request).keep(outcome)})
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
            f"2 to {_MOST_COMPARED} jobs are compared.", received=str(len(ids)), advice="Tick others in the table."
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
        raise UsageError("The jobs that were chosen are not there any more.", advice="Look at the table again.")
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
