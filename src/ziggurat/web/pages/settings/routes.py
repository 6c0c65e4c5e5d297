"""Settings pages: folders, limits of queue and process, user management, audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Form, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import ROLES, Identity
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
    """Allow other folders."""
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


_ENTRIES: int = 50
_ROLE_TEXTS = {
    "viewer": "viewer: looks at everything",
    "trainer": "trainer: makes and changes jobs",
    "admin": "admin: settings and users, too",
}


@router.get("/settings/users", include_in_schema=False)
def users(request: Request, studio: StudioDep, _who: AdminUser) -> Response:
    """Return the page of the users."""
    return _users(request, studio)


@router.post("/settings/users", include_in_schema=False)
def add_user(
    request: Request,
    studio: StudioDep,
    who: AdminUser,
    name: Annotated[str, Form(max_length=200)] = "",
    password: Annotated[str, Form(max_length=2000)] = "",
    role: Annotated[str, Form(max_length=200)] = "viewer",
) -> Response:
    """Make a user; without a password they come in by token only."""
    try:
        studio.people.create_user(name.strip(), password or None, role=role, by=who)
    except ZigguratError as error:
        return _users(request, studio, error=error, name=name, role=role)
    request.app.state.streams.recheck()  # the first account: from now on, pages that are open need one too
    return see_other(request, "/settings/users")


@router.post("/settings/users/{name}/role", include_in_schema=False)
def set_role(
    request: Request, studio: StudioDep, who: AdminUser, name: str, role: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Give a user another role, at once."""
    return _changed(request, studio, name, lambda: studio.people.set_role(name, role, by=who))


@router.post("/settings/users/{name}/password", include_in_schema=False)
def set_password(
    request: Request, studio: StudioDep, who: AdminUser, name: str, password: Annotated[str, Form(max_length=2000)] = ""
) -> Response:
    """Set the password of a user; all their sessions end."""
    return _changed(request, studio, name, lambda: studio.people.set_password(name, password, by=who))


@router.post("/settings/users/{name}/disable", include_in_schema=False)
def disable(request: Request, studio: StudioDep, who: AdminUser, name: str) -> Response:
    """Shut a user out, at once."""
    return _changed(request, studio, name, lambda: studio.people.set_disabled(name, True, by=who))


@router.post("/settings/users/{name}/enable", include_in_schema=False)
def enable(request: Request, studio: StudioDep, who: AdminUser, name: str) -> Response:
    """Let a user in again."""
    return _changed(request, studio, name, lambda: studio.people.set_disabled(name, False, by=who))


@router.get("/settings/audit", include_in_schema=False)
def audit(
    request: Request,
    studio: StudioDep,
    _who: AdminUser,
    who: Annotated[str, Query(max_length=200)] = "",
    action: Annotated[str, Query(max_length=200)] = "",
    target: Annotated[str, Query(max_length=200)] = "",
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Response:
    """Return the audit log, the newest first."""
    wanted = {"who": who.strip(), "action": action.strip(), "target": target.strip()}
    found = studio.people.audit(offset=offset, limit=_ENTRIES, **wanted)
    return page(request, "settings/audit.html", found=found, offset=offset, limit=_ENTRIES, typed=wanted)


def _changed(request: Request, studio: Studio, name: str, change: Any) -> Response:
    try:
        change()
    except ZigguratError as error:
        return _users(request, studio, error=error, about=name)
    # Streams of a user without access end now, not at their next event.
    request.app.state.streams.recheck()
    return see_other(request, "/settings/users")


def _users(request: Request, studio: Studio, status: int = 200, **values: Any) -> Response:
    shown = {"name": "", "role": "trainer", "about": "", **values}
    known = studio.people.users()
    if not known:
        shown["role"] = "admin"  # the first account must be one
    roles = [(each, _ROLE_TEXTS[each]) for each in ROLES]
    return page(request, "settings/users.html", status, users=known, roles=roles, **shown)
