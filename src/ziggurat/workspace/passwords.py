"""Passwords: strength rules, hashing, and a limit on concurrent hashing."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ziggurat.errors import MissingDependencyError, UsageError

__all__ = ["PasswordCost", "Passwords", "TooBusyError", "check_password"]

_SHORTEST = 8
_LONGEST = 1024


@dataclass(frozen=True, kw_only=True)
class PasswordCost:
    """What hashing a password costs; the default is the second choice of RFC 9106, section 4.

    Args:
        rounds: passes over the memory.
        memory_kib: memory that one hash takes.
        lanes: that are computed side by side.
    """

    rounds: int = 3
    memory_kib: int = 65536
    lanes: int = 4


class TooBusyError(UsageError):
    """More people log in at this moment than the studio checks at a time; they should try again."""

    code = "too_busy"


class Passwords:
    """Hashes and checks passwords by Argon2id (RFC 9106). Every method takes its time: call it in a thread.

    Args:
        cost: of one hash.
        at_once: hashes at a time; each takes the memory of ``cost``.
        waiting: calls that may wait for their turn; more are refused, so that a flood does not hold all threads.
    """

    def __init__(self, *, cost: PasswordCost | None = None, at_once: int = 2, waiting: int = 8) -> None:
        cost = cost or PasswordCost()
        self._hasher = _hasher(cost)
        self._turns = threading.BoundedSemaphore(at_once)
        self._places = threading.BoundedSemaphore(at_once + waiting)
        self._nobody = _hash_of_nobody(cost)

    def hash(self, password: str) -> str:
        """Return the text that is to be stored: method, costs, salt and hash.

        Raises:
            UsageError: where the password is too short or too long.
            TooBusyError: where too many wait already.
        """
        check_password(password)
        with self._turn():
            return self._hasher.hash(_normal(password))

    def verify(self, stored: str | None, password: str) -> bool:
        """Return whether a password is the one whose hash is stored.

        It takes as long where there is no hash, so that nobody learns from the time which names have an account.

        Raises:
            TooBusyError: where too many wait already.
        """
        from argon2.exceptions import Argon2Error, InvalidHashError

        with self._turn():
            try:
                is_right = self._hasher.verify(stored or self._nobody, _normal(password[:_LONGEST]))
            except (Argon2Error, InvalidHashError):
                return False
        return is_right and bool(stored)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise TooBusyError(
                "The studio checks a few passwords at a time.",
                advice="Try again in some seconds.",
                details={"retry_after_s": 2},
            )
        try:
            with self._turns:
                yield
        finally:
            self._places.release()


def check_password(password: str) -> None:
    """Raise where a password is not good enough to be set.

    Raises:
        UsageError: where it is too short or too long; the message does not show it.
    """
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise UsageError(
            f"A password must have {_SHORTEST} to {_LONGEST} characters.",
            received=f"{len(password)} of them",
            advice="Several words in a row make a good one.",
        )


def _hasher(cost: PasswordCost) -> Any:
    try:
        from argon2 import PasswordHasher
    except ModuleNotFoundError as error:
        raise MissingDependencyError("argon2-cffi", extra="studio", purpose="accounts with passwords") from error
    return PasswordHasher(time_cost=cost.rounds, memory_cost=cost.memory_kib, parallelism=cost.lanes)


@cache
def _hash_of_nobody(cost: PasswordCost) -> str:
    # One for all studios of a process: to make it takes as long as a login.
    return _hasher(cost).hash(b"nobody has this password")


def _normal(password: str) -> bytes:
    # One keyboard sends "é" as one character, another as two: both must be the same password.
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
