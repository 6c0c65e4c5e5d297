"""Command palette, search page, list of keyboard shortcuts, and notifications, all loaded when they are needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import Query, Request, Response

from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.keyboard import GLOBAL_KEYS, has_single_keys
from ziggurat.web.pages.palette.notices import MOST_WITHIN_S, notifications
from ziggurat.web.pages.palette.view import found_items
from ziggurat.web.rendering import page, part

__all__ = ["router"]

router = new_router()

_Text = Annotated[str, Query(max_length=200)]


@router.get("/parts/palette", include_in_schema=False)
def results(request: Request, studio: StudioDep, who: ViewerUser, q: _Text = "", dialog: bool = False) -> Response:
    """Return at most 20 results as options of a list box; with ``dialog``, in the palette itself."""
    name = "palette/dialog.html" if dialog else "palette/results.html"
    return part(request, name, groups=found_items(studio, who, q), text=q.strip())


@router.get("/parts/shortcuts", include_in_schema=False)
def shortcuts(request: Request, _studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the dialog with the keys that act on every page; the browser adds those of its page."""
    return part(request, "palette/shortcuts.html", keys=GLOBAL_KEYS, single_keys=has_single_keys(request))


@router.get("/parts/notifications", include_in_schema=False)
def ended_jobs(
    request: Request,
    studio: StudioDep,
    who: ViewerUser,
    job: Annotated[list[str], Query(max_length=50)] = [],  # noqa: B006 - pydantic copies it
    within_s: Annotated[float, Query(gt=0, le=MOST_WITHIN_S)] = MOST_WITHIN_S,
) -> Response:
    """Return the jobs that have just finished or failed, each as a line of the list of notifications."""
    return part(request, "palette/notifications.html", found=notifications(studio, who, job, within_s))


@router.get("/search", include_in_schema=False)
def search(request: Request, studio: StudioDep, who: ViewerUser, q: _Text = "") -> Response:
    """Return the results as a page, without the commands that only a script carries out."""
    found = ((group, [each for each in group.items if not each.act]) for group in found_items(studio, who, q))
    groups = [replace(group, items=items) for group, items in found if items]
    return page(request, "palette/page.html", groups=groups, text=q.strip())
