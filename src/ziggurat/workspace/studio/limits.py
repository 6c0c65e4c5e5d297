"""Limits that an admin sets: concurrent jobs, memory, disk, and retention in days."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ziggurat.entities import Resources
from ziggurat.errors import ConfigurationError, UnknownNameError

__all__ = ["UPLOADS_KEPT_S", "Limit", "Limits"]

UPLOADS_KEPT_S: Final = 7 * 24 * 3600
"""How long files that people sent wait to become a dataset, where nobody chose otherwise."""

_MOST: Final = 1 << 53
_LEAST: Final = {
    "cpu_slots": 1,
    "dataset_slots": 1,
    "memory_bytes": 1 << 28,
    "disk_reserve_bytes": 0,
    "uploads_kept_s": 3600,
}
"""Name → smallest value: with less, no job would ever start, or uploads would be gone at once."""

_HELP: Final = {
    "cpu_slots": "Jobs that run on processors at a time. Usual is half of the cores.",
    "dataset_slots": "Datasets that are made at a time. Usual is 1: two on one disk hold each other up.",
    "memory_bytes": "Memory that all jobs together may ask for. Usual is nine tenths of the machine's.",
    "disk_reserve_bytes": "Free disk space below which no job is started. Usual is 2 % of the disk, at least 1 GiB.",
    "uploads_kept_s": "How long files that people sent wait to become a dataset. Usual is a week.",
}


class _Settings(Protocol):
    def all(self) -> dict[str, Any]: ...

    def set(self, name: str, value: Any) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A number that may be chosen.

    Args:
        name: of it; its end says the unit (``_bytes``, ``_s``), others are counts.
        value: that holds.
        default: that holds if none is chosen.
        is_chosen: whether somebody did.
        least: smallest that may be chosen.
        help: what it does and what is usual.
    """

    name: str
    value: int
    default: int
    is_chosen: bool
    least: int
    help: str


class Limits:
    """The numbers; a change holds from the next look at the queue on, without starting anything again.

    Args:
        settings: of the studio; they keep what was chosen.
        resources: returns what this machine has for jobs under given settings.
    """

    def __init__(self, settings: _Settings, resources: Callable[[Mapping[str, Any]], Resources]) -> None:
        self._settings = settings
        self._resources = resources

    def all(self) -> list[Limit]:
        """Return every number."""
        chosen, machine = self._settings.all(), self._resources({})
        defaults = {name: getattr(machine, name, UPLOADS_KEPT_S) for name in _LEAST}
        return [
            Limit(
                name=name,
                value=defaults[name] if chosen.get(name) is None else chosen[name],
                default=defaults[name],
                is_chosen=chosen.get(name) is not None,
                least=least,
                help=_HELP[name],
            )
            for name, least in _LEAST.items()
        ]

    def choose(self, values: Mapping[str, int | None]) -> None:
        """Choose numbers, all or none of them; None goes back to the default.

        Raises:
            UnknownNameError: where a name is none.
            ConfigurationError: where a number is too small or no whole number; ``details["field"]`` names it.
        """
        for name, value in values.items():
            if name not in _LEAST:
                raise UnknownNameError("limit of the studio", name, _LEAST)
            if value is not None:
                _check(name, value)
        for name, value in values.items():
            self._settings.set(name, value)


def _check(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not _LEAST[name] <= value <= _MOST:
        raise ConfigurationError(
            f"`{name}` is a whole number from {_LEAST[name]}.",
            received=repr(value)[:50],
            advice=_HELP[name],
            details={"field": name},
        )
