"""Lists of runs, datasets, models and evaluations, the queue, saved views, actions on jobs; the status bar."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import urlencode, urlsplit

from fastapi import Depends, Query, Request, Response
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.responses import FileResponse, HTMLResponse

from ziggurat.entities import RUN_KINDS, Identity, Job, JobFilter
from ziggurat.errors import UnknownNameError, UsageError, ZigguratError
from ziggurat.formatting import as_ago
from ziggurat.operations import jobs
from ziggurat.operations.models import start_demo
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser, ViewerWriteUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import anyone, new_router
from ziggurat.web.caches import BoundedCache, of_application
from ziggurat.web.flash import Outcome, flash_messages, see_deleted
from ziggurat.web.job_changes import CHANGED_FIELDS, change_from, field_of
from ziggurat.web.pages.home.bulk import Choice, carry_out
from ziggurat.web.pages.home.query import (
    ENDED_WITHIN,
    LISTS,
    PAGE_SIZES,
    HomeQuery,
    query_of,
    query_of_text,
    tabs_of,
)
from ziggurat.web.pages.home.queue import move_in_queue, place_in_queue, queue_of
from ziggurat.web.pages.home.view import Results, Row, clock_duration, results_of, short_duration
from ziggurat.web.pages.job.view import actions_of
from ziggurat.web.rendering import is_part, page, part, part_html, see_other, status_bar_of
from ziggurat.web.static_files import STATIC
from ziggurat.web.urls import NEW_PAGES, address
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.demo import demo_picture
from ziggurat.workspace.training_checks import why_not_trainable

__all__ = ["router"]

router = new_router()


async def _sent(request: Request) -> FormData:
    return await request.form()


Sent = Annotated[FormData, Depends(_sent)]
"""What stands in the form that was sent."""


@router.get("/", include_in_schema=False)
def home(
    request: Request, studio: StudioDep, who: ViewerUser, said: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Return the runs page, or the part of it with the table."""
    query = query_of(request.query_params)
    if query.page.path != "/":  # an address of 0.1
        return see_other(request, query.page.path, query.values(offset=query.offset))
    return _list_page(request, studio, who, query, said)


@router.get("/datasets", include_in_schema=False)
def datasets(
    request: Request, studio: StudioDep, who: ViewerUser, said: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Return the list of datasets."""
    return _list_page(request, studio, who, query_of(request.query_params, "dataset"), said)


@router.get("/models", include_in_schema=False)
def models(
    request: Request, studio: StudioDep, who: ViewerUser, said: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Return the list of trained and published models."""
    return _list_page(request, studio, who, query_of(request.query_params, "model"), said)


@router.get("/evaluations", include_in_schema=False)
def evaluations(
    request: Request, studio: StudioDep, who: ViewerUser, said: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Return the list of evaluations with their results."""
    return _list_page(request, studio, who, query_of(request.query_params, "test"), said)


def _list_page(request: Request, studio: Studio, who: Identity, query: HomeQuery, said: str) -> Response:
    if is_part(request, "results"):
        # Also where the filter is wrong: while one types it often is, and each answer would be an error in the console.
        shown = _shown_list(request, studio, who, query)
        return _with_address(request, shown.results.query, HTMLResponse(shown.html, headers={"Vary": "HX-Request"}))
    totals = studio.jobs.totals()
    strip = status_bar_of(request, totals.states)
    shown = _shown_list(request, studio, who, query)
    results = shown.results
    outcome = flash_messages(request).take(said) if said else None
    runs = query.page.path == "/"
    found = queue_of(studio, query.waiting_limit, is_whole=bool(query.waiting), running=strip.running) if runs else None
    tabs = tabs_of(query, totals, _saved(studio, who)) if runs else []
    published = studio.published.all() if query.kind == "model" else []
    seen = {
        "strip": strip,
        "outcome": outcome,
        "kinds": totals.kinds,
        "remarks": studio.remarks,
        "published": published,
    }
    first = _first_screen(studio, who, query, totals.kinds)
    values = {**seen, **home_values(request, results, found), "tabs": tabs, "list_html": shown.html}
    status = 400 if results.problem else 200
    return page(request, "home/page.html", status, **values, first=first, has_run=False)


@dataclass(frozen=True)
class _FirstScreen:
    """What the first screen of a studio without a run says.

    Args:
        why_not: what must be installed for the digits; empty if nothing is missing.
        dataset: the newest one that can be trained on; None for none.
    """

    why_not: str
    dataset: Job | None


def _first_screen(studio: Studio, who: Identity, query: HomeQuery, kinds: Mapping[str, int]) -> _FirstScreen | None:
    """Return the first screen, for those who may train, while there is no run; else None."""
    if query != HomeQuery() or any(kinds.get(each) for each in RUN_KINDS) or not who.may("trainer", "write"):
        return None
    chosen = JobFilter(kinds=("dataset",), states=("done",), limit=1)
    datasets = studio.jobs.page(chosen).jobs if kinds.get("dataset") else ()
    return _FirstScreen(studio.demo.why_not(), next(iter(datasets), None))


@router.post("/first/digits", include_in_schema=False)
def train_digits(request: Request, studio: StudioDep, who: TrainerUser) -> Response:
    """Train on the built-in digits, and show the training; a second click shows the same one."""
    try:
        job = start_demo(studio, who)
    except ZigguratError as error:
        return see_other(request, "/", {"said": flash_messages(request).add(Outcome(error=error.as_dict()))})
    return see_other(request, f"/models/{job.id}")


@router.get("/first/digits.png", include_in_schema=False)
def digits_picture(_who: ViewerUser) -> Response:
    """Return some of the built-in digits."""
    return Response(demo_picture(), media_type="image/png", headers={"Cache-Control": "private, max-age=86400"})


@router.get("/parts/first", include_in_schema=False)
def first_part(request: Request, studio: StudioDep, _who: ViewerUser) -> Response:
    """Return what tells of a first run that was begun elsewhere."""
    has_run = any(studio.jobs.totals().kinds.get(each) for each in RUN_KINDS)
    return part(request, "home/first_live.html", has_run=has_run)


@dataclass(frozen=True)
class _ShownList:
    results: Results
    html: Markup


_LISTS_KEPT: Final = 32
_ROWS_KEPT: Final = 1000
_KEPT_S: Final = 5


def _shown_list(request: Request, studio: Studio, who: Identity, query: HomeQuery) -> _ShownList:
    """Return a list; it is kept for the next tab, for a few seconds at most, until anything changes."""
    kept: BoundedCache[_ShownList] = of_application(request, "shown_lists", lambda: BoundedCache(_LISTS_KEPT))
    changes = studio.change_numbers()
    rights = (who.may("trainer", "write"), who.may("admin", "admin"))
    key = (changes, int(studio.clock() / _KEPT_S), query, rights, address(request, "/"))
    found = kept.get(key) if changes is not None else None
    if found is None:
        results = results_of(studio, query)
        found = _ShownList(results, part_html(request, "home/results.html", **home_values(request, results)))
        kept.put(key, found)
    return found


def _saved(studio: Studio, who: Identity) -> dict[str, str]:
    """Return name → query of the views that a user saved."""
    found = studio.saved.list(who.name, "view")
    # What was saved over REST may be any JSON value.
    return {each.name: str(each.content.get("query", "")) if isinstance(each.content, dict) else "" for each in found}


@router.post("/views", include_in_schema=False)
def save_view(request: Request, studio: StudioDep, who: ViewerWriteUser, sent: Sent) -> Response:
    """Keep what the list shows under a name, or delete such a view."""
    query, name = query_of_text(text_of(sent, "back")), text_of(sent, "name").strip()
    try:
        if gone := text_of(sent, "delete"):
            return see_deleted(request, "/", gone, studio.saved.delete(who.name, "view", gone))
        kept = {**query.values(), "kind": query.kind}
        studio.saved.put(who.name, "view", name, {"query": urlencode(kept, doseq=True)})
    except ZigguratError as error:
        outcome = Outcome(error=error.as_dict())
        return see_other(request, "/", {**query.values(), "said": flash_messages(request).add(outcome)})
    return see_other(request, "/", dataclasses.replace(query, view=f"my:{name}").values())


@router.get("/parts/menu/{job_id}", include_in_schema=False)
def menu(request: Request, studio: StudioDep, _who: TrainerUser, job_id: str) -> Response:
    """Return what can be done with a job of the table."""
    job = studio.jobs.get(job_id)
    is_dataset = job.kind == "dataset" and job.state == "done"
    query = shown_query(request, "")
    return part(
        request,
        "home/menu.html",
        job=job,
        actions=actions_of(job),
        is_trainable=is_dataset and _is_trainable(studio, job_id),
        renaming=address(request, query.page.path, query.values(offset=query.offset, rename=job_id)),
        back=query.text_form,
    )


def _is_trainable(studio: Studio, job_id: str) -> bool:
    described = studio.datasets.describe(job_id)
    return not why_not_trainable(described["kind"], tuple(described["classes"] or ()))


@router.get("/parts/names", include_in_schema=False)
def names(
    request: Request, studio: StudioDep, _who: ViewerUser, text: Annotated[str, Query(max_length=400)] = ""
) -> Response:
    """Return what may complete a text for the filter box, as the options of a list."""
    return part(request, "home/names.html", candidates=studio.jobs.names.candidates(text))


@router.get("/parts/results", include_in_schema=False)
def results(request: Request, studio: StudioDep, who: ViewerUser) -> Response:
    """Return the list as it is now; the address in the browser is its own, and stays."""
    return HTMLResponse(_shown_list(request, studio, who, shown_query(request, "")).html)


@router.get("/parts/queue", include_in_schema=False)
def queue(
    request: Request, studio: StudioDep, who: ViewerUser, waiting: Annotated[str, Query(max_length=10)] = ""
) -> Response:
    """Return what runs and what waits.

    Args:
        request: that is answered.
        studio: that is shown.
        who: asks.
        waiting: ``all`` to open the queue, ``line`` to close it; empty for news of it. The list comes along where it
            is given: all addresses on it say whether the queue is open.
    """
    query = shown_query(request, "")
    if waiting:
        query = dataclasses.replace(query, waiting="all" if waiting == "all" else "")
    found = queue_of(studio, query.waiting_limit, is_whole=bool(query.waiting))
    if not waiting:
        return part(request, "home/queue.html", queue=found, **_page_values(request, query))
    shown = _shown_list(request, studio, who, query)
    made = part(request, "home/toggled.html", queue=found, list_html=shown.html, **_page_values(request, query))
    made.headers["HX-Push-Url"] = address(request, query.page.path, query.values(offset=query.offset))
    return made


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
    answer = part(request, "home/results.html", status, **home_values(request, results))
    return _with_address(request, results.query, answer)


def _with_address(request: Request, query: HomeQuery, answer: Response) -> Response:
    target = address(request, query.page.path, query.values(offset=query.offset, rename=query.rename))
    shown = urlsplit(request.headers.get("hx-current-url", ""))
    if target != (f"{shown.path}?{shown.query}" if shown.query else shown.path):
        answer.headers["HX-Push-Url"] = target
    return answer


def shown_query(request: Request, back: str) -> HomeQuery:
    """Return what the page shows on which a form stands.

    Args:
        request: the form, as it was sent.
        back: its own word for it, which holds where no script changed the page since it was made.
    """
    if is_part(request):
        shown = urlsplit(request.headers.get("hx-current-url", ""))
        path = shown.path.removeprefix(request.scope.get("root_path", ""))
        kind = next((name for name, each in LISTS.items() if each.path == path and path != "/"), "train")
        if shown.path:
            return query_of_text(shown.query, kind)
    return query_of_text(back)


def home_values(request: Request, results: Results, queue: Any = None) -> dict[str, Any]:
    """Return what the templates of the lists use.

    Args:
        request: that is answered.
        results: that the table shows.
        queue: what runs and waits; None where it is not shown.
    """
    values = {"results": results, "queue": queue, **_page_values(request, results.query)}
    return {**values, "row_html": _row_html(request, values)}


def _row_html(request: Request, values: dict[str, Any]) -> Callable[[Row], Markup]:
    """Return what renders a row, or returns it as it was rendered before: most rows of a list stay as they are."""
    kept: BoundedCache[tuple[Any, Markup]] = of_application(request, "row_html", lambda: BoundedCache(_ROWS_KEPT))
    results: Results = values["results"]
    who: Identity | None = request.scope.get("state", {}).get("identity")
    columns = tuple(results.columns)
    query = dataclasses.replace(results.query, rename="")
    shared = (query, columns, who is not None and who.may("trainer", "write"), address(request, "/"))

    def render(row: Row) -> Markup:
        return part_html(request, "home/row.html", row=row, columns=columns, **values)

    def row_html(row: Row) -> Markup:
        if row.job.id == results.query.rename:
            return render(row)
        key = (shared, row.job.id, row.sweep is not None)
        shown = (row, as_ago(row.job.created))
        found = kept.get(key)
        if found is None or found[0] != shown:
            found = (shown, render(row))
            kept.put(key, found)
        return found[1]

    return row_html


def _page_values(request: Request, query: HomeQuery) -> dict[str, Any]:
    made: dict[str, str] = {}  # rows share most of their addresses

    def link(**changes: Any) -> str:
        wanted = repr(changes)
        if wanted not in made:
            made[wanted] = address(request, query.page.path, query.values(**changes))
        return made[wanted]

    return {
        "query": query,
        "link": link,
        "go_to": lambda other: address(request, other.page.path, other.values()),
        "back": query.text_form,
        "page_sizes": PAGE_SIZES,
        "ended_within": ENDED_WITHIN,
        "left": short_duration,
        "took": clock_duration,
    }


_ACTIONS: Final = ("stop", "stop_now", "pause", "resume", "retry", "delete", "describe", "evaluate")
_MOST_COMPARED: Final = 20
_NAMED: Final = 10


@router.post("/jobs/bulk", include_in_schema=False)
def bulk(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Do something with the jobs that were ticked, with all that the filter leaves, or with one by its own button."""
    action, choice = _asked(sent)
    form = {name: text_of(sent, name) for name in ("add_tags", "remove_tags", "project")}
    try:
        if action == "compare":
            return _compare(request, studio, choice)
        if action == "clone":
            return _clone(request, studio, choice)
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
            number = move_in_queue(studio, who, job_id, move)
        else:
            number = place_in_queue(studio, who, job_id, text_of(sent, "before") or None)
    except ZigguratError as error:
        return answer(request, studio, back, Outcome(error=error.as_dict()), status_of(error))
    name = studio.jobs.get(job_id).name
    return answer(request, studio, back, Outcome(text=f"{name} is number {number} in the queue."))


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
        return see_other(request, query.page.path, {**values, "said": flash_messages(request).add(outcome)})
    queue = None
    if query.page.path == "/":
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
            f"{len(ids)} jobs are chosen; 2 to {_MOST_COMPARED} can be compared.", advice="Select others in the table."
        )
    return see_other(request, "/compare", {"job": ids})


def _clone(request: Request, studio: Studio, choice: Choice) -> Response:
    ids = choice.resolve(studio)
    if len(ids) != 1:
        raise UsageError("One job is cloned at a time.", received=str(len(ids)), advice="Select one.")
    path = f"{NEW_PAGES.get(studio.jobs.get(ids[0]).kind, '/models')}/new"
    return see_other(request, path, {"clone": ids[0]})


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
    return _asked_page(request, choice.query, dialog)


@router.get("/jobs/compare", include_in_schema=False)
def come_back(request: Request, _who: ViewerUser, back: Annotated[str, Query(max_length=5000)] = "") -> Response:
    """Send those who ask by the address of a form to the first page."""
    query = query_of_text(back)
    return see_other(request, query.page.path, query.values())


def fields_of(job: Job) -> dict[str, str]:
    """Return what stands in the form at first."""
    return {
        "name": job.name,
        "notes": job.notes,
        "tags": ", ".join(job.tags),
        "project": job.project,
        "priority": str(job.priority),
    }


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
    typed = {name: text_of(sent, name) for name in CHANGED_FIELDS if name in sent}
    is_in_place = "in_place" in sent
    try:
        job = jobs.change_job(studio, who, job_id, change_from(typed), fields=list(typed))
    except ZigguratError as error:
        if is_in_place:
            return _row(request, studio, job_id, query, typed.get("name", ""), error)
        return _form(request, studio, job_id, query, {**fields_of(studio.jobs.get(job_id)), **typed}, error)
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
        "projects": studio.projects.names(),
    }
    status = 200 if error is None else status_of(error)
    if is_part(request):
        return part(request, "home/dialog.html", status, dialog=dialog, back=query.text_form)
    return _asked_page(request, query, dialog, status)


def _asked_page(request: Request, query: HomeQuery, dialog: dict[str, Any], status: int = 200) -> Response:
    cancel = address(request, query.page.path, query.values(offset=query.offset))
    return page(request, "home/asked.html", status, dialog=dialog, back=query.text_form, cancel=cancel, query=query)


def _row(request: Request, studio: Studio, job_id: str, query: HomeQuery, typed: str, error: ZigguratError) -> Response:
    """Return the table with the name as it was typed, and what is wrong with it."""
    found = results_of(studio, dataclasses.replace(query, rename=job_id))
    results = dataclasses.replace(found, typed=typed, name_problem=error.as_dict()["rule"])
    return results_part(request, results, status_of(error))
