"""Mapping of KITTI types to classes: by the names in the files, by a list, by a mapping, or numbered as in DIGITS."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["DIGITS", "DONT_CARE", "KittiClasses", "type_names"]

DONT_CARE: Final = "DontCare"
DIGITS: Final = "digits"
_DIGITS_NAMES: Final = (
    "dontcare", "car", "van", "truck", "bus", "pickup", "vehicle-with-trailer", "special-vehicle", "person",
    "person-fa", "person?", "people", "cyclist", "tram", "person_sitting", "misc",
)  # fmt: skip
_DIGITS_ALIASES: Final = {"pedestrian": "person"}


class KittiClasses:
    """Decides on types. Regions of the type ``DontCare`` belong to no class, whatever the list says.

    Args:
        names: classes in order; empty: every type that is found is a class. ``["digits"]`` numbers them as DIGITS did:
            car is 1, and 0 stays free. Types that are not in the list are ``DontCare``; case does not matter.
        mapping: type → class, looked at first; an empty class means ``DontCare``.
    """

    def __init__(self, names: Sequence[str], mapping: Mapping[str, str]) -> None:
        self._mapping = {kind.lower(): name for kind, name in mapping.items()}
        if list(names) == [DIGITS]:
            names = _DIGITS_NAMES
            self._mapping = {**_DIGITS_ALIASES, **self._mapping}
        self.names = list(names) or None
        known = list(zip(type_names(names), names, strict=True))
        self._exact = dict(reversed(known))
        self._folded = {kind.lower(): name for kind, name in reversed(known)}

    def name_of(self, kind: str) -> str | None:
        """Return the class of a type, None where it is to be ignored."""
        name = self._mapping.get(kind.lower(), kind)
        if not name or name.lower() == DONT_CARE.lower():
            return None
        if self.names is None:
            return name
        return self._exact.get(name) or self._folded.get(name.lower()) or (name if name in self.names else None)


def type_names(names: Sequence[str]) -> list[str]:
    """Return the type that is written for each class: one word, no two alike, and none that means ``DontCare``."""
    taken = {DONT_CARE.lower()}
    found = []
    for name in names:
        word = re.sub(r"\s+", "_", name.strip()) or "_"
        free, count = word, 1
        while free.lower() in taken:
            count += 1
            free = f"{word}_{count}"
        taken.add(free.lower())
        found.append(free)
    return found
