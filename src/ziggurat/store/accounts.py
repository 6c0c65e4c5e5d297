"""Repositories of accounts: users with roles and password hashes, browser sessions, and API tokens.

This module never creates or checks a password hash; of session and token secrets only the SHA-256 is stored.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Row

from ziggurat.entities import ROLES, SCOPES, Token, User
from ziggurat.errors import MissingEntryError, UnknownNameError, UsageError
from ziggurat.store.database import Database
from ziggurat.store.tables import sessions, tokens, users

__all__ = [
    "AccountStore",
    "SessionRepository",
    "TokenRepository",
    "UserRepository",
    "digest_of",
]


_NAME: Final = re.compile(r"[a-z][a-z0-9._-]*")
_LONGEST_NAME: Final = 64


class AccountStore:
    """Accounts and what stands for them.

    Args:
        database: where they are.

    Attributes:
        users: the accounts.
        sessions: of browsers.
        tokens: of programs.
    """

    def __init__(self, database: Database) -> None:
        self.users = UserRepository(database)
        self.sessions = SessionRepository(database)
        self.tokens = TokenRepository(database)


class UserRepository:
    """The accounts; every method is one transaction.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, *, role: str, password_hash: str, now: float) -> User:
        """Make an account.

        Args:
            name: small letters, digits, dots, underscores and dashes; a letter first.
            role: a name in ``ROLES``.
            password_hash: as the face made it, such as argon2's text.
            now: seconds since 1970.

        Raises:
            UsageError: if the name is not valid, or is taken.
            UnknownNameError: where the role is none.
        """
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            raise UsageError(
                f"{name[:100]!r} is no name of a user: it must begin with a small letter and have only "
                "small letters, digits, `.`, `_` and `-`.",
                advice=f"Choose one of at most {_LONGEST_NAME} characters, such as `fred-1.x`.",
            )
        _check_role(role)
        with self._database.write() as connection:
            if connection.execute(sa.select(users.c.id).where(users.c.name == name)).scalar() is not None:
                raise UsageError(f"There is a user {name} already.", advice="Choose another name.")
            row = {"name": name, "role": role, "password_hash": password_hash, "disabled": False, "created": now}
            made = connection.execute(sa.insert(users).values(row).returning(users))
            return user_of(made.one())

    def get(self, user_id: int) -> User | None:
        """Return the user of that number, or None."""
        return self._find(users.c.id == user_id)

    def by_name(self, name: str) -> User | None:
        """Return the user of that name, or None."""
        return self._find(users.c.name == name)

    def all(self) -> list[User]:
        """Return all users, disabled ones too, by name."""
        with self._database.read() as connection:
            found = [user_of(row) for row in connection.execute(sa.select(users))]
        return sorted(found, key=lambda user: user.name)

    def count(self) -> int:
        """Return how many accounts there are."""
        with self._database.read() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(users)).scalar_one()

    def password_hash(self, user_id: int) -> str | None:
        """Return the hash that was set last, or None where there is no such user."""
        with self._database.read() as connection:
            return connection.execute(sa.select(users.c.password_hash).where(users.c.id == user_id)).scalar()

    def set_password_hash(self, user_id: int, password_hash: str) -> None:
        """Set the hash of a password and end all sessions of the user.

        Raises:
            UsageError: where there is no such user.
        """
        self._update(user_id, end_sessions=True, password_hash=password_hash)

    def set_role(self, user_id: int, role: str) -> None:
        """Give a user another role.

        Raises:
            UsageError: where there is no such user.
            UnknownNameError: where the role is none.
        """
        _check_role(role)
        self._update(user_id, role=role)

    def set_disabled(self, user_id: int, disabled: bool) -> None:
        """Shut a user out, which ends all their sessions, or let them in again.

        Raises:
            UsageError: where there is no such user.
        """
        self._update(user_id, end_sessions=disabled, disabled=disabled)

    def touch(self, user_id: int, now: float) -> None:
        """Note that a user was there.

        Raises:
            UsageError: where there is no such user.
        """
        self._update(user_id, last_seen=now)

    def _find(self, condition: Any) -> User | None:
        with self._database.read() as connection:
            row = connection.execute(sa.select(users).where(condition)).one_or_none()
        return None if row is None else user_of(row)

    def _update(self, user_id: int, *, end_sessions: bool = False, **values: Any) -> None:
        with self._database.write() as connection:
            if connection.execute(sa.update(users).where(users.c.id == user_id).values(values)).rowcount == 0:
                raise MissingEntryError(f"There is no user {user_id}.", advice="Look at the list of users.")
            if end_sessions:
                connection.execute(sa.delete(sessions).where(sessions.c.user_id == user_id))


def user_of(row: Row[Any]) -> User:
    """Return the user of a row that has the columns of the table of users."""
    return User(
        id=row.id,
        name=row.name,
        role=row.role,
        disabled=row.disabled,
        created=row.created,
        last_seen=row.last_seen,
    )


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise UnknownNameError("role", role, ROLES)


def digest_of(secret: str) -> str:
    """Return the SHA-256 of a secret as 64 hexadecimal digits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class SessionRepository:
    """The sessions; every method is one transaction.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, secret: str, *, user_id: int, now: float, expires: float) -> None:
        """Begin a session.

        Args:
            secret: random text that the browser keeps; only its SHA-256 is stored.
            user_id: whose.
            now: seconds since 1970.
            expires: seconds since 1970.
        """
        row = {"digest": digest_of(secret), "user_id": user_id, "created": now, "expires": expires, "last_used": now}
        with self._database.write() as connection:
            connection.execute(sa.insert(sessions).values(row))

    def find(self, digest: str, now: float) -> User | None:
        """Return whose session it is; None where it is unknown or over, or its user is disabled.

        Args:
            digest: SHA-256 of the secret, see ``digest_of``.
            now: seconds since 1970.
        """
        good = (sessions.c.digest == digest, sessions.c.expires > now, users.c.disabled.is_(False))
        with self._database.read() as connection:
            row = connection.execute(sa.select(users).join(sessions).where(*good)).one_or_none()
        return None if row is None else user_of(row)

    def touch(self, digest: str, *, now: float, expires: float) -> None:
        """Note that a session is used and set its new end; an unknown one stays unknown."""
        with self._database.write() as connection:
            used = sa.update(sessions).where(sessions.c.digest == digest)
            connection.execute(used.values(last_used=now, expires=expires))

    def revoke(self, digest: str) -> bool:
        """End a session; return whether there was one."""
        with self._database.write() as connection:
            return connection.execute(sa.delete(sessions).where(sessions.c.digest == digest)).rowcount > 0

    def revoke_all(self, user_id: int) -> int:
        """End all sessions of a user and return how many there were."""
        with self._database.write() as connection:
            return connection.execute(sa.delete(sessions).where(sessions.c.user_id == user_id)).rowcount

    def expire(self, now: float) -> int:
        """Remove the sessions that are over and return how many there were."""
        with self._database.write() as connection:
            return connection.execute(sa.delete(sessions).where(sessions.c.expires <= now)).rowcount


class TokenRepository:
    """The tokens; every method is one transaction.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, secret: str, *, user_id: int, name: str, scope: str, now: float, expires: float | None = None
    ) -> Token:
        """Make a token good.

        Args:
            secret: random text that the program keeps; only its SHA-256 is stored.
            user_id: whose.
            name: what it is for.
            scope: a name in ``SCOPES``.
            now: seconds since 1970.
            expires: seconds since 1970; None for never.

        Raises:
            UnknownNameError: where the scope is none.
        """
        if scope not in SCOPES:
            raise UnknownNameError("scope", scope, SCOPES)
        row = {"digest": digest_of(secret), "user_id": user_id, "name": name, "scope": scope, "created": now}
        with self._database.write() as connection:
            made = sa.insert(tokens).values(expires=expires, revoked=False, **row).returning(tokens)
            return _token(connection.execute(made).one())

    def find(self, digest: str, now: float) -> tuple[Token, User] | None:
        """Return a token and its user; None where it is unknown, revoked or over, or its user is disabled.

        Args:
            digest: SHA-256 of the secret, see ``digest_of``.
            now: seconds since 1970.
        """
        with self._database.read() as connection:
            row = connection.execute(sa.select(tokens).where(tokens.c.digest == digest)).one_or_none()
            if row is None or row.revoked or (row.expires is not None and row.expires <= now):
                return None
            user = user_of(connection.execute(sa.select(users).where(users.c.id == row.user_id)).one())
        return None if user.disabled else (_token(row), user)

    def all(self, user_id: int | None = None) -> list[Token]:
        """Return the tokens of a user, or of everybody, revoked ones too, the newest first."""
        query = sa.select(tokens).order_by(tokens.c.created.desc(), tokens.c.id.desc())
        if user_id is not None:
            query = query.where(tokens.c.user_id == user_id)
        with self._database.read() as connection:
            return [_token(row) for row in connection.execute(query)]

    def revoke(self, token_id: int) -> bool:
        """Make a token good for nothing; return whether it was good before."""
        with self._database.write() as connection:
            good = sa.update(tokens).where(tokens.c.id == token_id, tokens.c.revoked.is_(False))
            return connection.execute(good.values(revoked=True)).rowcount > 0

    def touch(self, token_id: int, now: float) -> None:
        """Note that a token is used; an unknown one stays unknown."""
        with self._database.write() as connection:
            connection.execute(sa.update(tokens).where(tokens.c.id == token_id).values(last_used=now))


def _token(row: Row[Any]) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        user_id=row.user_id,
        scope=row.scope,
        created=row.created,
        expires=row.expires,
        last_used=row.last_used,
        revoked=row.revoked,
    )
