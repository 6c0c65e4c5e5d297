"""Settings pages: folders, limits of queue and process, user management, audit log."""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import Form, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import ROLES, Identity
from ziggurat.errors import ZigguratError
from ziggurat.operations import administration
from ziggurat.server.dependencies import AdminUser, StudioDep
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.settings import describe_settings
from ziggurat.web.flash import Outcome, flash_messages
from ziggurat.web.pages.settings.form import limit_fields, start_up_setting, typed_limits
from ziggurat.web.pages.settings.notifications import notification_section, typed_notifications
from ziggurat.web.rendering import page, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_Folder = Annotated[str, Form(max_length=4096)]


@router.get("/settings", include_in_schema=False)
def settings(request: Request, studio: StudioDep, _who: AdminUser, saved: str = "") -> Response:
    """Return the page."""
    return _page(request, studio, saved=saved)


@router.post("/settings/folders/allow", include_in_schema=False)
def allow_folder(request: Request, studio: StudioDep, who: AdminUser, folder: _Folder = "") -> Response:
    """Allow one more folder."""
    try:
        administration.allow_root(studio, who, folder.strip())
    except ZigguratError as error:
        return _page(request, studio, status_of(error), folder=folder, problems={"folder": _problem_text(error)})
    return see_other(request, "/settings", {"saved": "folders"})


@router.post("/settings/folders/remove", include_in_schema=False)
def remove_folder(request: Request, studio: StudioDep, who: AdminUser, folder: _Folder = "") -> Response:
    """Remove a folder from the allowed ones."""
    try:
        administration.remove_root(studio, who, folder)
    except ZigguratError as error:
        return _page(request, studio, status_of(error), problems={"folder": _problem_text(error)})
    return see_other(request, "/settings", {"saved": "folders"})


def _problem_text(error: ZigguratError) -> str:
    return " ".join(filter(None, (error.rule, error.advice))).replace("`", "")


@router.post("/settings/signing-key/rotate", include_in_schema=False)
def rotate_signing_key(request: Request, studio: StudioDep, who: AdminUser) -> Response:
    """Make a new key for exports."""
    administration.rotate_signing_key(studio, who)
    return see_other(request, "/settings", {"saved": "key"})


@router.post("/settings/notifications", include_in_schema=False)
async def set_notifications(request: Request, studio: StudioDep, who: AdminUser) -> Response:
    """Change the receivers of notifications."""
    async with request.form() as form:
        typed = {name: value for name, value in form.items() if isinstance(value, str)}
    return await run_in_threadpool(_set_notifications, request, studio, who, typed)


def _set_notifications(request: Request, studio: Studio, who: Identity, typed: dict[str, str]) -> Response:
    try:
        administration.set_notifications(studio, who, typed_notifications(typed))
    except ZigguratError as error:
        section = notification_section(studio, typed=typed, error=error)
        return _page(request, studio, status_of(error), notifications=section)
    return see_other(request, "/settings", {"saved": "notifications"})


@router.post("/settings/notifications/test", include_in_schema=False)
def test_notifications(request: Request, studio: StudioDep, who: AdminUser) -> Response:
    """Send a test message to each receiver, and show the result."""
    try:
        tested = administration.test_notifications(studio, who)
    except ZigguratError as error:
        section = notification_section(studio, error=error)
        return _page(request, studio, status_of(error), notifications=section)
    return _page(request, studio, notifications=notification_section(studio, tested=tested))


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
    administration.choose_limits(studio, who, changed)
    return see_other(request, "/settings", {"saved": "limits"})


def _page(request: Request, studio: Studio, status: int = 200, **values: Any) -> Response:
    held = studio.settings
    shown = {
        "saved": "",
        "problems": {},
        "folder": "",
        "signing_key": "",
        "signing_key_problem": "",
        "folders": [(root, os.path.isdir(root)) for root in studio.paths.chosen],
        "limits": limit_fields(studio.limits.all()),
        "notifications": None,
        **values,
    }
    shown["notifications"] = shown["notifications"] or notification_section(studio)
    process = [start_up_setting(each, held) for each in describe_settings()]
    has_accounts = studio.people.has_accounts()
    try:
        shown["signing_key"] = studio.signing_keys.fingerprint
    except ZigguratError as error:  # such as a package that is missing: the other settings must stay in reach
        shown["signing_key_problem"] = _problem_text(error)
    return page(request, "settings/page.html", status, process=process, has_accounts=has_accounts, **shown)


_ENTRIES: int = 50
_ROLE_TEXTS = {
    "viewer": "viewer: sees everything, changes nothing",
    "trainer": "trainer: creates and changes jobs",
    "admin": "admin: settings and users as well",
}


@router.get("/settings/users", include_in_schema=False)
def users(
    request: Request, studio: StudioDep, _who: AdminUser, said: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Return the page of the users."""
    found = flash_messages(request).take(said)
    return _users(request, studio, done="" if found is None else found.text)


@router.post("/settings/users", include_in_schema=False)
def add_user(
    request: Request,
    studio: StudioDep,
    who: AdminUser,
    name: Annotated[str, Form(max_length=200)] = "",
    password: Annotated[str, Form(max_length=2000)] = "",
    role: Annotated[str, Form(max_length=200)] = "viewer",
) -> Response:
    """Create a user; without a password, one who logs in by token only."""
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
    done = f"{name} has the role {role} now."
    return _changed(request, studio, name, lambda: studio.people.set_role(name, role, by=who), done)


@router.post("/settings/users/{name}/password", include_in_schema=False)
def set_password(
    request: Request, studio: StudioDep, who: AdminUser, name: str, password: Annotated[str, Form(max_length=2000)] = ""
) -> Response:
    """Set the password of a user; all their sessions end."""
    done = f"The password of {name} is changed; all their sessions ended."
    return _changed(request, studio, name, lambda: studio.people.set_password(name, password, by=who), done)


@router.post("/settings/users/{name}/disable", include_in_schema=False)
def disable(request: Request, studio: StudioDep, who: AdminUser, name: str) -> Response:
    """Disable a user, at once."""
    return _changed(
        request, studio, name, lambda: studio.people.set_disabled(name, True, by=who), f"{name} is disabled."
    )


@router.post("/settings/users/{name}/enable", include_in_schema=False)
def enable(request: Request, studio: StudioDep, who: AdminUser, name: str) -> Response:
    """Enable a user again."""
    return _changed(
        request, studio, name, lambda: studio.people.set_disabled(name, False, by=who), f"{name} is enabled."
    )


@router.get("/settings/limits", include_in_schema=False)
@router.get("/settings/notifications", include_in_schema=False)
@router.get("/settings/notifications/{_act}", include_in_schema=False)
@router.get("/settings/folders/{_act}", include_in_schema=False)
def come_back(request: Request, _who: AdminUser) -> Response:
    """Send those who ask by its address for the page that refused a form to the settings."""
    return see_other(request, "/settings")


@router.get("/settings/users/{_name}/{_act}", include_in_schema=False)
def come_back_to_users(request: Request, _who: AdminUser) -> Response:
    """Send those who ask by its address for the page that refused a change to the users."""
    return see_other(request, "/settings/users")


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


def _changed(request: Request, studio: Studio, name: str, change: Any, done: str) -> Response:
    try:
        change()
    except ZigguratError as error:
        return _users(request, studio, error=error, about=name)
    # Streams of a user without access end now, not at their next event.
    request.app.state.streams.recheck()
    return see_other(request, "/settings/users", {"said": flash_messages(request).add(Outcome(text=done))})


def _users(request: Request, studio: Studio, status: int = 200, **values: Any) -> Response:
    shown = {"name": "", "role": "trainer", "about": "", "done": "", **values}
    known = studio.people.users()
    if not known:
        shown["role"] = "admin"  # the first account must be one
    roles = [(each, _ROLE_TEXTS[each]) for each in ROLES]
    return page(request, "settings/users.html", status, users=known, roles=roles, **shown)
