"""Owns the first page: what runs, what waits and why, and the tables of everything that was made."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

from fastapi import Query, Request, Response

from ziggurat.api.guard import new_router
from ziggurat.api.routes.access import Held, Viewer
from ziggurat.web.addresses import address
from ziggurat.web.home_query import HomeQuery, query_of
from ziggurat.web.home_queue import queue_of
from ziggurat.web.home_results import Results, results_of
from ziggurat.web.kept_outcomes import kept_outcomes
from ziggurat.web.pages import is_part, page, part

__all__ = ["home_values", "results_part", "router"]

router = new_router()


@router.get("/", include_in_schema=False)
def home(request: Request, studio: Held, _who: Viewer, said: Annotated[str, Query(max_length=100)] = "") -> Response:
    """Return the first page, or the part of it with the table."""
    kinds = studio.jobs.kind_counts()
    query = query_of(request.query_params, kinds)
    results = results_of(studio, query, kinds)
    if is_part(request, "results"):
        return results_part(request, results)
    outcome = kept_outcomes(request).take(said) if said else None
    values = home_values(request, results, queue_of(studio, query.waiting_limit, is_whole=bool(query.waiting)))
    return page(request, "home.html", 400 if results.where_problem else 200, outcome=outcome, kinds=kinds, **values)


@router.get("/parts/queue", include_in_schema=False)
def queue(request: Request, studio: Held, _who: Viewer, waiting: str = "") -> Response:
    """Return what runs and what waits."""
    query = HomeQuery(waiting="all" if waiting == "all" else "")
    found = queue_of(studio, query.waiting_limit, is_whole=bool(query.waiting))
    return part(request, "home/queue.html", queue=found, back=_text(query))


def results_part(request: Request, results: Results, status: int = 200) -> Response:
    """Return the part with the table; the browser's address becomes the one that it is shown under."""
    query = results.query
    answer = part(request, "home/results.html", status, **home_values(request, results))
    target = address(request, "/", query.values(offset=query.offset, rename=query.rename))
    shown = urlsplit(request.headers.get("hx-current-url", ""))
    if target != f"{shown.path}?{shown.query}":
        answer.headers["HX-Push-Url"] = target
    return answer


def home_values(request: Request, results: Results, queue: Any = None) -> dict[str, Any]:
    """Return what the templates of the first page use.

    Args:
        request: that is answered.
        results: that the table shows.
        queue: what runs and waits; None where it is not shown.
    """
    query = results.query

    def link(**changes: Any) -> str:
        return address(request, "/", query.values(**changes))

    return {
        "results": results,
        "query": query,
        "queue": queue,
        "link": link,
        "again": link(offset=query.offset, rename=query.rename),
        "back": _text(query),
    }


def _text(query: HomeQuery) -> str:
    return urlencode(query.values(offset=query.offset), doseq=True)


