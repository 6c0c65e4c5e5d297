"""Home page: running jobs, queued jobs with the reason for their wait, and the tables of all jobs."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Query, Request, Response

from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.home.flash import flash_messages
from ziggurat.web.pages.home.query import PAGE_SIZES, HomeQuery, query_of, query_of_text
from ziggurat.web.pages.home.queue import queue_of
from ziggurat.web.pages.home.results import Results, results_of
from ziggurat.web.pages.job.actions import actions_of
from ziggurat.web.rendering import is_part, page, part
from ziggurat.web.status_bar import status_bar_of
from ziggurat.web.urls import address
from ziggurat.workspace.training_checks import why_not_trainable

__all__ = ["home_values", "results_part", "router", "shown_query"]

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
