"""Options of a layer as fields of a message, as the shared conversion reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ziggurat.compat.caffe.text import Entry, Message, Scalar

__all__ = ["message"]


def message(line: int, options: Sequence[tuple[str, Any]]) -> Message:
    """Return options as fields: a list of pairs is a message, another list a repeated field."""
    entries = []
    for name, value in options:
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            entries.append(Entry(name, message(line, value), line))
        elif isinstance(value, list | tuple):
            entries += [Entry(name, _scalar(each), line) for each in value]
        else:
            entries.append(Entry(name, _scalar(value), line))
    return Message(line, entries, "the module")


def _scalar(value: Any) -> Scalar:
    if isinstance(value, bool):
        return Scalar("true" if value else "false")
    return Scalar(repr(value) if isinstance(value, int | float) else str(value), isinstance(value, str))
