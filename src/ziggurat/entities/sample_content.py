"""What was given to a network where it is no image: the text or the row of a sample."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["SampleContent", "content_from_json", "sample_content"]

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

    def as_json(self) -> dict[str, Any]:
        """Return JSON values: ``text`` or ``cells``."""
        return {"text": self.text} if self.text else {"cells": [list(each) for each in self.cells]}


def content_from_json(content: Any) -> SampleContent | None:
    """Return what ``SampleContent.as_json`` returned; None for anything else."""
    if not isinstance(content, Mapping):
        return None
    text, cells = content.get("text"), content.get("cells")
    if isinstance(text, str) and text:
        return SampleContent(text=text)
    if isinstance(cells, list) and all(isinstance(each, list) and len(each) == 2 for each in cells):
        return SampleContent(cells=[(str(name), value) for name, value in cells])
    return None


def sample_content(part: Any, schema: Any) -> SampleContent:
    """Return the content of the first part of a sample; empty where it is an image.

    Args:
        part: a text, as text or bytes; or a row, as JSON, a list in the order of the columns, or name → value.
        schema: of the dataset.
    """
    kind = schema.parts[0]
    if kind not in ("text", "row"):
        return SampleContent()
    text = part.decode("utf-8", "replace") if isinstance(part, bytes) else part
    if kind == "text":
        return SampleContent(text=text if len(text) <= _TEXT_CHARACTERS else f"{text[:_TEXT_CHARACTERS]}…")
    row = json.loads(text) if isinstance(text, str) else text
    values = [row.get(column.name) for column in schema.columns] if isinstance(row, Mapping) else row
    return SampleContent(cells=_cells(values, schema))


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
