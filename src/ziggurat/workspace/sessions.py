"""Browser sessions: creation, expiry, and end."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from ziggurat.entities import User
from ziggurat.errors import UsageError
from ziggurat.store.accounts import SessionRepository, digest_of

__all__ = ["LoginError", "Session", "Sessions"]

_DAY_S = 86400.0
_TOUCH_EVERY_S = 60.0
_KEPT = 10_000


class LoginError(UsageError):
    """Somebody could not be let in."""

    code = "login"


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session that began.

    Args:
        secret: for the cookie; nobody can see it again.
        user: whose.
        longest_s: seconds for which it is good at most.
    """

    secret: str
    user: User
    longest_s: int


class Sessions:
    """Begins, finds and ends sessions.

    The secret of a session begins with the time at which it began. Nobody can change that, since the whole of it is
    what the stored hash is of.

    Args:
        rows: where they are.
        clock: seconds since 1970.
        new_secret: returns random text that cannot be guessed.
        idle_s: how long one is good that nobody uses.
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
            while len(self._uses) > _KEPT:
                self._uses.popitem(last=False)
            return True
