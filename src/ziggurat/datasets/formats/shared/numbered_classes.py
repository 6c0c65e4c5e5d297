"""Numbers of classes in binary files: which values are some, and which names they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ziggurat.datasets.samples import COUNTED_FROM_ONE, Problem

__all__ = ["BACKGROUND", "MOST_CLASSES", "NumberedClasses", "no_number"]

MOST_CLASSES: Final = 1_000_000
"""Highest number of a class that is read: the schema has a name for each number up to the highest."""


BACKGROUND: Final = frozenset(("background", "none", "unknown", "other"))
"""Names of a class 0 of which there are no samples, in lower case: numbers are counted from 0 beside them."""


class NumberedClasses:
    """The numbers that a scan has met so far."""

    def __init__(self) -> None:
        self._lowest = MOST_CLASSES
        self._highest = -1

    def number(self, value: float) -> int | None:
        """Return the number of a class; None if the value is not whole, below 0, or above a million."""
        if not 0 <= value <= MOST_CLASSES or value != int(value):
            return None
        self._lowest, self._highest = min(self._lowest, int(value)), max(self._highest, int(value))
        return int(value)

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return a name for each number: those of a list as far as they go, then the numbers themselves."""
        if self._is_from_one(names):
            return ("class 0" if "0" in names else "0", *names)
        return (*names, *(str(number) for number in range(len(names), self._highest + 1)))

    def problems(self, names: Sequence[str], source: str) -> Iterator[Problem]:
        """Yield what is to be said of the names when all numbers were met.

        Args:
            names: the names in the source, by class number.
            source: file or folder that they belong to.
        """
        if self._is_from_one(names):
            reason = (
                f"There is a class {len(names)} and no class 0, and {len(names)} names are given: they are taken as "
                "counted from 1."
            )
            yield Problem(key=source, kind=COUNTED_FROM_ONE, reason=reason)

    def _is_from_one(self, names: Sequence[str]) -> bool:
        is_one_more = self._lowest == 1 and self._highest == len(names)
        return is_one_more and names[0].strip(" _").lower() not in BACKGROUND


def no_number(key: str, value: object, split: str) -> Problem:
    """Return the problem of a sample whose label is no number of a class."""
    reason = f"The number of a class is whole, from 0 to {MOST_CLASSES:,} (received: {value})."
    return Problem(key=key, kind="no-label", reason=reason, left_out=True, split=split)
