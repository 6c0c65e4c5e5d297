"""Routes for authentication and accounts: login, the current user, users, API tokens and the audit log."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import AuditEntry, Identity, Token, User
from ziggurat.errors import UsageError
from ziggurat.server.authentication import address_of, clear_session, session_secret, set_session
from ziggurat.server.dependencies import accounts_of
from ziggurat.server.errors import ForbiddenError
from ziggurat.server.permissions import anyone, new_router, require
from ziggurat.workspace.accounts import Accounts

__all__ = ["router", "tokens_router"]

Role = Literal["viewer", "trainer", "admin"]
Scope = Literal["read", "write", "admin"]
Name = Annotated[str, Field(max_length=200)]
Secret = Annotated[str, Field(max_length=2000)]


class _Sent(BaseModel):
    """What is sent: an unknown field is a mistake that would else go unnoticed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Login(_Sent):
    """A name with its password, or a token of scope ``admin``."""

    name: Name = ""
    password: Secret = ""
    token: Secret = ""


class NewUser(_Sent):
    """A user to be made; without a password they come in by token only."""

    name: Name
    role: Role
    password: Secret | None = None


class UserChange(_Sent):
    """What is to be another; what is left out stays."""

    role: Role | None = None
    disabled: bool | None = None
    password: Secret | None = None


class PasswordChange(_Sent):
    """One's old and new password."""

    old_password: Secret
    new_password: Secret


class NewToken(_Sent):
    """A token to be made; ``expires_in_s`` seconds from now, or never where it is left out."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    scope: Scope
    expires_in_s: Annotated[float | None, Field(gt=0, le=1e10)] = None


class UserShape(BaseModel):
    """A user."""

    name: str
    role: Role
    disabled: bool
    created: float
    last_seen: float | None


class IdentityShape(BaseModel):
    """Who is asking."""

    name: str
    role: str
    scope: str
    by: str
    user: UserShape | None


class TokenShape(BaseModel):
    """A token; its secret is not known to the studio."""

    id: int
    name: str
    user: str
    scope: Scope
    created: float
    expires: float | None
    last_used: float | None
    revoked: bool


class NewTokenShape(TokenShape):
    """A token that was made just now, with its secret, which is shown this once."""

    secret: str


class AuditShape(BaseModel):
    """An entry of the audit log."""

    time: float
    who: str
    action: str
    target: str
    details: dict[str, Any]


class AuditPageShape(BaseModel):
    """Some entries, the newest first, and how many there are."""

    total: int
    entries: list[AuditShape]


class AuditQuery(BaseModel):
    """Which entries; times in seconds since 1970."""

    who: Name = ""
    action: Name = ""
    target: Name = ""
    since: Annotated[float | None, Field(allow_inf_nan=False)] = None
    until: Annotated[float | None, Field(allow_inf_nan=False)] = None
    offset: Annotated[int, Field(ge=0, le=10**9)] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 50


def user_shape(user: User) -> UserShape:
    """Return a user as JSON shows them."""
    return UserShape.model_validate(user, from_attributes=True)


def identity_shape(identity: Identity) -> IdentityShape:
    """Return who is asking as JSON shows them."""
    user = None if identity.user is None else user_shape(identity.user)
    return IdentityShape(name=identity.name, role=identity.role, scope=identity.scope, by=identity.by, user=user)


def token_shape(token: Token, user_name: str) -> TokenShape:
    """Return a token as JSON shows it."""
    fields = ("id", "name", "scope", "created", "expires", "last_used", "revoked")
    return TokenShape.model_validate({"user": user_name, **{name: getattr(token, name) for name in fields}})


def audit_shape(entry: AuditEntry) -> AuditShape:
    """Return an entry of the record as JSON shows it."""
    return AuditShape.model_validate(entry, from_attributes=True)


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
        raise UsageError("Sessions require an account.", advice="Make an account first.")
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


tokens_router = new_router(prefix="/api/v1", tags=["tokens"])


@tokens_router.get("/tokens", summary="Tokens")
def tokens(
    request: Request,
    identity: Annotated[Identity, require("viewer", "read")],
    everybody: Annotated[bool, Query(description="Those of all users; for admins.")] = False,
) -> list[TokenShape]:
    """Return one's own tokens, the newest first, revoked ones too; never a secret."""
    people = accounts_of(request)
    if everybody and not identity.may("admin", "read"):
        raise ForbiddenError("You are no admin, and only admins see the tokens of others.", advice="Ask for your own.")
    if not everybody and identity.user is None:
        return []
    names = {user.id: user.name for user in people.users()}
    found = people.tokens(None if everybody else identity.user)
    return [token_shape(token, names.get(token.user_id, "")) for token in found]


@tokens_router.post("/tokens", status_code=201, summary="Make a token")
def create_token(
    request: Request, sent: NewToken, identity: Annotated[Identity, require("viewer", "admin")]
) -> NewTokenShape:
    """Make a token of one's own. Its secret is shown this once. What it may do, one's role limits further."""
    user = _account(identity)
    token, secret = accounts_of(request).create_token(
        user.name, sent.name, scope=sent.scope, by=identity, good_for_s=sent.expires_in_s
    )
    return NewTokenShape(secret=secret, **token_shape(token, user.name).model_dump())


@tokens_router.delete("/tokens/{token_id}", status_code=204, summary="Revoke a token")
async def revoke_token(
    request: Request, token_id: int, identity: Annotated[Identity, require("viewer", "admin")]
) -> Response:
    """Make a token good for nothing, at once; admins may do so with those of others."""
    whose = None if identity.may("admin", "admin") else _account(identity)
    await run_in_threadpool(accounts_of(request).revoke_token, token_id, by=identity, of=whose)
    request.app.state.streams.recheck()
    return Response(status_code=204)


def _account(identity: Identity) -> User:
    if identity.user is None:
        raise UsageError("Tokens require an account.", advice="Make an account first.")
    return identity.user
