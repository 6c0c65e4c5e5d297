"""Listing of a dataset's samples: those that a filter leaves, in its order, by page and by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.web.pages.dataset.filters import DatasetFilter
from ziggurat.web.pages.dataset.predicted import Predicted
from ziggurat.workspace.datasets import sample_filter
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.dataset_maps import DatasetMap, entry_named
from ziggurat.workspace.studio.datasets import Entry

__all__ = ["MOST_SIMILAR", "Listing", "Neighbours"]

_BLOCK: Final = 5000
_BESIDE: Final = 4

MOST_SIMILAR: Final = 192
"""Samples that are listed as similar to one."""


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
        mapped: map of the dataset; None for none, then a filter by what it found leaves nothing.

    Raises:
        UnknownNameError: where there is no such split or class.
        MissingEntryError: if the sample that others are to be similar to is not there.
        UsageError: if an area is none.
    """

    def __init__(
        self,
        studio: Studio,
        job_id: str,
        wanted: DatasetFilter,
        predicted: Predicted | None,
        mapped: DatasetMap | None = None,
    ) -> None:
        self._studio = studio
        self._job_id = job_id
        self._wanted = wanted
        self._numbers: list[int] | None = None
        if wanted.needs_map:
            self._numbers = self._mapped_numbers(mapped, predicted)
        elif wanted.needs_predictions:
            self._numbers = self._predicted_numbers(predicted)
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

    def numbers(self) -> np.ndarray:
        """Return the catalog numbers of all samples, in no certain order."""
        if self._numbers is not None:
            return np.array(self._numbers, np.int64)
        with self._studio.datasets.opened(self._job_id) as dataset:
            return dataset.catalogue.column("number", sample_filter(dataset, self._wanted.chosen))

    def _mapped_numbers(self, mapped: DatasetMap | None, predicted: Predicted | None) -> list[int]:
        """Return the numbers that all filters leave, ranked by the first filter that ranks."""
        wanted = self._wanted
        if mapped is None:
            return []
        rankings: list[list[int]] = []
        if "similar" in wanted.typed:
            with self._studio.datasets.opened(self._job_id) as dataset:
                number = entry_named(dataset, wanted.value("similar")).number
            rankings.append([each for each, _ in mapped.neighbors(number, MOST_SIMILAR)])
        if "found" in wanted.typed:
            rankings.append(mapped.chosen(wanted.value("found")).tolist())
        if wanted.prediction:
            rankings.append(self._predicted_numbers(predicted))
        if "area" in wanted.typed:
            inside = mapped.inside(wanted.value("area"))
            doubtful = mapped.chosen("label-errors")
            first = doubtful[np.isin(doubtful, inside)].tolist()
            rankings.append([*first, *inside[~np.isin(inside, doubtful)].tolist()])
        with self._studio.datasets.opened(self._job_id) as dataset:
            left = set(dataset.catalogue.column("number", sample_filter(dataset, wanted.chosen)).tolist())
        for ranking in rankings[1:]:
            left.intersection_update(ranking)
        found = [number for number in rankings[0] if number in left]
        return sorted(found) if wanted.order == "row" else found

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
