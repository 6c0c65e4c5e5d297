"""Checks of labels: classes, boxes, masks, and probable label errors by the predictions of a trained network."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.catalog import Entry
from ziggurat.datasets.checks.report import Facts, Finding, Severity
from ziggurat.datasets.dataset import Dataset
from ziggurat.errors import DataError, DatapointError, MissingDependencyError
from ziggurat.formatting import plural

__all__ = ["BoxLook", "LabelLook", "Predictions", "check_classes", "check_labels", "check_masks", "read_predictions"]

_WITH_LABELS = ("image-classification", "text-classification", "image-regression", "image-pairs", "table")
_BY_CLASS = ("image-classification", "text-classification", "detection")
_SHOWN = 10
_PREDICTED_KINDS = ("image-classification", "text-classification")
_FORM = "Predictions are a probability for each class, in the order of the classes, and the `key` or `split` and `row`."

_MASKS_KINDS: Final[dict[str, tuple[Severity, str, str]]] = {
    "unknown-mask-value": (
        "error",
        "{have} values that no class has.",
        "Name the classes, say which value is to be ignored, or leave the samples out.",
    ),
    "mask-size": ("error", "{have} another size than the image.", "Leave them out, or make them anew."),
    "empty-mask": ("note", "{have} nothing but what is to be ignored.", "They teach nothing; leave them out."),
}

_SLACK_PX: Final = 1.0  # formats count the last pixel in or out
_IGNORED: Final = -1
_BOX_KINDS: Final[dict[str, tuple[Severity, str, str]]] = {
    "zero-size-box": (
        "error",
        "{boxes} in {samples} {have} no width or no height.",
        "Draw them again, or leave the samples out: a loss divides by their size.",
    ),
    "unknown-box-class": (
        "error",
        "{boxes} in {samples} {have} a class number that no class has.",
        "Name the classes, or leave the samples out.",
    ),
    "box-outside": (
        "warning",
        "{boxes} in {samples} {reach} outside of the image.",
        "Look whether boxes and images belong together; a rotated image is a usual cause.",
    ),
    "duplicate-box": (
        "warning",
        "{boxes} in {samples} {are} there twice, with the same class.",
        "Delete one of each.",
    ),
    "tiny-box": (
        "note",
        "{boxes} in {samples} {are} under {tiny:g} px wide or high.",
        "A network hardly finds them; store larger images, or mark them as to be ignored.",
    ),
}


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
                f"{plural(len(self._empty), 'sample has', 'samples have')} no label.",
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
            text=f"{plural(len(small), 'class has', 'classes have')} fewer than {limit} {what} in training: {few}.",
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
            f"{plural(len(places), 'sample has', 'samples have')} a class number beyond the {count} classes that "
            "have names.",
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
            text=f"{plural(len(empty), 'class has', 'classes have')} nothing in any split: {_names(names, empty)}.",
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
                f"{plural(len(untrained), f'class of {split} is', f'classes of {split} are')} not in training: "
                f"{_names(names, untrained)}.",
                "Split again by class, or exclude them: they cannot be learned.",
            )
            yield Finding(**{**vars(finding), "count": len(untrained)})
        if unmeasured:
            yield Finding(
                kind=f"class-missing-in-{split}",
                severity="warning",
                count=len(unmeasured),
                text=f"{plural(len(unmeasured), 'class of training is', 'classes of training are')} not in {split}: "
                f"{_names(names, unmeasured)}.",
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


def check_masks(facts: Facts, *, every: bool) -> Iterator[Finding]:
    """Yield findings on masks; of a segmentation set, some are read, or every one."""
    if facts.dataset.kind != "segmentation":
        return
    places = np.arange(len(facts.numbers))
    if not every and len(places) > facts.limits.most_masks:
        places = np.random.default_rng(facts.limits.seed).permutation(places)[: facts.limits.most_masks]
        places.sort()
    notes: dict[str, dict[int, str]] = {"unknown-mask-value": {}, "mask-size": {}, "empty-mask": {}}
    for place in places.tolist():
        for kind, note in _looked_at(facts, place):
            notes[kind][place] = note
    of = "" if len(places) == len(facts.numbers) else f" of {len(places)} that were looked at"
    for kind, (severity, text, advice) in _MASKS_KINDS.items():
        found = np.array(list(notes[kind]), np.int64)
        if len(found):
            said = f"{plural(len(found), 'mask')}{of} {text.format(**_verbs(len(found)))}"
            yield facts.finding(kind, severity, found, said, advice, notes=notes[kind])


def _verbs(count: int) -> dict[str, str]:
    """Return the verbs of a text as they follow a count."""
    return {many: one if count == 1 else many for many, one in (("have", "has"), ("reach", "reaches"), ("are", "is"))}


def _looked_at(facts: Facts, place: int) -> Iterator[tuple[str, str]]:
    """Yield kind and note of what is wrong with the mask of a sample; what cannot be read is not its matter."""
    schema = facts.dataset.schema
    try:
        sample = facts.dataset.sample(facts.split(place), int(facts.rows[place]))
        image, mask = sample.parts[0], sample.parts[1]
        pixels = decode_mask(mask, sample.key) if isinstance(mask, bytes) else mask
        shape = image.shape if isinstance(image, np.ndarray) else _shape(image, sample.key)
    except DatapointError:
        return
    if not isinstance(pixels, np.ndarray):
        return
    if pixels.shape[:2] != shape[:2]:
        yield "mask-size", f"{pixels.shape[1]} x {pixels.shape[0]} over {shape[1]} x {shape[0]}"
    values = np.unique(pixels)
    values = values[values != schema.ignore_class] if schema.ignore_class is not None else values
    if not len(values):
        yield "empty-mask", ""
    unknown = values[values >= len(schema.class_names)] if schema.class_names else values[:0]
    if len(unknown):
        yield "unknown-mask-value", f"values {', '.join(map(str, unknown[:10].tolist()))}"


def _shape(image: bytes | str, key: str) -> tuple[int, ...]:
    return decode_image(image, key=key).shape


class BoxLook:
    """Collects, entry by entry, what is wrong with boxes."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        image = facts.dataset.manifest.image
        self._stored = (image.width_px, image.height_px) if image is not None else (None, None)
        self._is_detection = facts.dataset.kind == "detection"
        self._classes = len(facts.dataset.schema.class_names)
        self._boxes = dict.fromkeys(_BOX_KINDS, 0)
        self._notes: dict[str, dict[int, str]] = {kind: {} for kind in _BOX_KINDS}
        self._places: dict[str, list[int]] = {kind: [] for kind in _BOX_KINDS}
        self._empty: list[int] = []

    def look(self, place: int, entry: Entry) -> None:
        """Look at one entry."""
        if not self._is_detection:
            return
        if not entry.label:
            self._empty.append(place)
            return
        # A resized image has the stored size, its boxes too; else the size is the one that it came with.
        width = self._stored[0] or entry.width_px
        height = self._stored[1] or entry.height_px
        seen = set()
        for each in entry.label:
            self._look_at(place, each, width, height)
            same = (each["class"], *each["box"])
            if same in seen:
                self._note("duplicate-box", place, each)
            seen.add(same)

    def _look_at(self, place: int, each: dict[str, Any], width: int | None, height: int | None) -> None:
        left, top, right, bottom = each["box"]
        number = each["class"]
        if number < _IGNORED or (self._classes and number >= self._classes):
            self._note("unknown-box-class", place, each)
        if number == _IGNORED:
            return
        if not (right > left and bottom > top):  # also where one is not a number
            self._note("zero-size-box", place, each)
        elif min(right - left, bottom - top) < self._facts.limits.tiny_box_px:
            self._note("tiny-box", place, each)
        beyond_x = width is not None and right > width + _SLACK_PX
        beyond_y = height is not None and bottom > height + _SLACK_PX
        if left < -_SLACK_PX or top < -_SLACK_PX or beyond_x or beyond_y:
            self._note("box-outside", place, each)

    def _note(self, kind: str, place: int, each: dict[str, Any]) -> None:
        self._boxes[kind] += 1
        places = self._places[kind]
        if not places or places[-1] != place:
            places.append(place)
            if len(places) <= self._facts.limits.most_cases:
                box = ", ".join(f"{value:g}" for value in each["box"])
                self._notes[kind][place] = f"class {each['class']}, box ({box})"

    def findings(self) -> Iterator[Finding]:
        """Yield what was found."""
        for kind, (severity, text, advice) in _BOX_KINDS.items():
            places = self._places[kind]
            if not places:
                continue
            said = text.format(
                boxes=plural(self._boxes[kind], "box", "boxes"),
                samples=plural(len(places), "sample"),
                tiny=self._facts.limits.tiny_box_px,
                **_verbs(self._boxes[kind]),
            )
            finding = self._facts.finding(kind, severity, np.array(places), said, advice, notes=self._notes[kind])
            yield Finding(**{**vars(finding), "count": self._boxes[kind]})
        if self._empty:
            yield self._facts.finding(
                "no-objects",
                "note",
                np.array(self._empty),
                f"{plural(len(self._empty), 'sample has', 'samples have')} no object.",
                "Fine where nothing is to be seen in them; else label them or leave them out.",
            )


def check_labels(facts: Facts, predictions: Predictions) -> Iterator[Finding]:
    """Yield a finding on samples whose label is probably wrong, the least likely labels first.

    Confident learning (Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels",
    2021), by the package ``cleanlab``.

    Raises:
        MissingDependencyError: where the package is not installed.
        DataError: where the kind of the dataset has no classes.
    """
    if facts.dataset.kind not in _PREDICTED_KINDS:
        raise DataError("Labels are checked of sets that have a class a sample.", received=f"kind {facts.dataset.kind}")
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        raise MissingDependencyError("cleanlab", extra="labels", purpose="finding wrong labels") from None
    places = _places(facts, predictions)
    labels = facts.classes[places]
    usable = np.flatnonzero((labels >= 0) & (labels < predictions.probabilities.shape[1]))
    if not len(usable):
        return
    probabilities = predictions.probabilities[usable]
    probabilities = probabilities / np.maximum(probabilities.sum(axis=1, keepdims=True), 1e-12)
    found = np.asarray(
        find_label_issues(
            labels=labels[usable], pred_probs=probabilities, return_indices_ranked_by="self_confidence", n_jobs=1
        )
    )
    if not len(found):
        return
    doubtful = places[usable][found]
    notes = {}
    for place, number in zip(doubtful.tolist(), found[: facts.limits.most_cases].tolist(), strict=False):
        best = int(probabilities[number].argmax())
        share = probabilities[number, best]
        notes[place] = (
            f"labeled {_name(facts, int(facts.classes[place]))}, predicted {_name(facts, best)} ({share:.2f})"
        )
    yield facts.finding(
        "label-error",
        "warning",
        doubtful,
        f"{len(doubtful)} of {len(usable)} samples with predictions {'has' if len(doubtful) == 1 else 'have'} a label "
        "that is probably wrong.",
        "Look at them and label them anew. Only predictions of a network that was not trained on a sample can tell.",
        notes=notes,
    )


def _places(facts: Facts, predictions: Predictions) -> np.ndarray:
    """Return the place of each predicted sample."""
    found = np.empty(len(predictions.rows), np.int64)
    splits = np.array([facts.dataset.splits.index(split) for split in predictions.splits], np.int64)
    for number in range(len(facts.dataset.splits)):
        own = np.flatnonzero(facts.splits == number)
        own = own[np.argsort(facts.rows[own])]
        asked = splits == number
        at = np.searchsorted(facts.rows[own], predictions.rows[asked])
        found[asked] = own[at]
    return found


def _name(facts: Facts, number: int) -> str:
    names = facts.dataset.schema.class_names
    return names[number] if number < len(names) else str(number)


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Class probabilities of samples.

    Args:
        splits: (N,) names of splits.
        rows: (N,) int64 rows in them.
        probabilities: (N, C) float, a column for each class.
    """

    splits: tuple[str, ...]
    rows: np.ndarray
    probabilities: np.ndarray


def read_predictions(path: str | os.PathLike[str], dataset: Dataset) -> Predictions:
    """Return the predictions in a file.

    A ``.npz`` file has the arrays ``probabilities`` (N, C) and ``keys`` (N,), or ``splits`` (N,) and ``rows`` (N,). Any
    other file is CSV with a heading: ``key``, or ``split`` and ``row``, then a column for each class.

    Args:
        path: the file.
        dataset: that the predictions are of.

    Raises:
        DataError: where the file is not so, or a sample is not in the dataset.
    """
    path = Path(path)
    try:
        if path.suffix == ".npz":
            names, probabilities = _read_npz(path)
        else:
            names, probabilities = _read_csv(path)
    except (OSError, ValueError, KeyError, csv.Error) as error:
        raise DataError(f"The predictions in `{path}` cannot be read: {str(error).rstrip('.')}. " + _FORM) from None
    classes = len(dataset.schema.class_names)
    if probabilities.ndim != 2 or len(probabilities) != len(names) or (classes and probabilities.shape[1] != classes):
        raise DataError(
            f"`{path}` has {plural(len(names), 'sample')} and {probabilities.shape} probabilities "
            f"for {classes} classes. {_FORM}"
        )
    if not np.isfinite(probabilities).all() or (probabilities < 0).any():
        raise DataError("Probabilities are from 0 to 1.", received=f"`{path}`, which has others")
    places = [_place(dataset, name, path) for name in names]
    return Predictions(
        splits=tuple(split for split, _ in places),
        rows=np.array([row for _, row in places], np.int64),
        probabilities=probabilities,
    )


def _read_npz(path: Path) -> tuple[list[tuple[str, ...]], np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        probabilities = np.asarray(arrays["probabilities"], np.float64)
        if "keys" in arrays:
            return [(str(key),) for key in arrays["keys"]], probabilities
        pairs = zip(arrays["splits"], arrays["rows"], strict=True)
        return [(str(split), str(int(row))) for split, row in pairs], probabilities


def _read_csv(path: Path) -> tuple[list[tuple[str, ...]], np.ndarray]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines: Iterator[list[str]] = csv.reader(file)
        heading = next(lines, [])
        width = 2 if heading[:2] == ["split", "row"] else 1
        if width == 1 and heading[:1] != ["key"]:
            raise ValueError(f"its heading starts with {heading[:2]}")
        names: list[tuple[str, ...]] = []
        values: list[np.ndarray] = []
        for line in lines:
            if line:
                names.append(tuple(line[:width]))
                values.append(np.array(line[width:], np.float64))
    return names, np.array(values).reshape(len(values), -1)


def _place(dataset: Dataset, name: tuple[str, ...], path: Path) -> tuple[str, int]:
    """Return split and row of a sample that is named by its key, or by both."""
    if len(name) == 1:
        entry = dataset.catalogue.find(name[0])
        if entry is not None and entry.row is not None:
            return entry.split, entry.row
    elif name[0] in dataset.splits and name[1].isdecimal() and int(name[1]) < dataset.size(name[0]):
        return name[0], int(name[1])
    raise DataError("Predictions are of samples of the dataset.", received=f"`{' '.join(name)}` in `{path}`")
