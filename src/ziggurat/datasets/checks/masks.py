"""Checks of masks: values without a class, sizes that differ from the image, and masks of ignored pixels only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.checks.facts import Facts
from ziggurat.datasets.checks.report import Finding, Severity
from ziggurat.errors import DatapointError

__all__ = ["check_masks"]


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
    for kind, (severity, text, advice) in _KINDS.items():
        found = np.array(list(notes[kind]), np.int64)
        if len(found):
            yield facts.finding(kind, severity, found, f"{len(found)} masks{of} {text}", advice, notes=notes[kind])


_KINDS: Final[dict[str, tuple[Severity, str, str]]] = {
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
