"""Login and logout pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from ziggurat.errors import ZigguratError
from ziggurat.server.authentication import address_of, clear_session, session_secret, set_session
from ziggurat.server.dependencies import accounts_of
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import anyone, new_router
from ziggurat.web.rendering import part
from ziggurat.web.urls import address

__all__ = ["router"]

router = new_router()


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
) -> Response:
    """Begin a session and go where the person wanted to."""
    people, place, old = accounts_of(request), address_of(request), session_secret(request)
    try:
        if token:
            session = await run_in_threadpool(people.login_with_token, token.strip(), address=place)
        else:
            session = await run_in_threadpool(people.login, name, password, address=place)
    except ZigguratError as error:
        return _page(request, next, status_of(error), error=error.as_dict(), name=name, with_token=bool(token))
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
    shown = {"error": None, "name": "", "with_token": False, "next": next_page, **values}
    return part(request, "login/page.html", status, **shown)


def _own(request: Request, target: str) -> str:
    """Return where to go: an address of this studio alone, or another site could send people to itself."""
    is_own = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_own else address(request, "/")
