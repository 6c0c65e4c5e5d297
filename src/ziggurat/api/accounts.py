"""Routes for authentication and accounts: login, logout, the current user, users and the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.api.account_schemas import (
    AuditPageShape,
    AuditQuery,
    IdentityShape,
    Login,
    NewUser,
    PasswordChange,
    UserChange,
    UserShape,
    audit_shape,
    identity_shape,
    user_shape,
)
from ziggurat.entities import Identity, User
from ziggurat.errors import UsageError
from ziggurat.server.authentication import address_of
from ziggurat.server.cookies import clear_session, session_secret, set_session
from ziggurat.server.dependencies import accounts_of
from ziggurat.server.permissions import anyone, new_router, require
from ziggurat.workspace.accounts import Accounts

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["people"])


@router.post("/login", dependencies=[anyone()], summary="Begin a session")
async def login(request: Request, response: Response, sent: Login) -> IdentityShape:
    """Begin a session and give its cookie; too many failures make the next try wait."""
    people, address = accounts_of(request), address_of(request)
    old = session_secret(request)
    if sent.token:
        session = await run_in_threadpool(people.login_with_token, sent.token, address=address)
    else:
        session = await run_in_threadpool(people.login, sent.name, sent.password, address=address)
    if old is not None:
        await run_in_threadpool(people.logout, old)
        request.app.state.streams.recheck()
    set_session(response, request, session.secret, longest_s=session.longest_s)
    user = session.user
    return identity_shape(Identity(user=user, role=user.role, scope="admin", by="session"))


@router.post("/logout", dependencies=[anyone()], status_code=204, summary="End the session")
async def logout(request: Request) -> Response:
    """End the session of this browser; its event streams end at once."""
    secret, response = session_secret(request), Response(status_code=204)
    if secret is not None:
        await run_in_threadpool(accounts_of(request).logout, secret)
        request.app.state.streams.recheck()
    clear_session(response, request)
    return response


@router.get("/me", summary="Who is asking")
async def me(identity: Annotated[Identity, require("viewer", "read")]) -> IdentityShape:
    """Return who is asking and what they may do."""
    return identity_shape(identity)


@router.put("/me/password", status_code=204, summary="Set one's own password")
async def change_password(
    request: Request, sent: PasswordChange, identity: Annotated[Identity, require("viewer", "admin")]
) -> Response:
    """Set one's own password; all sessions of oneself end, this one too."""
    change = accounts_of(request).change_password
    await run_in_threadpool(change, identity, sent.old_password, sent.new_password, address=address_of(request))
    request.app.state.streams.recheck()
    return Response(status_code=204)


@router.delete("/me/sessions", status_code=204, summary="Log out everywhere")
async def logout_everywhere(request: Request, identity: Annotated[Identity, require("viewer", "admin")]) -> Response:
    """End all sessions of oneself, this one too."""
    if identity.user is None:
        raise UsageError("Only somebody with an account has sessions.", advice="Make an account first.")
    await run_in_threadpool(accounts_of(request).logout_everywhere, identity.user.name, by=identity)
    request.app.state.streams.recheck()
    return Response(status_code=204)


@router.get("/users", dependencies=[require("admin", "read")], summary="All users")
def users(request: Request) -> list[UserShape]:
    """Return all users by name, disabled ones too."""
    return [user_shape(user) for user in accounts_of(request).users()]


@router.post("/users", status_code=201, summary="Make a user")
def create_user(request: Request, sent: NewUser, identity: Annotated[Identity, require("admin", "admin")]) -> UserShape:
    """Make a user. The first one must be an admin; from then on everybody must log in, at this machine too."""
    made = accounts_of(request).create_user(sent.name, sent.password, role=sent.role, by=identity)
    request.app.state.streams.recheck()
    return user_shape(made)


@router.get("/users/{name}", dependencies=[require("admin", "read")], summary="A user")
def user(request: Request, name: str) -> UserShape:
    """Return a user."""
    return user_shape(accounts_of(request).user(name))


@router.patch("/users/{name}", summary="Change a user")
async def change_user(
    request: Request, name: str, sent: UserChange, identity: Annotated[Identity, require("admin", "admin")]
) -> UserShape:
    """Change role or password of a user, shut them out or let them in again; it acts at once."""
    changed = await run_in_threadpool(_change_user, accounts_of(request), name, sent, identity)
    request.app.state.streams.recheck()
    return user_shape(changed)


@router.get("/audit", dependencies=[require("admin", "read")], summary="Audit log")
def audit(request: Request, wanted: Annotated[AuditQuery, Query()]) -> AuditPageShape:
    """Return the newest entries of the record; an action with a dot at its end means all that begin so."""
    page = accounts_of(request).audit(**wanted.model_dump())
    return AuditPageShape(total=page.total, entries=[audit_shape(entry) for entry in page.entries])


def _change_user(people: Accounts, name: str, sent: UserChange, by: Identity) -> User:
    if sent.password is not None:
        people.set_password(name, sent.password, by=by)
    if sent.role is not None:
        people.set_role(name, sent.role, by=by)
    if sent.disabled is not None:
        people.set_disabled(name, sent.disabled, by=by)
    return people.user(name)
