"""What was given to a network where it is no image: the text or the row of a sample, for its tile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.errors import ZigguratError
from ziggurat.workspace.studio import Studio

__all__ = ["IMAGES", "SampleContent", "contents_of", "held_by"]

IMAGES: Final = "image"
"""Name of the first part of a sample that is an image."""
_TEXT_CHARACTERS: Final = 400


@dataclass(frozen=True, kw_only=True)
class SampleContent:
    """What was given to the network, where it is no image.

    Args:
        text: of a text, cut where it is long.
        cells: of a row, column and value; the target is left out.
    """

    text: str = ""
    cells: Sequence[tuple[str, Any]] = ()


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
            return {row: _content(part, kind, schema) for row, part in parts.items()}
    except ZigguratError:  # the results are shown without
        return {}


def _content(part: Any, kind: str, schema: Any) -> SampleContent:
    text = part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part)
    if kind == "text":
        return SampleContent(text=text if len(text) <= _TEXT_CHARACTERS else f"{text[:_TEXT_CHARACTERS]}…")
    return SampleContent(cells=_cells(json.loads(text), schema)) if kind == "row" else SampleContent()


def _cells(row: Any, schema: Any) -> list[tuple[str, Any]]:
    if len(row) != len(schema.columns):
        return []
    return [
        (column.name, _cell(value))
        for column, value in zip(schema.columns, row, strict=True)
        if column.name != schema.target and column.type != "identifier"  # it is the name of the sample
    ]


def _cell(value: Any) -> Any:
    if value is None:
        return "–"
    return ("yes" if value else "no") if isinstance(value, bool) else value
