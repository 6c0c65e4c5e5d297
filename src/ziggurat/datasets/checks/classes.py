"""Checks of classes (too small, imbalanced, missing in a split, unknown) and of missing labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ziggurat.datasets.catalogue import Entry
from ziggurat.datasets.checks.facts import Facts
from ziggurat.datasets.checks.report import Finding

__all__ = ["LabelLook", "check_classes"]

_WITH_LABELS = ("image-classification", "text-classification", "image-regression", "image-pairs", "table")
_BY_CLASS = ("image-classification", "text-classification", "detection")
_SHOWN = 10


class LabelLook:
    """Collects, entry by entry, the samples without a label."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._needs_label = facts.dataset.kind in _WITH_LABELS
        self._empty: list[int] = []

    def look(self, place: int, entry: Entry) -> None:
        """Look at one entry."""
        if self._needs_label and (entry.label is None or entry.label == []):
            self._empty.append(place)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found."""
        if self._empty:
            yield self._facts.finding(
                "empty-label",
                "error",
                np.array(self._empty),
                f"{len(self._empty)} samples have no label.",
                "Label them, or leave them out.",
            )


def check_classes(facts: Facts) -> Iterator[Finding]:
    """Yield findings on classes; of a detection set, by objects."""
    dataset = facts.dataset
    if dataset.kind not in _BY_CLASS:
        return
    counts = {split: dataset.catalogue.class_counts(split) for split in dataset.splits}
    names = dataset.schema.class_names
    known = range(len(names)) if names else sorted({c for each in counts.values() for c in each if c >= 0})
    yield from _unknown(facts)
    train = counts.get("train")
    if train is None or not known:
        return
    yield from _missing(facts, counts, list(known))
    what = "objects" if dataset.kind == "detection" else "samples"
    limit = facts.limits.min_per_class
    small = [number for number in known if 0 < train.get(number, 0) < limit]
    if small:
        few = _names(names, small, train)
        yield Finding(
            kind="small-class",
            severity="warning",
            count=len(small),
            text=f"{len(small)} classes have fewer than {limit} {what} in training: {few}.",
            advice="Add some, merge the classes with others, or drop them.",
        )
    yield from _imbalance(facts, {number: train[number] for number in known if train.get(number, 0)}, what)


def _unknown(facts: Facts) -> Iterator[Finding]:
    count = len(facts.dataset.schema.class_names)
    places = np.flatnonzero(facts.classes >= count) if count else np.zeros(0, np.int64)
    if len(places):
        yield facts.finding(
            "unknown-class",
            "error",
            places,
            f"{len(places)} samples have a class number beyond the {count} classes that have names.",
            "Name the classes, or leave the samples out.",
            notes={place: f"class {facts.classes[place]}" for place in places[: facts.limits.most_cases].tolist()},
        )


def _missing(facts: Facts, counts: dict[str, dict[int, int]], known: list[int]) -> Iterator[Finding]:
    names = facts.dataset.schema.class_names
    train = counts["train"]
    empty = [number for number in known if not any(each.get(number, 0) for each in counts.values())]
    if empty:
        yield Finding(
            kind="empty-class",
            severity="warning",
            count=len(empty),
            text=f"{len(empty)} classes have nothing in any split: {_names(names, empty)}.",
            advice="A network gets an output for each of them; drop the classes that stay empty.",
        )
    for split in facts.dataset.splits:
        if split == "train":
            continue
        untrained = [number for number in known if counts[split].get(number, 0) and not train.get(number, 0)]
        unmeasured = [number for number in known if train.get(number, 0) and not counts[split].get(number, 0)]
        if untrained:
            own = np.isin(facts.classes, untrained) & (facts.splits == facts.dataset.splits.index(split))
            finding = facts.finding(
                f"class-not-in-training-but-{split}",
                "error",
                np.flatnonzero(own),
                f"{len(untrained)} classes of {split} are not in training: {_names(names, untrained)}.",
                "Split again by class, or leave them out: nobody can learn them.",
            )
            yield Finding(**{**vars(finding), "count": len(untrained)})
        if unmeasured:
            yield Finding(
                kind=f"class-missing-in-{split}",
                severity="warning",
                count=len(unmeasured),
                text=f"{len(unmeasured)} classes of training are not in {split}: {_names(names, unmeasured)}.",
                advice=f"Nothing will be measured of them; split again by class, or add samples to {split}.",
            )


def _imbalance(facts: Facts, counts: dict[int, int], what: str) -> Iterator[Finding]:
    if len(counts) < 2:
        return
    most, least = max(counts, key=lambda number: counts[number]), min(counts, key=lambda number: counts[number])
    ratio = counts[most] / counts[least]
    if ratio > facts.limits.max_imbalance:
        names = facts.dataset.schema.class_names
        yield Finding(
            kind="imbalance",
            severity="warning",
            count=len(counts),
            text=f"The largest class has {ratio:.1f} times the {what} of the smallest in training: "
            f"{_names(names, [most, least], counts)}.",
            advice="Weigh the classes in training, add to the small ones, and do not judge by accuracy alone.",
        )


def _names(names: Sequence[str], numbers: Sequence[int], counts: dict[int, int] | None = None) -> str:
    shown = [names[number] if number < len(names) else str(number) for number in numbers[:_SHOWN]]
    if counts is not None:
        shown = [f"{name} ({counts[number]})" for name, number in zip(shown, numbers, strict=False)]
    return ", ".join(shown) + (f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else "")
