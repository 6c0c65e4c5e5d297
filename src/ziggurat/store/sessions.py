"""Repository of browser sessions.

Only the SHA-256 of a secret is stored, so that a stolen store gives no access.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa

from ziggurat.entities import User
from ziggurat.store.database import Database
from ziggurat.store.tables import sessions, users
from ziggurat.store.users import user_of

__all__ = ["SessionRepository", "digest_of"]


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
