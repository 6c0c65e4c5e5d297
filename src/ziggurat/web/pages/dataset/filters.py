"""Filter of the dataset explorer: what was typed or chosen, and the facets that offer more of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ziggurat.formatting import as_split, plural
from ziggurat.web.pages.dataset.samples import class_title

__all__ = ["ORDERS", "PAGE_SIZES", "DatasetFilter", "Facet", "FacetRow", "facets_of", "filter_of"]

_TEXTS: Final = ("split", "class_name", "text", "problem", "group", "similar", "area")
_NUMBERS: Final = ("min_width_px", "max_width_px", "min_height_px", "max_height_px")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "prediction": ("right", "wrong", "doubtful"),
    "found": ("label-errors", "near-duplicates", "right", "wrong"),
}
_OF_MAPS: Final = ("similar", "area", "found")
FILTERS: Final = (*_TEXTS, *_NUMBERS, *_CHOICES)
"""Names of the fields that choose samples."""

ORDERS: Final[Mapping[str, str]] = {
    "row": "dataset order",
    "name": "path",
    "largest": "largest file",
    "smallest": "smallest file",
    "doubtful": "most likely label error",
    "ranked": "best match",
}
"""Order of the samples → its name for people; ``doubtful`` needs predictions, ``ranked`` a filter that ranks."""

PAGE_SIZES: Final = (24, 48, 96, 192)
"""Samples on a page, for people to choose from."""

MOST_CLASSES: Final = 400
"""Up to so many classes are listed; beyond, a field to type into."""

_FIRST_CLASSES: Final = 20
"""Classes listed at first, the largest ones: a browser takes twice as long for hundreds of links."""

_LARGEST: Final = 2**31
_LONGEST_ID: Final = 200


@dataclass(frozen=True, kw_only=True)
class DatasetFilter:
    """Which samples of a dataset, in which order.

    Args:
        typed: field → what was typed, of those that were filled in.
        offset: samples before the page.
        limit: samples on it.
        order: a name in ``ORDERS``.
        problems: field → what is wrong with it.
        has_all_classes: whether all classes are offered, not only the largest.
        view: ``map`` if the samples are shown on a map beside the list; empty for the list alone.
        map_id: of the map whose features count; empty for the newest.
    """

    typed: Mapping[str, str] = field(default_factory=dict)
    offset: int = 0
    limit: int = PAGE_SIZES[1]
    order: str = "row"
    problems: Mapping[str, str] = field(default_factory=dict)
    has_all_classes: bool = False
    view: str = ""
    map_id: str = ""

    @property
    def chosen(self) -> dict[str, Any]:
        """What the studio's ``datasets.explore`` takes; fields with a problem choose nothing."""
        return {
            name: int(text) if name in _NUMBERS else text
            for name, text in self.typed.items()
            if name not in self.problems and name not in _CHOICES and name not in _OF_MAPS
        }

    @property
    def prediction(self) -> str:
        """``right``, ``wrong`` or ``doubtful``, of what a model predicted; empty for all."""
        return self.typed.get("prediction", "")

    @property
    def needs_predictions(self) -> bool:
        """Whether it depends on what a model predicted."""
        return bool(self.prediction) or self.order == "doubtful"

    @property
    def needs_map(self) -> bool:
        """Whether it depends on a map of the dataset."""
        return any(name in self.typed for name in _OF_MAPS)

    @property
    def in_view(self) -> dict[str, Any]:
        """What stands in an address for view and map, without the filter."""
        return {name: value for name, value in (("view", self.view), ("map", self.map_id)) if value}

    @property
    def query(self) -> dict[str, Any]:
        """What stands in an address, without the place in the list."""
        found: dict[str, Any] = dict(self.typed)
        if self.order != _usual_order(self.typed):
            found["order"] = self.order
        if self.limit != PAGE_SIZES[1]:
            found["limit"] = self.limit
        if self.has_all_classes:
            found["classes"] = "all"
        return {**found, **self.in_view}

    @property
    def within(self) -> dict[str, Any]:
        """What stands in the address of a sample, whose own split is called ``split``."""
        found = self.query
        split = found.pop("split", None)
        return found if split is None else {**found, "in_split": split}

    def without(self, *names: str) -> DatasetFilter:
        """Return the filter from its first page on, with some fields left empty."""
        typed = {name: text for name, text in self.typed.items() if name not in names}
        return replace(self, typed=typed, offset=0, order=_possible_order(self.order, typed))

    def value(self, name: str) -> str:
        """Return what was typed into a field."""
        return self.typed.get(name, "")


def filter_of(values: Mapping[str, Any]) -> DatasetFilter:
    """Return the filter of an address, or of a form; what cannot be read is said and otherwise left out."""
    typed = {name: str(values.get(name) or "").strip() for name in FILTERS}
    typed |= {name: typed[name] if typed[name] in known else "" for name, known in _CHOICES.items()}
    problems = {
        name: "A whole number of pixels, at least 1."
        for name in _NUMBERS
        if typed[name]
        and not (typed[name].isascii() and typed[name].isdigit() and 0 < int(typed[name][:12]) < _LARGEST)
    }
    limit = _whole(values.get("limit"), PAGE_SIZES[1])
    typed = {name: text for name, text in typed.items() if text}
    order = str(values.get("order") or "")
    return DatasetFilter(
        typed=typed,
        offset=_whole(values.get("offset"), 0),
        limit=min(max(limit, 1), PAGE_SIZES[-1]),
        order=_possible_order(order, typed),
        problems=problems,
        has_all_classes=values.get("classes") == "all",
        view="map" if values.get("view") == "map" else "",
        map_id=str(values.get("map") or "")[:_LONGEST_ID],
    )


def _possible_order(order: str, typed: Mapping[str, str]) -> str:
    """Return the order that was asked for, or the usual one if it is none of this filter."""
    is_possible = order in ORDERS and (order != "ranked" or any(name in typed for name in _OF_MAPS))
    return order if is_possible else _usual_order(typed)


def _usual_order(typed: Mapping[str, str]) -> str:
    if any(name in typed for name in _OF_MAPS):
        return "ranked"
    return "doubtful" if "prediction" in typed else "row"


def _whole(text: Any, otherwise: int) -> int:
    word = str(text or "")
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else otherwise


@dataclass(frozen=True, kw_only=True)
class FacetRow:
    """One value that samples can be chosen by.

    Args:
        value: as it stands in the address.
        text: its name for people.
        count: samples, or objects, that have it.
        is_on: whether it is chosen.
        within: of those that the other filters leave; None where there are none.
    """

    value: str
    text: str
    count: int
    is_on: bool
    within: int | None = None


@dataclass(frozen=True, kw_only=True)
class Facet:
    """Values of one field, with counts.

    Args:
        title: of the group.
        name: of the field.
        rows: its values.
        most: the count of a full bar.
        left: values that are not shown.
    """

    title: str
    name: str
    rows: Sequence[FacetRow]
    most: int
    left: int = 0


def facets_of(
    manifest: Any,
    wanted: DatasetFilter,
    problems: Mapping[str, tuple[str, int]],
    predicted: Any,
    mapped: Any = None,
    *,
    masks: Mapping[int, int] | None = None,
    within: Mapping[str, Mapping[str, int]] | None = None,
) -> list[Facet]:
    """Return what a page offers to choose by.

    Args:
        manifest: of the dataset; it holds the counts, so that no sample is looked at.
        wanted: what is chosen now.
        problems: kind → title, and samples that have it.
        predicted: what a model predicted, as ``predicted_of`` returns it; None for nothing.
        mapped: map of the dataset, as ``studio.maps.find`` returns it; None for none.
        masks: class number → samples whose masks have it; None where that is unknown, or there are no masks.
        within: field → value → samples, or objects, of those that the other filters leave.
    """
    found = [*_facets(manifest, wanted, problems, predicted, masks), *(_map_facets(wanted, mapped) if mapped else ())]
    return [_narrowed(facet, (within or {}).get(facet.name)) for facet in found if facet.rows]


def _narrowed(facet: Facet, within: Mapping[str, int] | None) -> Facet:
    if within is None:
        return facet
    return replace(facet, rows=[replace(row, within=within.get(row.value, 0)) for row in facet.rows])


def _map_facets(wanted: DatasetFilter, mapped: Any) -> Iterator[Facet]:
    """Yield what follows from the features of a map; the titles say which features."""
    labels, near = mapped.summary["labels"], mapped.summary["near"]["count"]
    rows = [("near-duplicates", "near duplicates", near)]
    if labels:
        rows.insert(0, ("label-errors", "label-error candidates", labels["candidates"]))
    yield _facet(f"By {mapped.source}", "found", rows, wanted, max(count for *_, count in rows))
    if labels:
        wrong = labels["labeled"] - labels["right"]
        outcomes = [("right", "correct", labels["right"]), ("wrong", "wrong", wrong)]
        yield _facet(
            f"Cross-validated, {plural(labels['folds'], 'fold')}", "found", outcomes, wanted, labels["labeled"]
        )


def _facets(
    manifest: Any,
    wanted: DatasetFilter,
    problems: Mapping[str, tuple[str, int]],
    predicted: Any,
    masks: Mapping[int, int] | None,
) -> Iterator[Facet]:
    splits, names = manifest.splits, manifest.schema.class_names
    total = sum(note.count for note in splits.values())
    chosen = wanted.value("split")
    yield _facet("Split", "split", [(name, as_split(name), note.count) for name, note in splits.items()], wanted, total)
    if masks is not None:
        found = [
            (mask_class_value(number, names), class_title(number, names), count) for number, count in masks.items()
        ]
        facet = _facet("Class in the mask", "class_name", found, wanted, total)
        yield facet if wanted.has_all_classes else _largest_of(facet)
    elif len(names) <= MOST_CLASSES:
        padded = {name: (*note.class_counts, *[0] * len(names)) for name, note in splits.items()}
        counts = [sum(each[at] for name, each in padded.items() if chosen in ("", name)) for at in range(len(names))]
        # A class without samples in the whole dataset, such as the background of COCO, is nothing to choose.
        used = [any(each[at] for each in padded.values()) for at in range(len(names))]
        found = [(name, name, count) for name, count, is_used in zip(names, counts, used, strict=True) if is_used]
        facet = _facet("Class", "class_name", found, wanted, max(counts, default=0))
        yield facet if wanted.has_all_classes else _largest_of(facet)
    found = [(kind, title, count) for kind, (title, count) in problems.items()]
    yield _facet("Quality", "problem", found, wanted, max((count for *_, count in found), default=0))
    if predicted is not None:
        named = {"right": "correct", "wrong": "wrong", "doubtful": "likely label errors"}
        found = [(value, named[value], count) for value, count in predicted.counts.items()]
        yield _facet(f"Prediction of {predicted.model_name}", "prediction", found, wanted, predicted.total)


def mask_class_value(number: int, names: Sequence[str]) -> str:
    """Return a class of masks as it stands in an address: its name, or its number where it has none."""
    return names[number] if number < len(names) else str(number)


def _largest_of(facet: Facet) -> Facet:
    """Return a facet with its largest values and those that are chosen, where there are many."""
    if len(facet.rows) <= _FIRST_CLASSES:
        return facet
    falling = sorted(facet.rows, key=lambda row: (not row.is_on, -row.count))
    return replace(facet, rows=falling[:_FIRST_CLASSES], left=len(falling) - _FIRST_CLASSES)


def _facet(title: str, name: str, rows: Sequence[tuple[str, str, int]], wanted: DatasetFilter, most: int) -> Facet:
    chosen = wanted.value(name)
    shown = [FacetRow(value=value, text=text, count=count, is_on=value == chosen) for value, text, count in rows]
    return Facet(title=title, name=name, rows=shown, most=max(most, 1))
