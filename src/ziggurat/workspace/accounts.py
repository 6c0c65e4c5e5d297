"""Accounts, browser sessions, API tokens, the audit log, and when a studio must have accounts."""

from __future__ import annotations

import ipaddress
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ziggurat.entities import AuditEntry, Identity, Token, User
from ziggurat.entities.names import check_name
from ziggurat.errors import MissingEntryError, UsageError
from ziggurat.store.accounts import SessionRepository, digest_of
from ziggurat.store.records import AuditFilter, AuditPage
from ziggurat.workspace.passwords import LoginLimits, Passwords

if TYPE_CHECKING:
    from ziggurat.store import Store

__all__ = [
    "LOCAL",
    "NOBODY",
    "TOKEN_PREFIX",
    "Accounts",
    "ForbiddenError",
    "LoginError",
    "check_bind",
    "check_permission",
    "first_token",
    "is_loopback",
]

LOCAL: Final = Identity(user=None, role="admin", scope="admin", by="local")
"""A local user of a studio without accounts; also the shell, for every user with access to the files."""

NOBODY: Final = Identity(user=None, role="viewer", scope="read", by="nobody")
"""An anonymous client. ``Identity.may`` is always False."""

TOKEN_PREFIX: Final = "zig_"
"""What every token begins with, so that scanners find those that were published by mistake."""

_TOUCH_EVERY_S = 60.0
"""The store learns at most once a minute that a session or a token was used: each note is a write."""
_DAY_S = 86400.0
_MOST_USES = 10_000


class Accounts:
    """Accounts and what stands for them. Every method may be called from any thread; some take a while.

    Args:
        store: where they are.
        clock: seconds since 1970.
        passwords: hashes them.
        limits: of login attempts.
        new_secret: returns random text that cannot be guessed.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        passwords: Passwords | None = None,
        limits: LoginLimits | None = None,
        new_secret: Callable[[], str] = lambda: secrets.token_urlsafe(32),
    ) -> None:
        self._store = store
        self._rows = store.people
        self._clock = clock
        self._passwords = passwords or Passwords()
        self._limits = limits or LoginLimits(clock)
        self._new_secret = new_secret
        self._sessions = Sessions(store.people.sessions, clock=clock, new_secret=new_secret)
        self._changing = threading.Lock()
        self._token_uses: dict[int, float] = {}
        self._has_accounts = False

    # ---- accounts

    def has_accounts(self) -> bool:
        """Return whether there is an account; from then on a login is required."""
        # Accounts are never deleted, so a yes stays true, also where another process made the account.
        self._has_accounts = self._has_accounts or self._rows.users.count() > 0
        return self._has_accounts

    def users(self) -> list[User]:
        """Return all users, disabled ones too, by name."""
        return self._rows.users.all()

    def user(self, name: str) -> User:
        """Return a user.

        Raises:
            UsageError: if there is no such user.
        """
        user = self._rows.users.by_name(name)
        if user is None:
            raise MissingEntryError(f"There is no user {name[:100]!r}.", advice="Look at the list of users.")
        return user

    def create_user(self, name: str, password: str | None, *, role: str, by: Identity) -> User:
        """Make an account.

        Args:
            name: small letters, digits, dots, underscores and dashes; a letter first.
            password: None for an account that comes in by token only.
            role: a name in ``ROLES``; the first account must be an ``admin``, or no other account could be created.
            by: who does it.

        Raises:
            UsageError: where the name is taken or not such a name, or the password or the role will not do.
            UnknownNameError: where the role is none.
        """
        with self._changing:
            if role != "admin" and not self._has_admin_beside(None):
                raise _admin_needed(f"the role {role[:100]!r} for the first account")
            password_hash = "" if password is None else self._passwords.hash(password)
            user = self._rows.users.create(name, role=role, password_hash=password_hash, now=self._clock())
        self.note(by, "user.create", name, role=role, has_password=password is not None)
        return user

    def set_password(self, name: str, password: str, *, by: Identity) -> None:
        """Set a password; it ends all sessions of that user.

        Raises:
            UsageError: where there is no such user, or the password is not good.
        """
        self._rows.users.set_password_hash(self.user(name).id, self._passwords.hash(password))
        self.note(by, "user.password", name)

    def change_password(self, identity: Identity, old: str, new: str, *, address: str) -> None:
        """Set one's own password; it ends all one's sessions.

        Raises:
            LoginError: where the old one is not right.
            UsageError: where there is no account, or the new password is not good.
        """
        if identity.user is None:
            raise UsageError("A password requires an account.", advice="Make an account first.")
        self._check_login(identity.user.name, old, address)
        self.set_password(identity.user.name, new, by=identity)

    def set_role(self, name: str, role: str, *, by: Identity) -> User:
        """Give a user another role, at once for all that stands for them.

        Raises:
            UsageError: where there is no such user, or no other admin would be left.
            UnknownNameError: where the role is none.
        """
        with self._changing:
            user = self.user(name)
            if role != "admin" and not self._has_admin_beside(user):
                raise _admin_needed(f"another role for {name}")
            self._rows.users.set_role(user.id, role)
        self.note(by, "user.role", name, role=role, before=user.role)
        return self.user(name)

    def set_disabled(self, name: str, disabled: bool, *, by: Identity) -> User:
        """Shut a user out, which ends their sessions and tokens at once, or let them in again.

        Raises:
            UsageError: where there is no such user, or no other admin would be left.
        """
        with self._changing:
            user = self.user(name)
            if disabled and not self._has_admin_beside(user):
                raise _admin_needed(f"to disable {name}")
            self._rows.users.set_disabled(user.id, disabled)
        self.note(by, "user.disable" if disabled else "user.enable", name)
        return self.user(name)

    # ---- sessions

    def login(self, name: str, password: str, *, address: str) -> Session:
        """Begin a session.

        Args:
            name: of the user.
            password: theirs.
            address: where it comes from, for limits and the record.

        Raises:
            LoginError: where name and password do not go together, or the account is disabled; it does not say which.
            TooManyLoginsError: where too many tries failed.
            TooBusyError: where too many log in at once.
        """
        return self._begin(self._check_login(name, password, address), address)

    def login_with_token(self, secret: str, *, address: str) -> Session:
        """Begin a session by a token of scope ``admin``, such as the one that a new studio prints.

        Raises:
            LoginError: where the token is not good, or of a smaller scope: a session may do all that its user may.
            TooManyLoginsError: where too many tries failed.
        """
        self._limits.begin("", address)
        identity = self.identity_of_token(secret)
        if identity is None or identity.user is None or identity.scope != "admin":
            self._note_refusal("token", address)
            raise LoginError(
                "The token must be valid and have the scope `admin`.", advice="Log in with a name instead."
            )
        self._limits.succeeded("", address)
        return self._begin(identity.user, address)

    def logout(self, secret: str) -> None:
        """End a session; an unknown one stays unknown."""
        self._sessions.end(secret)

    def logout_everywhere(self, name: str, *, by: Identity) -> int:
        """End all sessions of a user; return how many there were."""
        ended = self._rows.sessions.revoke_all(self.user(name).id)
        self.note(by, "user.logout", name, sessions=ended)
        return ended

    def identity_of_session(self, secret: str) -> Identity | None:
        """Return whose session it is, and note that it is used; None where it is not good (any more)."""
        user = self._sessions.user_of(secret)
        return None if user is None else _as_session(user)

    # ---- tokens

    def create_token(
        self, user_name: str, name: str, *, scope: str, by: Identity, good_for_s: float | None = None
    ) -> tuple[Token, str]:
        """Make a token; return it with its secret, which is not stored.

        Args:
            user_name: whose.
            name: what it is for.
            scope: a name in ``SCOPES``.
            by: who makes it.
            good_for_s: seconds from now; None for ever.

        Raises:
            UsageError: where there is no such user.
            UnknownNameError: where the scope is none.
        """
        check_name(name, "The name of a token")
        now, user = self._clock(), self.user(user_name)
        expires = None if good_for_s is None else now + good_for_s
        secret = TOKEN_PREFIX + self._new_secret()
        token = self._rows.tokens.create(secret, user_id=user.id, name=name, scope=scope, now=now, expires=expires)
        self.note(by, "token.create", str(token.id), user=user_name, name=name, scope=scope, expires=expires)
        return token, secret

    def tokens(self, user: User | None = None) -> list[Token]:
        """Return the tokens of a user, or of everybody, the newest first."""
        return self._rows.tokens.all(None if user is None else user.id)

    def revoke_token(self, token_id: int, *, by: Identity, of: User | None = None) -> None:
        """Make a token good for nothing.

        Args:
            token_id: its number.
            by: who does it.
            of: required owner; None for any.

        Raises:
            UsageError: where there is no such token, or it was revoked before.
        """
        is_theirs = any(token.id == token_id for token in self.tokens(of))
        if not is_theirs or not self._rows.tokens.revoke(token_id):
            raise MissingEntryError(f"There is no token `{token_id}`.", advice="Look at the list of tokens.")
        self.note(by, "token.revoke", str(token_id))

    def identity_of_token(self, secret: str) -> Identity | None:
        """Return whose token it is, and note that it is used; None where it is not good (any more)."""
        if not secret.startswith(TOKEN_PREFIX):
            return None
        now = self._clock()
        found = self._rows.tokens.find(digest_of(secret), now)
        if found is None:
            return None
        token, user = found
        if now - self._token_uses.get(token.id, float("-inf")) > _TOUCH_EVERY_S:
            self._token_uses[token.id] = now
            self._rows.tokens.touch(token.id, now)
        return Identity(user=user, role=user.role, scope=token.scope, by="token")

    # ---- the record

    def audit(self, **wanted: Any) -> AuditPage:
        """Return the newest entries of the record; the fields of ``AuditFilter`` choose which."""
        return self._store.audit.page(AuditFilter(**wanted))

    def note(self, by: Identity, action: str, target: str = "", **details: Any) -> None:
        """Record an action in the audit log; ``details`` are JSON values without secrets."""
        entry = AuditEntry(time=self._clock(), who=by.name, action=action, target=target, details=details)
        self._store.audit.add(entry)

    def _note_refusal(self, name: str, address: str) -> None:
        self.note(NOBODY, "login.refused", name[:64], address=address)

    def _check_login(self, name: str, password: str, address: str) -> User:
        self._limits.begin(name, address)
        user = self._rows.users.by_name(name)
        stored = None if user is None else self._rows.users.password_hash(user.id)
        is_right = self._passwords.verify(stored, password)
        if not is_right or user is None or user.disabled:
            self._note_refusal(name, address)
            raise LoginError("Name or password is wrong.", advice="Try again, or ask an admin for a new one.")
        self._limits.succeeded(name, address)
        return user

    def _begin(self, user: User, address: str) -> Session:
        session = self._sessions.begin(user)
        self._rows.users.touch(user.id, self._clock())
        self.note(_as_session(user), "login", user.name, address=address)
        return session

    def _has_admin_beside(self, user: User | None) -> bool:
        others = (other for other in self.users() if user is None or other.id != user.id)
        return any(other.role == "admin" and not other.disabled for other in others)


def _as_session(user: User) -> Identity:
    return Identity(user=user, role=user.role, scope="admin", by="session")


def _admin_needed(received: str) -> UsageError:
    return UsageError(
        "A studio with accounts must have an admin who is not disabled.",
        received=received,
        advice="Make another user an admin first.",
    )


class ForbiddenError(UsageError):
    """Whoever asks is known, and may not do this."""

    code = "forbidden"


def check_permission(identity: Identity, role: str, scope: str) -> None:
    """Raise if an identity lacks a role or a scope.

    Args:
        identity: the caller.
        role: the lowest role that is allowed.
        scope: the lowest scope that is allowed.

    Raises:
        ForbiddenError: it names what is needed and what they have.
    """
    if not identity.may(role, scope):
        raise ForbiddenError(
            f"You have the role `{identity.role}` and the scope `{identity.scope}`; this needs the "
            f"role `{role}` and the scope `{scope}`.",
            advice="Ask an admin, or use a token of that scope.",
            details={"role": identity.role, "scope": identity.scope, "needed": {"role": role, "scope": scope}},
        )


class LoginError(UsageError):
    """A login failed."""

    code = "login"


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session that began.

    Args:
        secret: for the cookie; it is not stored.
        user: whose.
        longest_s: seconds for which it is good at most.
    """

    secret: str
    user: User
    longest_s: int


class Sessions:
    """Begins, finds and ends sessions.

    The secret of a session begins with the time at which it began. It cannot be changed, since the whole secret is
    what the stored hash is of.

    Args:
        rows: where they are.
        clock: seconds since 1970.
        new_secret: returns random text that cannot be guessed.
        idle_s: lifetime of an unused session.
        longest_s: how long one is good at most.
    """

    def __init__(
        self,
        rows: SessionRepository,
        *,
        clock: Callable[[], float],
        new_secret: Callable[[], str],
        idle_s: float = 7 * _DAY_S,
        longest_s: float = 30 * _DAY_S,
    ) -> None:
        self._rows = rows
        self._clock = clock
        self._new_secret = new_secret
        self._idle_s = idle_s
        self._longest_s = longest_s
        self._lock = threading.Lock()
        self._uses: OrderedDict[str, float] = OrderedDict()

    def begin(self, user: User) -> Session:
        """Begin one; those that are over are removed meanwhile."""
        now = self._clock()
        secret = f"{int(now):x}.{self._new_secret()}"
        self._rows.expire(now)
        self._rows.create(secret, user_id=user.id, now=now, expires=min(now + self._idle_s, self._end(secret)))
        return Session(secret=secret, user=user, longest_s=int(self._longest_s))

    def user_of(self, secret: str) -> User | None:
        """Return whose it is; None where it is unknown or over, or its user is disabled."""
        now, digest = self._clock(), digest_of(secret)
        user = self._rows.find(digest, now)
        if user is not None and self._should_touch(digest, now):
            self._rows.touch(digest, now=now, expires=min(now + self._idle_s, self._end(secret)))
        return user

    def end(self, secret: str) -> None:
        """End one; an unknown one stays unknown."""
        digest = digest_of(secret)
        self._rows.revoke(digest)
        with self._lock:
            self._uses.pop(digest, None)

    def _end(self, secret: str) -> float:
        return int(secret.partition(".")[0], 16) + self._longest_s

    def _should_touch(self, digest: str, now: float) -> bool:
        """Return whether the last note of a use is old: a write for every request would be slow."""
        with self._lock:
            if now - self._uses.get(digest, float("-inf")) <= _TOUCH_EVERY_S:
                return False
            self._uses[digest] = now
            self._uses.move_to_end(digest)
            while len(self._uses) > _MOST_USES:
                self._uses.popitem(last=False)
            return True


def is_loopback(host: str) -> bool:
    """Return whether a host name or an address, with or without brackets, means this machine alone."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def check_bind(host: str, people: Accounts) -> None:
    """Raise where the studio would listen beyond this machine without a login.

    Args:
        host: name or address to listen at; ``0.0.0.0``, ``::`` and the empty one mean all.
        people: of the studio.

    Raises:
        UsageError: it says what to do.
    """
    if not is_loopback(host) and not people.has_accounts():
        raise UsageError(
            "The studio listens beyond this machine only where people must log in.",
            received=f"the address {host!r}, and there is no account",
            advice="Make an account with `ziggurat user create NAME --role admin`, or add `--new-token` for a token "
            "that is printed once, or leave `--host` out.",
        )


def first_token(people: Accounts) -> str:
    """Return the secret of a new token of scope ``admin`` for an admin; where there is none, ``admin`` is made.

    An account that is made so has no password: its token opens the studio, in a browser as well.
    """
    admins = [user for user in people.users() if user.role == "admin" and not user.disabled]
    user = admins[0] if admins else people.create_user("admin", None, role="admin", by=LOCAL)
    return people.create_token(user.name, "printed at the start", scope="admin", by=LOCAL)[1]
