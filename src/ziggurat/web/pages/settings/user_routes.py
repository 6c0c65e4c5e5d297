"""Admin pages: user management and the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Form, Query, Request, Response

from ziggurat.entities import ROLES
from ziggurat.errors import ZigguratError
from ziggurat.server.dependencies import AdminUser, StudioDep
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.rendering import page, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

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
        return _users(request, studio, status_of(error), error=error.as_dict(), name=name, role=role)
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
        return _users(request, studio, status_of(error), error=error.as_dict(), about=name)
    # Streams of somebody who may not read any more end now, not at their next news.
    request.app.state.streams.recheck()
    return see_other(request, "/settings/users")


def _users(request: Request, studio: Studio, status: int = 200, **values: Any) -> Response:
    shown = {"error": None, "name": "", "role": "trainer", "about": "", **values}
    known = studio.people.users()
    if not known:
        shown["role"] = "admin"  # the first account must be one
    roles = [(each, _ROLE_TEXTS[each]) for each in ROLES]
    return page(request, "settings/users.html", status, users=known, roles=roles, **shown)
