"""Accounts and access: users, roles, tokens and their scopes, projects, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["ROLES", "SAVED_KINDS", "SCOPES", "AuditEntry", "Identity", "Project", "SavedItem", "Token", "User"]

ROLES: Final = ("viewer", "trainer", "admin")
"""Roles, each of which may do what those before it may: look; make and change; manage users and settings."""

SCOPES: Final = ("read", "write", "admin")
"""What a token may do at most: each includes those before it. The role of its user limits it further."""

SAVED_KINDS: Final = ("view", "preset", "draft")
"""Kinds of saved items: a filter with columns of a list; the values of a form under a name; a form that is not sent."""


@dataclass(frozen=True, kw_only=True)
class User:
    """A user account.

    Args:
        id: number in the store.
        name: by which they log in.
        role: a name in ``ROLES``.
        disabled: whether they may not log in any more.
        created: seconds since 1970.
        last_seen: seconds since 1970; None before the first time.
    """

    id: int
    name: str
    role: str
    disabled: bool = False
    created: float = 0.0
    last_seen: float | None = None


@dataclass(frozen=True, kw_only=True)
class Token:
    """A bearer token; only its SHA-256 is stored.

    Args:
        id: number in the store.
        name: what it is for.
        user_id: whose it is.
        scope: a name in ``SCOPES``.
        created: seconds since 1970.
        expires: seconds since 1970; None for never.
        last_used: seconds since 1970; None before the first time.
        revoked: whether it is no longer good.
    """

    id: int
    name: str
    user_id: int
    scope: str
    created: float
    expires: float | None = None
    last_used: float | None = None
    revoked: bool = False


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who is asking.

    Args:
        user: the account; None for a local user of a studio without accounts (role ``admin``).
        role: what they may do.
        scope: what their token may do; ``admin`` for a session.
        by: ``session``, ``token``, ``local`` (loopback without accounts) or ``nobody``.
    """

    user: User | None
    role: str
    scope: str
    by: str

    @property
    def name(self) -> str:
        """What the audit calls them."""
        return self.user.name if self.user is not None else self.by

    def may(self, role: str, scope: str) -> bool:
        """Return whether they have at least this role, and their token at least this scope."""
        if self.by == "nobody":
            return False
        return ROLES.index(self.role) >= ROLES.index(role) and SCOPES.index(self.scope) >= SCOPES.index(scope)


@dataclass(frozen=True, kw_only=True)
class Project:
    """Jobs and datasets that belong together.

    Args:
        id: number in the store.
        name: its name; no other has it.
        created: seconds since 1970.
    """

    id: int
    name: str
    created: float


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """An action of a user.

    Args:
        time: seconds since 1970.
        who: name of the user, or how they came.
        action: such as ``job.delete``.
        target: id of what it was done to; empty where there is none.
        details: JSON values, without secrets.
    """

    time: float
    who: str
    action: str
    target: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SavedItem:
    """A view, preset or draft of a user.

    Args:
        owner: name of the user.
        kind: a name in ``SAVED_KINDS``.
        name: no other item of the same owner and kind has it.
        content: any JSON value.
        changed: seconds since 1970.
    """

    owner: str
    kind: str
    name: str
    content: Any
    changed: float
