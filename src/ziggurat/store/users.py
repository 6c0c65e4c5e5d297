"""Repository of user accounts: names, roles and password hashes.

This module never creates or checks a password hash.
"""

from __future__ import annotations

import re
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Row

from ziggurat.entities import ROLES, User
from ziggurat.errors import MissingEntryError, UnknownNameError, UsageError
from ziggurat.store.database import Database
from ziggurat.store.tables import sessions, users

__all__ = ["UserRepository", "user_of"]

_NAME: Final = re.compile(r"[a-z][a-z0-9._-]*")
_LONGEST_NAME: Final = 64


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
            UsageError: where the name is not such a name, or somebody has it.
            UnknownNameError: where the role is none.
        """
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            raise UsageError(
                "A user's name must begin with a small letter and have only small letters, digits, `.`, `_` and `-`.",
                received=repr(name[:100]),
                advice=f"Choose one of at most {_LONGEST_NAME} characters, such as `fred-1.x`.",
            )
        _check_role(role)
        with self._database.write() as connection:
            if connection.execute(sa.select(users.c.id).where(users.c.name == name)).scalar() is not None:
                raise UsageError("The name of a user must be their own.", received=name, advice="Choose another name.")
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
                raise MissingEntryError("There is no such user.", received=user_id, advice="Look at the list of users.")
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
