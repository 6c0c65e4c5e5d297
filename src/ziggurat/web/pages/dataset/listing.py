"""Listing of a dataset's samples: those that a filter leaves, in its order, by page and by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.web.pages.dataset.filters import DatasetFilter
from ziggurat.web.pages.dataset.predicted import Predicted
from ziggurat.workspace.datasets import sample_filter
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.datasets import Entry

__all__ = ["Listing", "Neighbours"]

_BLOCK: Final = 5000
_BESIDE: Final = 4


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The samples before and after one, within a filter.

    Args:
        at: place of the sample among those that the filter leaves, from 0; None where it is none of them.
        total: samples that the filter leaves.
        before: entry of the one before; None for none.
        after: entry of the one after; None for none.
        beside: place and entry of some on both sides, with the sample itself.
    """

    at: int | None
    total: int
    before: Any = None
    after: Any = None
    beside: Sequence[tuple[int, Any]] = ()


class Listing:
    """The samples that a filter leaves, in its order.

    Args:
        studio: where the dataset is.
        job_id: of the dataset.
        wanted: the filter.
        predicted: what a model predicted; None for nothing, then the filter by predictions leaves nothing.

    Raises:
        UnknownNameError: where there is no such split or class.
    """

    def __init__(self, studio: Studio, job_id: str, wanted: DatasetFilter, predicted: Predicted | None) -> None:
        self._studio = studio
        self._job_id = job_id
        self._wanted = wanted
        self._numbers = self._predicted_numbers(predicted) if wanted.needs_predictions else None
        self.total = 0
        self.problems: Mapping[str, Sequence[Any]] = {}

    def page(self, offset: int, limit: int) -> list[Entry]:
        """Return some of the samples; ``total`` and their ``problems`` are known from then on."""
        if self._numbers is None:
            order: Any = self._wanted.order
            found, _ = self._studio.datasets.explore(
                self._job_id, self._wanted.chosen, offset=offset, limit=limit, order=order
            )
            self.total, self.problems = found.total, found.problems
            return found.entries
        with self._studio.datasets.opened(self._job_id) as dataset:
            entries = dataset.catalogue.entries(self._numbers[offset : offset + limit])
            self.total = len(self._numbers)
            self.problems = dataset.catalogue.problems_of([entry.key for entry in entries])
            return entries

    def places(self) -> list[str]:
        """Return all samples, as ``SPLIT/ROW``."""
        found: list[str] = []
        while True:
            entries = self.page(len(found), _BLOCK)
            found += [f"{entry.split}/{entry.row}" for entry in entries]
            if len(entries) < _BLOCK:
                return found

    def around(self, entry: Entry, at: int | None) -> Neighbours:
        """Return the neighbors of a sample.

        Args:
            entry: of the sample.
            at: place that it probably has; None if unknown.
        """
        start, entries = self._beside(at or 0)
        numbers = [each.number for each in entries]
        if entry.number not in numbers:
            at = self._searched(entry)
            if at is None:
                return Neighbours(at=None, total=self.total)
            start, entries = self._beside(at)
            numbers = [each.number for each in entries]
        inside = numbers.index(entry.number)
        return Neighbours(
            at=start + inside,
            total=self.total,
            before=entries[inside - 1] if inside else None,
            after=entries[inside + 1] if inside + 1 < len(entries) else None,
            beside=[(start + number, each) for number, each in enumerate(entries)],
        )

    def _beside(self, at: int) -> tuple[int, list[Entry]]:
        start = max(0, at - _BESIDE)
        return start, self.page(start, 2 * _BESIDE + 1)

    def _searched(self, entry: Entry) -> int | None:
        """Return the place of a sample; None where it is none of them, or their order does not tell."""
        if self._numbers is not None:
            return self._numbers.index(entry.number) if entry.number in self._numbers else None
        if self._wanted.order != "row":
            return None
        low, high = 0, self.total
        while low < high:
            middle = (low + high) // 2
            entries = self.page(middle, 1)
            if not entries:
                return None
            if entries[0].number < entry.number:
                low = middle + 1
            else:
                high = middle
        entries = self.page(low, 1)
        return low if entries and entries[0].number == entry.number else None

    def _predicted_numbers(self, predicted: Predicted | None) -> list[int]:
        wanted = self._wanted
        with self._studio.datasets.opened(self._job_id) as dataset:
            left: list[int] = dataset.catalogue.column("number", sample_filter(dataset, wanted.chosen)).tolist()
            firsts, start = {}, 0
            for split, note in dataset.manifest.splits.items():
                firsts[split] = start
                start += note.count
        if predicted is None:
            return [] if wanted.prediction else left
        ranked = predicted.numbers(wanted.prediction or "wrong", firsts)
        inside = set(left)
        found = [number for number in ranked if number in inside]
        if not wanted.prediction:
            first = set(found)
            found += [number for number in left if number not in first]
        return sorted(found) if wanted.order == "row" else found
