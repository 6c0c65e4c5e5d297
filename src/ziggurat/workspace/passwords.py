"""Passwords: strength rules, hashing, and limits on concurrent hashing and on failed logins."""

from __future__ import annotations

import ipaddress
import math
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ziggurat.errors import MissingDependencyError, UsageError

__all__ = ["LoginLimits", "PasswordCost", "Passwords", "TooBusyError", "TooManyLoginsError", "check_password"]

_SHORTEST = 8
_LONGEST = 1024

_FREE_TRIES = {"pair": 5, "address": 20, "name": 50}
"""Attempts without waiting: of a name from one network, of one network, and of a name from anywhere."""


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

        It takes as long where there is no hash, so that the time does not reveal which accounts exist.

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
            f"The password has {len(password)} characters; it must have {_SHORTEST} to {_LONGEST}.",
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


class TooManyLoginsError(UsageError):
    """Too many tries to log in failed; ``details`` has ``retry_after_s``."""

    code = "too_many_logins"


@dataclass
class _Tries:
    count: int = 0
    last: float = 0.0
    blocked_until: float = 0.0


_Key = tuple[str, str, str]


class LoginLimits:
    """Counts tries to log in by name and by network address. Any thread may call any method.

    Failures from many networks slow down guessing at a name, but never lock its user out: the first attempt from a
    network is always checked, and a network from which the user logged in before only waits for its own failures.

    Args:
        clock: seconds since 1970.
        longest_s: wait at most.
        forgotten_s: after which time without a try all is forgotten.
        kept: names and addresses that are remembered at most.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        longest_s: float = 300.0,
        forgotten_s: float = 3600.0,
        kept: int = 20_000,
    ) -> None:
        self._clock = clock
        self._longest_s = longest_s
        self._forgotten_s = forgotten_s
        self._kept = kept
        self._lock = threading.Lock()
        self._tries: OrderedDict[_Key, _Tries] = OrderedDict()
        self._trusted: OrderedDict[_Key, None] = OrderedDict()

    def begin(self, name: str, address: str) -> None:
        """Count a try before its password is looked at, so that tries side by side count as well.

        Args:
            name: as given, whether or not there is such an account.
            address: where it comes from.

        Raises:
            TooManyLoginsError: where it comes too early; it is not counted then.
        """
        now = self._clock()
        with self._lock:
            keys = _keys(name, address)
            entries = [(key[0], self._entry(key, now)) for key in keys]
            pair, network, anywhere = (entry for _, entry in entries)
            is_first = pair.count == 0 or keys[0] in self._trusted
            limiting = (pair, network) if is_first else (pair, network, anywhere)
            wait_s = max(entry.blocked_until for entry in limiting) - now
            if wait_s > 0:
                raise _too_many(wait_s)
            for kind, entry in entries:
                self._count(entry, _FREE_TRIES[kind], now)

    def succeeded(self, name: str, address: str) -> None:
        """Forget the failures of a name from here; of the address, only this try is taken back."""
        pair, network, anywhere = _keys(name, address)
        with self._lock:
            self._tries.pop(pair, None)
            self._trusted[pair] = None
            self._trusted.move_to_end(pair)
            while len(self._trusted) > self._kept:
                self._trusted.popitem(last=False)
            for key in (network, anywhere):
                entry = self._tries.get(key)
                if entry is not None:
                    # Else one account that is known would clear the way for guessing at all others.
                    entry.count = max(0, entry.count - 1)
                    entry.blocked_until = 0.0

    def _entry(self, key: _Key, now: float) -> _Tries:
        entry = self._tries.pop(key, None)
        if entry is None or now - entry.last > self._forgotten_s:
            entry = _Tries(last=now)
        self._tries[key] = entry
        while len(self._tries) > self._kept:
            self._tries.popitem(last=False)
        return entry

    def _count(self, entry: _Tries, free: int, now: float) -> None:
        entry.count, entry.last = entry.count + 1, now
        over = entry.count - free
        if over >= 0:
            entry.blocked_until = now + min(self._longest_s, 2.0 ** min(over, 30))


def _keys(name: str, address: str) -> tuple[_Key, _Key, _Key]:
    name, network = name[:100], _network(address)
    return ("pair", name, network), ("address", "", network), ("name", name, "")


def _network(address: str) -> str:
    """Return the address, of IPv6 its /64: everybody there has as many addresses as they like."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def _too_many(wait_s: float) -> TooManyLoginsError:
    whole_s = max(1, math.ceil(wait_s))
    return TooManyLoginsError(
        "Several tries to log in failed: there is a wait before the next one.",
        advice=f"Try again in {whole_s} s.",
        details={"retry_after_s": whole_s},
    )
