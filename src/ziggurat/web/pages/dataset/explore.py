"""View model of the dataset explorer: the samples that match a filter, and the position of one sample among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.errors import MissingEntryError
from ziggurat.web.pages.dataset.filter import DatasetFilter
from ziggurat.web.pages.dataset.samples import SampleView, view_sample
from ziggurat.workspace.studio import Studio

__all__ = ["Explored", "Neighbours", "ShownSample", "chosen_places", "explored", "shown_sample"]

_BLOCK: Final = 5000
_SHAPES_ON_A_PAGE: Final = 2000
_REGIONS_ON_A_PAGE: Final = 300


@dataclass(frozen=True, kw_only=True)
class Explored:
    """A page of the explorer.

    Args:
        total: samples that the filter leaves.
        samples: of the page.
        schema: of the dataset.
        splits: of the dataset.
        problem_counts: kind of problem → how many.
        has_groups: whether a sample has a group.
    """

    total: int
    samples: list[SampleView]
    schema: Any
    splits: tuple[str, ...]
    problem_counts: dict[str, int]
    has_groups: bool

    @property
    def has_pictures(self) -> bool:
        """Whether samples are images."""
        return any(sample.pictures for sample in self.samples)


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The samples before and after one, within a filter.

    Args:
        at: place of the sample among those that the filter leaves, from 0; None where it is none of them.
        total: samples that the filter leaves.
        before: entry of the one before; None for none.
        after: entry of the one after; None for none.
    """

    at: int | None
    total: int
    before: Any = None
    after: Any = None


@dataclass(frozen=True, kw_only=True)
class ShownSample:
    """One sample, large.

    Args:
        sample: it.
        schema: of the dataset.
        neighbours: of it.
    """

    sample: SampleView
    schema: Any
    neighbours: Neighbours


def explored(studio: Studio, job_id: str, wanted: DatasetFilter) -> Explored:
    """Return the samples that a filter leaves.

    Raises:
        UnknownNameError: where there is no such split or class.
        JobError: where there is no dataset of that id.
    """
    page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=wanted.offset, limit=wanted.limit)
    with studio.datasets.opened(job_id) as dataset:
        samples = max(1, len(page.entries))
        most = max(20, _SHAPES_ON_A_PAGE // samples)
        regions = max(4, _REGIONS_ON_A_PAGE // samples)
        return Explored(
            total=page.total,
            samples=[
                view_sample(dataset, entry, page.problems.get(entry.key, ()), most_shapes=most, most_regions=regions)
                for entry in page.entries
            ],
            schema=dataset.schema,
            splits=dataset.splits,
            problem_counts=dict(dataset.manifest.problems),
            has_groups=any(entry.group for entry in page.entries) or "group" in wanted.typed,
        )


def shown_sample(
    studio: Studio, job_id: str, split: str, row: int, wanted: DatasetFilter, at: int | None
) -> ShownSample:
    """Return one sample with its neighbors.

    Args:
        studio: where the dataset is.
        job_id: of the dataset.
        split: that the sample is in.
        row: its number in the split.
        wanted: the filter within which it is looked at.
        at: place that it probably has among the samples that the filter leaves; None if unknown.

    Raises:
        MissingEntryError: where there is no such sample.
    """
    with studio.datasets.opened(job_id) as dataset:
        entry = _entry(dataset, split, row)
        problems = dataset.catalogue.problems_of([entry.key]).get(entry.key, ())
        return ShownSample(
            sample=view_sample(dataset, entry, problems, most_shapes=1000, most_regions=1000, is_whole=True),
            schema=dataset.schema,
            neighbours=_neighbours(studio, job_id, entry, wanted, at if wanted.typed else entry.number),
        )


def chosen_places(studio: Studio, job_id: str, wanted: DatasetFilter) -> list[str]:
    """Return all samples that a filter leaves, as ``SPLIT/ROW``."""
    found: list[str] = []
    while True:
        page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=len(found), limit=_BLOCK)
        found += [f"{entry.split}/{entry.row}" for entry in page.entries]
        if len(page.entries) < _BLOCK:
            return found


def _entry(dataset: Any, split: str, row: int) -> Any:
    counts = {name: note.count for name, note in dataset.manifest.splits.items()}
    if row < counts.get(split, 0):
        before = sum(counts[name] for name in dataset.splits[: dataset.splits.index(split)])
        return dataset.catalogue.entries([before + row])[0]  # numbers go split by split, row by row
    raise MissingEntryError("There is no such sample in this dataset.", received=f"{split}/{row}")


def _neighbours(studio: Studio, job_id: str, entry: Any, wanted: DatasetFilter, at: int | None) -> Neighbours:
    page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=max(0, (at or 0) - 1), limit=3)
    entries: Sequence[Any] = page.entries
    places = [each.number for each in entries]
    expected = 1 if at else 0
    if places[expected : expected + 1] != [entry.number]:
        at = _searched(studio, job_id, entry, wanted, page.total)
        if at is None:
            return Neighbours(at=None, total=page.total)
        page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=max(0, at - 1), limit=3)
        entries, places = page.entries, [each.number for each in page.entries]
    inside = places.index(entry.number)
    return Neighbours(
        at=page.offset + inside,
        total=page.total,
        before=entries[inside - 1] if inside else None,
        after=entries[inside + 1] if inside + 1 < len(entries) else None,
    )


def _searched(studio: Studio, job_id: str, entry: Any, wanted: DatasetFilter, total: int) -> int | None:
    """Return the place of a sample among those that a filter leaves; they stand in the order of their numbers."""
    low, high = 0, total
    while low < high:
        middle = (low + high) // 2
        page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=middle, limit=1)
        if not page.entries:
            return None
        if page.entries[0].number < entry.number:
            low = middle + 1
        else:
            high = middle
    page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=low, limit=1)
    return low if page.entries and page.entries[0].number == entry.number else None
