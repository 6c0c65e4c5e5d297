"""Detection of duplicate keys, in 16 to 32 bytes per key."""

from __future__ import annotations

from array import array
from typing import Final

__all__ = ["SeenKeys"]

_FIRST_SIZE: Final = 1 << 12


class SeenKeys:
    """The keys that came so far, as hashes of 64 bits: two keys out of a million are one with a chance of 1 to 10^7."""

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 * _FIRST_SIZE))
        self._count = 0

    def is_new(self, key: str) -> bool:
        """Tell whether a key comes for the first time, and remember it."""
        if 2 * self._count >= len(self._table):
            self._grow()
        if not self._put(hash(key) & 0xFFFFFFFFFFFFFFFF or 1):
            return False
        self._count += 1
        return True

    def _put(self, value: int) -> bool:
        table, mask = self._table, len(self._table) - 1
        place = value & mask
        while table[place]:
            if table[place] == value:
                return False
            place = (place + 1) & mask
        table[place] = value
        return True

    def _grow(self) -> None:
        old = self._table
        self._table = array("Q", bytes(16 * len(old)))
        for value in old:
            if value:
                self._put(value)
