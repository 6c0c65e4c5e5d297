"""Login and logout, and the pages of one's own account: password, sessions, API tokens."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import Form, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from ziggurat.entities import SCOPES, Identity, User
from ziggurat.errors import ConfigurationError, UsageError, ZigguratError
from ziggurat.server.authentication import address_of, clear_session, session_secret, set_session
from ziggurat.server.dependencies import StudioDep, accounts_of
from ziggurat.server.permissions import anyone, identity_of, new_router, require
from ziggurat.web.keyboard import KEYS_COOKIE, has_single_keys
from ziggurat.web.rendering import page, part, see_other
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()


_Self = Annotated[Identity, require("viewer", "admin")]
"""A user who may change what is their own: by a session, or a token of scope ``admin``."""

_DAY_S: Final = 24 * 3600
_YEAR_S: Final = 365 * _DAY_S
_EXPIRIES: Final = {
    "7": ("In a week", 7 * _DAY_S),
    "30": ("In 30 days", 30 * _DAY_S),
    "90": ("In 90 days", 90 * _DAY_S),
    "365": ("In a year", 365 * _DAY_S),
    "never": ("Never", None),
}
_SCOPE_TEXTS: Final = {
    "read": "read: view everything",
    "write": "write: also create and change jobs",
    "admin": "admin: everything that you may do",
}
_NAME_LENGTH: Final = 200


@router.get("/account", include_in_schema=False)
def account(request: Request, studio: StudioDep, who: _Self) -> Response:
    """Return the page of one's own account."""
    return _account(request, studio, who)


@router.post("/account/password", include_in_schema=False)
def change_password(
    request: Request,
    studio: StudioDep,
    who: _Self,
    old_password: Annotated[str, Form(max_length=2000)] = "",
    new_password: Annotated[str, Form(max_length=2000)] = "",
    again: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Set one's own password; all one's sessions end."""
    try:
        if new_password != again:
            raise ConfigurationError("The two new passwords differ.", advice="Type the new one twice.")
        studio.people.change_password(who, old_password, new_password, address=address_of(request))
    except ZigguratError as error:
        return _account(request, studio, who, error=error)
    return _logged_out(request)


@router.post("/account/logout-everywhere", include_in_schema=False)
def logout_everywhere(request: Request, studio: StudioDep, who: _Self) -> Response:
    """End all one's sessions, this one too."""
    studio.people.logout_everywhere(_user(who).name, by=who)
    return _logged_out(request)


@router.post("/account/keyboard", include_in_schema=False)
def choose_keys(request: Request, _who: _Self, single_keys: Annotated[bool, Form()] = False) -> Response:
    """Switch the single-key shortcuts of this browser on or off."""
    response = see_other(request, "/account")
    place = address(request, "/")
    chosen = "on" if single_keys else "off"  # the pages' script reads it
    response.set_cookie(KEYS_COOKIE, chosen, max_age=_YEAR_S, path=place, samesite="lax")
    return response


@router.get("/account/{_act}", include_in_schema=False)
def come_back(request: Request, _who: _Self) -> Response:
    """Send those who ask by its address for the page that refused a change to the account."""
    return see_other(request, "/account")


@router.get("/settings/tokens", include_in_schema=False)
def tokens(request: Request, studio: StudioDep, who: _Self) -> Response:
    """Return the page of one's own tokens."""
    return _tokens(request, studio, who)


@router.post("/settings/tokens", include_in_schema=False)
def create_token(
    request: Request,
    studio: StudioDep,
    who: _Self,
    name: Annotated[str, Form()] = "",
    scope: Annotated[str, Form(max_length=200)] = "read",
    expires: Annotated[Literal["7", "30", "90", "365", "never"], Form()] = "90",
) -> Response:
    """Make a token; its secret stands on the page that answers, and nowhere else ever again."""
    try:
        if not 0 < len(name.strip()) <= _NAME_LENGTH:
            raise ConfigurationError(
                f"The name of the token has {len(name.strip())} characters, not 1 to {_NAME_LENGTH}.",
                advice="Say what it is for, such as `nightly script`.",
            )
        token, secret = studio.people.create_token(
            _user(who).name, name.strip(), scope=scope, by=who, good_for_s=_EXPIRIES[expires][1]
        )
    except ZigguratError as error:
        return _tokens(request, studio, who, error=error, name=name, scope=scope, expires=expires)
    return _tokens(request, studio, who, 201, made=token, secret=secret)


@router.post("/settings/tokens/{token_id}/revoke", include_in_schema=False)
def revoke_token(request: Request, studio: StudioDep, who: _Self, token_id: int) -> Response:
    """Make a token good for nothing, at once; admins may do so with those of others."""
    whose = None if who.may("admin", "admin") else _user(who)
    studio.people.revoke_token(token_id, by=who, of=whose)
    request.app.state.streams.recheck()
    return see_other(request, "/settings/tokens")


def _account(request: Request, studio: Studio, who: Identity, status: int = 200, **values: Any) -> Response:
    has_accounts = studio.people.has_accounts()
    shown = {"has_accounts": has_accounts, "who": who, "single_keys": has_single_keys(request), **values}
    return page(request, "account/page.html", status, **shown)


def _tokens(request: Request, studio: Studio, who: Identity, status: int = 200, **values: Any) -> Response:
    is_admin = who.may("admin", "admin")
    found = studio.people.tokens(None if is_admin else who.user) if is_admin or who.user else []
    shown = {"made": None, "secret": "", "name": "", "scope": "read", "expires": "90", **values}
    return page(
        request,
        "account/tokens.html",
        status,
        who=who,
        now=studio.clock(),
        tokens=found,
        owners={user.id: user.name for user in studio.people.users()},
        scopes=[(each, _SCOPE_TEXTS[each]) for each in SCOPES],
        expiries=[(value, text) for value, (text, _) in _EXPIRIES.items()],
        **shown,
    )


def _user(who: Identity) -> User:
    if who.user is None:
        raise UsageError("This requires an account.", advice="Create an account first.")
    return who.user


def _logged_out(request: Request) -> Response:
    request.app.state.streams.recheck()
    response = RedirectResponse(address(request, "/login"), 303)
    clear_session(response, request)
    return response


@router.get("/login", dependencies=[anyone()], include_in_schema=False)
def show_login(request: Request, next: str = "") -> Response:  # noqa: A002 - as the address has it
    """Return the page to log in."""
    return _page(request, next)


@router.post("/login", dependencies=[anyone()], include_in_schema=False)
async def login(
    request: Request,
    name: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    token: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "",  # noqa: A002
    username: Annotated[str, Form()] = "",
) -> Response:
    """Begin a session and go where the person wanted to.

    A ``username`` alone is what scripts for DIGITS send: without accounts the machine's own users need no session.
    """
    if username and not (name or password or token) and identity_of(request).by == "local":
        return RedirectResponse(_own(request, next), 303)
    people, place, old = accounts_of(request), address_of(request), session_secret(request)
    try:
        if token:
            session = await run_in_threadpool(people.login_with_token, token.strip(), address=place)
        else:
            session = await run_in_threadpool(people.login, name, password, address=place)
    except ZigguratError as error:
        return _page(request, next, error=error, name=name, with_token=bool(token))
    if old is not None:
        await run_in_threadpool(people.logout, old)
        request.app.state.streams.recheck()
    response = RedirectResponse(_own(request, next), 303)
    set_session(response, request, session.secret, longest_s=session.longest_s)
    return response


@router.post("/logout", dependencies=[anyone()], include_in_schema=False)
async def logout(request: Request) -> Response:
    """End the session; pages of it that are open are sent to the login."""
    secret, response = session_secret(request), RedirectResponse(address(request, "/login"), 303)
    if secret is not None:
        await run_in_threadpool(accounts_of(request).logout, secret)
        request.app.state.streams.recheck()
    clear_session(response, request)
    return response


def _page(request: Request, next_page: str, status: int = 200, **values: object) -> Response:
    shown = {"name": "", "with_token": False, "next": next_page, **values}
    return part(request, "account/login.html", status, **shown)


def _own(request: Request, target: str) -> str:
    """Return where to go: an address of this studio alone, or another site could send people to itself."""
    is_own = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_own else address(request, "/")
