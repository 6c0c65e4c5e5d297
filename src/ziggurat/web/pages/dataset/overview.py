"""View model of a dataset's first page: some of its samples, and its health."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.errors import DataError
from ziggurat.web.caches import BackgroundResult
from ziggurat.web.pages.dataset.check_findings import CheckFinding, Remedy, findings_of, remedies_of
from ziggurat.web.pages.dataset.explorer_view import Legend, TileView, legend_of_masks, tiles_of
from ziggurat.web.pages.dataset.samples import view_sample
from ziggurat.workspace.studio import Studio

__all__ = ["CHECKED_AT_ONCE", "Health", "HealthItem", "ShownSamples", "health_of", "shown_samples"]

CHECKED_AT_ONCE: Final = 200_000
"""Samples up to which the quick check of a dataset begins by itself when its first page is opened."""

_TILES: Final = 24
_WIDE_TILES: Final = 18
_ROWS: Final = 10
"""Samples on the page: all tiles of a page are one image, three rows of 8 or 6."""

_DRAWN: Final = 300
"""Samples among which those of different classes are looked for."""

_SHAPES, _REGIONS = 150, 20
_WIDE_KINDS: Final = ("detection", "segmentation", "image-to-image", "image-pairs")
_WEIGHED_KINDS: Final = ("image-classification", "text-classification", "table")
_LEGEND: Final = 12


@dataclass(frozen=True, kw_only=True)
class ShownSamples:
    """Some samples of a dataset, drawn at random.

    Args:
        tiles: the samples.
        schema: of the dataset.
        is_wide: whether images are shown whole, with boxes or masks.
        by_class: whether samples of a class stand together.
        seed: by which they were drawn; the next one shows others.
        boxes: name and color number of the classes of boxes.
        masks: classes of masks.
    """

    tiles: Sequence[TileView]
    schema: Any
    is_wide: bool
    by_class: bool
    seed: int
    boxes: Sequence[tuple[str, int]] = ()
    masks: Sequence[Legend] = ()

    @property
    def has_pictures(self) -> bool:
        """Whether samples are images."""
        return any(each.sample.pictures for each in self.tiles)


@dataclass(frozen=True, kw_only=True)
class HealthItem:
    """One line of the health of a dataset.

    Args:
        kind: of the finding.
        level: ``error``, ``warning`` or ``unknown``.
        title: of it.
        text: one or two sentences.
        count: how many samples, boxes or classes it is about; None for none.
        remedies: buttons, the best first.
    """

    kind: str
    level: str
    title: str
    text: str
    count: int | None = None
    remedies: Sequence[Remedy] = ()


@dataclass(frozen=True, kw_only=True)
class Health:
    """Health of a dataset, by the same check that the page Checks shows.

    Args:
        is_waiting: whether the check is under way.
        was_asked: whether it was begun.
        error: why it failed, as JSON values; None if it did not.
        items: errors and warnings, the severe ones first, then what is unknown.
        notes: how many notes the check has besides.
    """

    is_waiting: bool
    was_asked: bool
    error: Mapping[str, Any] | None = None
    items: Sequence[HealthItem] = ()
    notes: int = 0

    @property
    def is_done(self) -> bool:
        """Whether the check is done."""
        return self.was_asked and not self.is_waiting and self.error is None

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Level → lines of that level, without zeros."""
        levels = [each.level for each in self.items]
        return [(level, levels.count(level)) for level in ("error", "warning") if level in levels]


def shown_samples(studio: Studio, job_id: str, *, seed: int, by_class: bool) -> ShownSamples:
    """Return some samples of a dataset, of as many classes as there is room for.

    Args:
        studio: where it is.
        job_id: of the dataset.
        seed: from 0; the same one shows the same samples.
        by_class: whether samples of a class stand together.
    """
    with studio.datasets.opened(job_id) as dataset:
        schema = dataset.schema
        is_wide = schema.kind in _WIDE_KINDS
        most = (_WIDE_TILES if is_wide else _TILES) if dataset.manifest.image is not None else _ROWS
        has_classes = bool(schema.class_names) and not is_wide
        entries = _mixed(_drawn(dataset, f"{job_id} {seed}", _DRAWN if has_classes else most), most)
        if by_class:
            entries.sort(key=lambda entry: -1 if entry.class_number is None else entry.class_number)
        views = [view_sample(dataset, each, most_shapes=_SHAPES, most_regions=_REGIONS) for each in entries]
        names = schema.class_names[:_LEGEND]
        return ShownSamples(
            tiles=tiles_of(studio, dataset, views),
            schema=schema,
            is_wide=is_wide,
            by_class=by_class,
            seed=seed,
            boxes=list(zip(names, range(len(names)), strict=True)) if schema.kind == "detection" else (),
            masks=legend_of_masks(schema)[:_LEGEND],
        )


def _drawn(dataset: Any, seed: str, most: int) -> list[Any]:
    """Return so many samples at most, drawn at random."""
    total = dataset.catalogue.count()
    try:
        return dataset.catalogue.entries(random.Random(seed).sample(range(total), min(total, most)))
    except DataError:  # what was left out has left gaps among the numbers
        numbers = dataset.catalogue.column("number").tolist()
        return dataset.catalogue.entries(random.Random(seed).sample(numbers, min(len(numbers), most)))


def _mixed(entries: Sequence[Any], most: int) -> list[Any]:
    """Return so many samples at most, one of each class in turn."""
    of_class: dict[Any, list[Any]] = {}
    for entry in entries:
        of_class.setdefault(entry.class_number, []).append(entry)
    turns: list[Any] = []
    while len(turns) < most and any(of_class.values()):
        turns += [group.pop() for group in of_class.values() if group]
    return turns[:most]


def health_of(job_id: str, described: Mapping[str, Any], found: BackgroundResult | None, *, trains: bool) -> Health:
    """Return the health of a dataset.

    Args:
        job_id: of the dataset.
        described: as the studio's ``datasets.describe`` returns it.
        found: the quick check; None if it was not begun.
        trains: whether networks are trained on it.
    """
    unknown = [] if not trains or "test" in described["splits"] else [_no_test_split(job_id)]
    if found is None:
        return Health(is_waiting=False, was_asked=False, items=[*_told(job_id, described), *unknown])
    if not found.is_ready:
        return Health(is_waiting=True, was_asked=True, items=[*_told(job_id, described), *unknown])
    if found.error is not None:
        return Health(is_waiting=False, was_asked=True, error=found.error.as_dict())
    findings = findings_of(found.value)
    can_weigh = trains and described["kind"] in _WEIGHED_KINDS
    items = [_item(each, job_id, can_weigh=can_weigh) for each in findings if each.finding.severity != "note"]
    return Health(
        is_waiting=False,
        was_asked=True,
        items=[*_told(job_id, described, only_lost=True), *items, *unknown],
        notes=sum(each.finding.severity == "note" for each in findings),
    )


def _item(shown: CheckFinding, job_id: str, *, can_weigh: bool) -> HealthItem:
    finding = shown.finding
    return HealthItem(
        kind=finding.kind,
        level=finding.severity,
        title=shown.title,
        text=finding.text,
        count=finding.count,
        remedies=remedies_of(shown, job_id, can_weigh=can_weigh),
    )


def _told(job_id: str, described: Mapping[str, Any], *, only_lost: bool = False) -> list[HealthItem]:
    """Return what was said when the dataset was made.

    Args:
        job_id: of the dataset.
        described: as the studio's ``datasets.describe`` returns it.
        only_lost: whether only what the source lost is meant: all else is said again by a check that is done.
    """
    lost = {each["text"] for each in described["losses"]}
    check = Remedy(title="Problems", path=f"/datasets/{job_id}/problems", query={})
    return [
        HealthItem(
            kind="told", level="warning", title="Left out" if each in lost else "Warning", text=each, remedies=[check]
        )
        for each in described["warnings"]
        if each in lost or not only_lost
    ]


def _no_test_split(job_id: str) -> HealthItem:
    again = Remedy(title="Set some aside", path="/datasets/new", query={"clone": job_id}, changes=True)
    return HealthItem(
        kind="no-test-split",
        level="unknown",
        title="No test split",
        text="Without one, the last evaluation has no unseen samples.",
        remedies=[again],
    )
