"""What was given to a network where it is no image: the text or the row of a sample, for its tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.entities.sample_content import SampleContent, sample_content
from ziggurat.errors import ZigguratError
from ziggurat.workspace.studio import Studio

__all__ = ["IMAGES", "SampleContent", "contents_of", "held_by"]

IMAGES: Final = "image"
"""Name of the first part of a sample that is an image."""


def held_by(studio: Studio, dataset_id: str) -> str:
    """Return what the samples of a dataset are: ``image``, ``row`` or ``text``; empty where it cannot be read."""
    try:
        with studio.datasets.opened(dataset_id) as dataset:
            return dataset.schema.parts[0]
    except ZigguratError:  # it was deleted or damaged meanwhile
        return ""


def contents_of(studio: Studio, dataset_id: str, found: Sequence[Mapping[str, Any]]) -> dict[int, SampleContent]:
    """Return row → what was given, of samples as ``Evaluations.samples`` gives them; none where they are images."""
    try:
        with studio.datasets.opened(dataset_id) as dataset:
            kind, schema = dataset.schema.parts[0], dataset.schema
            if kind == IMAGES:
                return {}
            parts = {each["row"]: dataset.sample(each["split"], each["row"]).part(0) for each in found}
            return {row: sample_content(part, schema) for row, part in parts.items()}
    except ZigguratError:  # the results are shown without
        return {}
