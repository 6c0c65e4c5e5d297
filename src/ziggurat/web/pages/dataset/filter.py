"""Filter of the dataset explorer as a URL query: which samples, and which of them are on the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["FILTERS", "PAGE_SIZES", "DatasetFilter", "filter_of"]

_TEXTS: Final = ("split", "class_name", "text", "problem", "group")
_NUMBERS: Final = ("min_width_px", "max_width_px", "min_height_px", "max_height_px")
FILTERS: Final = (*_TEXTS, *_NUMBERS)
"""Names of the fields that choose samples."""

PAGE_SIZES: Final = (24, 48, 96, 192)
"""Samples on a page, for people to choose from."""

_LARGEST: Final = 2**31


@dataclass(frozen=True, kw_only=True)
class DatasetFilter:
    """Which samples of a dataset.

    Args:
        typed: field → what was typed, of those that were filled in.
        offset: samples before the page.
        limit: samples on it.
        problems: field → what is wrong with it.
    """

    typed: Mapping[str, str] = field(default_factory=dict)
    offset: int = 0
    limit: int = PAGE_SIZES[1]
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> dict[str, Any]:
        """What the studio's ``datasets.explore`` takes; fields with a problem choose nothing."""
        return {
            name: int(text) if name in _NUMBERS else text
            for name, text in self.typed.items()
            if name not in self.problems
        }

    @property
    def query(self) -> dict[str, Any]:
        """What stands in an address, without the place in the list."""
        return {**self.typed, **({} if self.limit == PAGE_SIZES[1] else {"limit": self.limit})}

    def value(self, name: str) -> str:
        """Return what was typed into a field."""
        return self.typed.get(name, "")


def filter_of(values: Mapping[str, Any]) -> DatasetFilter:
    """Return the filter of an address, or of a form; what cannot be read is said and otherwise left out."""
    typed = {name: str(values.get(name) or "").strip() for name in FILTERS}
    problems = {
        name: "A whole number of pixels, at least 1."
        for name in _NUMBERS
        if typed[name]
        and not (typed[name].isascii() and typed[name].isdigit() and 0 < int(typed[name][:12]) < _LARGEST)
    }
    limit = _whole(values.get("limit"), PAGE_SIZES[1])
    return DatasetFilter(
        typed={name: text for name, text in typed.items() if text},
        offset=_whole(values.get("offset"), 0),
        limit=min(max(limit, 1), PAGE_SIZES[-1]),
        problems=problems,
    )


def _whole(text: Any, otherwise: int) -> int:
    word = str(text or "")
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else otherwise
