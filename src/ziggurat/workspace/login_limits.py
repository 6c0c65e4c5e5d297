"""Rate limits for login attempts, with growing waits after failures."""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from ziggurat.errors import UsageError

__all__ = ["LoginLimits", "TooManyLoginsError"]

_FREE = {"pair": 5, "address": 20, "name": 50}
"""Attempts without waiting: of a name from one network, of one network, and of a name from anywhere."""


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
            name: as it was given, whether or not anybody has it.
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
                self._count(entry, _FREE[kind], now)

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
        "After several failed tries to log in there is a wait before the next one.",
        advice=f"Try again in {whole_s} s.",
        details={"retry_after_s": whole_s},
    )
