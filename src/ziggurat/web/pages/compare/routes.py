"""Run comparison page: overlaid curves, configuration differences, metrics summary."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.compare.view import MOST_COMPARED, chosen_runs, compared, found_runs
from ziggurat.web.rendering import is_part, page, part

__all__ = ["router"]

router = new_router()

_Text = Annotated[str, Query(max_length=200)]


@router.get("/compare", include_in_schema=False)
def compare(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job: Annotated[list[str], Query(max_length=200)] = [],  # noqa: B006 - never changed
    text: _Text = "",
    choose: _Text = "",
    curve: _Text = "",
) -> Response:
    """Return the comparison of the named runs, or what helps to choose some."""
    runs, left_out = chosen_runs(studio, job)
    if is_part(request, "compare-found"):
        return part(request, "compare/found.html", runs=runs, found=found_runs(studio, text, runs), text=text)
    shown = {"runs": runs, "left_out": left_out, "most": MOST_COMPARED, "text": text}
    if choose or not runs:
        return page(request, "compare/page.html", view=None, found=found_runs(studio, text, runs), **shown)
    topics = tuple(f"job:{each.id}" for each in runs if each.is_active)
    return page(request, "compare/page.html", topics=topics, view=compared(studio, runs, curve), curve=curve, **shown)
