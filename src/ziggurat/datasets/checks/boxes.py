"""Checks of boxes: zero-size, outside the image, tiny, duplicate, unknown class; and of images without boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.catalogue import Entry
from ziggurat.datasets.checks.facts import Facts
from ziggurat.datasets.checks.report import Finding, Severity
from ziggurat.errors import DatapointError

__all__ = ["BoxLook", "check_masks"]


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
            yield facts.finding(kind, severity, found, f"{len(found)} masks{of} {text}", advice, notes=notes[kind])


_MASKS_KINDS: Final[dict[str, tuple[Severity, str, str]]] = {
    "unknown-mask-value": (
        "error",
        "have values that no class has.",
        "Name the classes, say which value is to be ignored, or leave the samples out.",
    ),
    "mask-size": ("error", "have another size than their image.", "Leave them out, or make them anew."),
    "empty-mask": ("note", "have nothing but what is to be ignored.", "They teach nothing; leave them out."),
}


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


_SLACK_PX: Final = 1.0  # formats count the last pixel in or out
_IGNORED: Final = -1
_KINDS: Final[dict[str, tuple[Severity, str, str]]] = {
    "zero-size-box": (
        "error",
        "{boxes} boxes in {samples} samples have no width or no height.",
        "Draw them again, or leave the samples out: a loss divides by their size.",
    ),
    "unknown-box-class": (
        "error",
        "{boxes} boxes in {samples} samples have a class number that no class has.",
        "Name the classes, or leave the samples out.",
    ),
    "box-outside": (
        "warning",
        "{boxes} boxes in {samples} samples reach outside of their image.",
        "Look whether boxes and images belong together; a rotated image is a usual cause.",
    ),
    "duplicate-box": (
        "warning",
        "{boxes} boxes in {samples} samples are there twice, with the same class.",
        "Delete one of each.",
    ),
    "tiny-box": (
        "note",
        "{boxes} boxes in {samples} samples are under {tiny:g} px wide or high.",
        "A network hardly finds them; store larger images, or mark them as to be ignored.",
    ),
}


class BoxLook:
    """Collects, entry by entry, what is wrong with boxes."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        image = facts.dataset.manifest.image
        self._stored = (image.width_px, image.height_px) if image is not None else (None, None)
        self._is_detection = facts.dataset.kind == "detection"
        self._classes = len(facts.dataset.schema.class_names)
        self._boxes = dict.fromkeys(_KINDS, 0)
        self._notes: dict[str, dict[int, str]] = {kind: {} for kind in _KINDS}
        self._places: dict[str, list[int]] = {kind: [] for kind in _KINDS}
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
        for kind, (severity, text, advice) in _KINDS.items():
            places = self._places[kind]
            if not places:
                continue
            said = text.format(boxes=self._boxes[kind], samples=len(places), tiny=self._facts.limits.tiny_box_px)
            finding = self._facts.finding(kind, severity, np.array(places), said, advice, notes=self._notes[kind])
            yield Finding(**{**vars(finding), "count": self._boxes[kind]})
        if self._empty:
            yield self._facts.finding(
                "no-objects",
                "note",
                np.array(self._empty),
                f"{len(self._empty)} samples have no object.",
                "Fine where nothing is to be seen in them; else label them or leave them out.",
            )
