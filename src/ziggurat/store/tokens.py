"""Repository of API bearer tokens; only the SHA-256 of a secret is stored."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Row

from ziggurat.entities import SCOPES, Token, User
from ziggurat.errors import UnknownNameError
from ziggurat.store.database import Database
from ziggurat.store.sessions import digest_of
from ziggurat.store.tables import tokens, users
from ziggurat.store.users import user_of

__all__ = ["TokenRepository"]


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
