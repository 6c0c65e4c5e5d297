"""JSON schemas of the account routes, for requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ziggurat.entities import AuditEntry, Identity, Token, User

__all__ = [
    "AuditPageShape",
    "AuditQuery",
    "AuditShape",
    "IdentityShape",
    "Login",
    "NewToken",
    "NewTokenShape",
    "NewUser",
    "PasswordChange",
    "TokenShape",
    "UserChange",
    "UserShape",
    "audit_shape",
    "identity_shape",
    "token_shape",
    "user_shape",
]

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
    """Something that somebody did."""

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
