"""Settings page: folders that users may name, limits of the queue, and limits of the process."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Form, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity
from ziggurat.errors import ZigguratError
from ziggurat.server.dependencies import AdminUser, StudioDep
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.settings import describe_settings
from ziggurat.web.pages.settings.form import limit_fields, typed_limits, typed_roots
from ziggurat.web.rendering import page, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()


@router.get("/settings", include_in_schema=False)
def settings(request: Request, studio: StudioDep, _who: AdminUser, saved: str = "") -> Response:
    """Return the page."""
    return _page(request, studio, saved=saved)


@router.post("/settings/roots", include_in_schema=False)
def choose_roots(request: Request, studio: StudioDep, who: AdminUser, roots: Annotated[str, Form()] = "") -> Response:
    """Offer other folders."""
    wanted = typed_roots(roots)
    try:
        studio.paths.choose(wanted)
    except ZigguratError as error:
        return _page(request, studio, status_of(error), roots=roots, problems={"roots": str(error)})
    studio.people.note(who, "settings.roots", roots=wanted)
    return see_other(request, "/settings", {"saved": "roots"})


@router.post("/settings/limits", include_in_schema=False)
async def choose_limits(request: Request, studio: StudioDep, who: AdminUser) -> Response:
    """Choose the numbers, all of them or none."""
    async with request.form() as form:
        typed = {name: value for name, value in form.items() if isinstance(value, str)}
    return await run_in_threadpool(_choose_limits, request, studio, who, typed)


def _choose_limits(request: Request, studio: Studio, who: Identity, typed: dict[str, str]) -> Response:
    known = studio.limits.all()
    values, problems = typed_limits(known, typed)
    if problems:
        return _page(request, studio, 422, limits=limit_fields(known, typed), problems=problems)
    before = {each.name: each.value if each.is_chosen else None for each in known}
    changed = {name: value for name, value in values.items() if value != before[name]}
    studio.limits.choose(changed)
    if changed:
        studio.people.note(who, "settings.limits", "", **changed)
    return see_other(request, "/settings", {"saved": "limits"})


def _page(request: Request, studio: Studio, status: int = 200, **values: Any) -> Response:
    held, origins = studio.settings, studio.settings.origins
    shown = {
        "saved": "",
        "problems": {},
        "roots": "\n".join(studio.paths.chosen),
        "limits": limit_fields(studio.limits.all()),
        **values,
    }
    process = [
        {"about": each, "value": str(getattr(held, each.name)), "origin": origins.get(each.name, "default")}
        for each in describe_settings()
    ]
    has_accounts = studio.people.has_accounts()
    return page(request, "settings/page.html", status, process=process, has_accounts=has_accounts, **shown)
