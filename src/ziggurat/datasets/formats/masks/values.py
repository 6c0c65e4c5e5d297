"""Values of masks: those that occur in a source, and the table of the value of each class."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ziggurat.datasets.samples import MASK_VALUES, Problem
from ziggurat.errors import ConfigurationError, DataError

__all__ = ["NO_CLASS", "FoundValues", "ValueTable", "table_of"]

NO_CLASS: Final = 255
"""The value of pixels without a class, by custom."""

_SOFT_EDGES: Final = range(251, 255)  # soft edges of a drawing have values just below 255
_BLACK_AND_WHITE: Final = (0, 255)
_MOST_WITH_GAPS: Final = 20  # more values with gaps are rather soft edges or numbers of objects than classes
_SHOWN: Final = 12
_BEYOND: Final = 1 << 16


@dataclass(frozen=True)
class ValueTable:
    """The value of each class in the masks of a source.

    Args:
        values: by class number, each from 0 to 65535; empty: class i has the value i.
    """

    values: tuple[int, ...] = ()

    @property
    def no_class(self) -> int:
        """Number in stored masks of all values that no class has."""
        return NO_CLASS if len(self.values) <= NO_CLASS else _BEYOND - 1

    def class_numbers(self, mask: np.ndarray) -> np.ndarray:
        """Return the class numbers of a mask (H, W) of values, uint8 or uint16."""
        if not self.values:
            return mask
        table = np.full(_BEYOND, self.no_class, np.uint8 if self.no_class == NO_CLASS else np.uint16)
        table[list(self.values)] = np.arange(len(self.values))
        return table[mask]

    def original(self, mask: np.ndarray, ignored: int) -> np.ndarray:
        """Return the values of a mask (H, W) of class numbers; ``ignored`` where it has none."""
        if not self.values:
            return mask
        high = max(*self.values, ignored)
        table = np.full(_BEYOND, ignored, np.uint8 if high <= NO_CLASS else np.uint16)
        table[: len(self.values)] = self.values
        return table[mask]


def table_of(values: Sequence[Any]) -> ValueTable:
    """Return the table of an option.

    Raises:
        ConfigurationError: where it is no list of different values.
    """
    is_right = all(type(value) is int and 0 <= value < _BEYOND for value in values)
    if not is_right or len(set(values)) < len(values):
        raise ConfigurationError(
            f"`values` is {values!r}, not a list of whole numbers from 0 to 65535, a different one for each class.",
            advice="Such as: --option values=[0,50,100].",
            details={"field": "options.values"},
        )
    return ValueTable(tuple(values))


@dataclass
class FoundValues:
    """The values in the masks of a source.

    Args:
        masks: value → in how many masks it is.
        first: value → path of the first mask that has it.
        jpeg: path of the first mask that is a JPEG file; empty for none.
    """

    masks: dict[int, int] = field(default_factory=dict)
    first: dict[int, str] = field(default_factory=dict)
    jpeg: str = ""

    def add(self, path: str, mask: np.ndarray, *, is_jpeg: bool) -> None:
        """Take in the values of a mask, (H, W) uint8 or uint16."""
        for value in np.flatnonzero(np.bincount(mask.ravel())).tolist():
            self.masks[value] = self.masks.get(value, 0) + 1
            self.first.setdefault(value, path)
        if is_jpeg:
            self.jpeg = self.jpeg or path

    def marks_no_class(self, classes: Collection[int]) -> bool:
        """Return whether 255 stands apart from the other values, so that it marks pixels without a class.

        Soft edges between dark and light have the values just below, too, and black and white masks have no others.

        Args:
            classes: values that are classes.
        """
        is_apart = len(self.masks) > 2 and not any(value in self.masks for value in _SOFT_EDGES)
        return NO_CLASS in self.masks and is_apart and NO_CLASS not in classes

    def check(self, *, has_classes: bool) -> None:
        """Refuse masks that have more values than they were drawn with.

        Args:
            has_classes: whether the source says which values are classes.

        Raises:
            DataError: where a file is JPEG, or there are many values with gaps between them.
        """
        has_gaps = max(self.masks, default=0) >= len(self.masks)
        is_soft = has_gaps and len(self.masks) > _MOST_WITH_GAPS and not has_classes
        if len(self.masks) <= 2 or not (self.jpeg or is_soft):
            return
        count, shown = len(self.masks), _listed(sorted(self.masks))
        name, what = (
            (self.jpeg, "JPEG changes values, and a mask must keep them")
            if self.jpeg
            else (self.first[max(self.masks)], "soft edges, or numbers of objects, are no classes")
        )
        raise DataError(
            f"The masks have {count} different gray values, too many to be classes: {what}.",
            received=f"the values {shown}, such as in `{name}`",
            advice="Save masks as PNG without smoothing; or choose the option `mode`: `binary` for dark and light, "
            "`index` to take each value as a class; or list the value of each class with the option `values`.",
            details={"field": "options.mode"},
        )

    def table(self, ignored: Collection[int]) -> ValueTable:
        """Return the table of the values that are there; empty where they are the numbers from 0 up."""
        values = sorted(value for value in self.masks if value not in ignored)
        return ValueTable() if values == list(range(len(values))) else ValueTable(tuple(values))

    @property
    def are_black_and_white(self) -> bool:
        """Whether there are the values 0 and 255, and no others."""
        return sorted(self.masks) == list(_BLACK_AND_WHITE)

    def gaps(self, table: ValueTable) -> Iterator[Problem]:
        """Yield what is to be said of a table that was made of the values."""
        if table.values and not self.are_black_and_white:
            count = len(table.values)
            reason = (
                f"Masks have the values {_listed(table.values)}: they become the classes 0 to {count - 1}, and are "
                "named by their values. `mode=index` keeps the gaps as classes; `values` lists the classes."
            )
            yield Problem(key=self.first[table.values[-1]], kind=MASK_VALUES, reason=reason)

    def without_class(self, known: Collection[int], ignored: Collection[int]) -> Iterator[Problem]:
        """Yield a problem for each value that is no class: its pixels are lost.

        Args:
            known: values that are classes.
            ignored: values that are meant to be none.
        """
        for value in sorted(self.masks):
            if value not in known and value not in ignored:
                reason = (
                    f"The value {value} is in {self.masks[value]} mask(s), and no class has it: such pixels are lost. "
                    "The option `values` lists the value of each class."
                )
                why = "the value is in masks, and no class has it"
                yield Problem(key=self.first[value], kind="unknown-class", reason=reason, names=1, why=why)


def _listed(values: Sequence[int]) -> str:
    shown = ", ".join(map(str, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown}, … {values[-1]}"
