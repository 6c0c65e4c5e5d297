"""Output of commands: text for people, or JSON on standard output for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

__all__ = ["Output", "table"]

_COLORS: Final = {
    **dict.fromkeys(("done", "ok", "valid", "alive"), "32"),
    **dict.fromkeys(("running", "queued"), "36"),
    **dict.fromkeys(("stopping", "stopped", "note", "warning", "hung", "silent"), "33"),
    **dict.fromkeys(("failed", "problem", "error", "lost"), "31"),
}


class Output:
    """Where a command writes.

    Args:
        stream: standard output.
        notes: standard error: sentences for the person who waits.
        as_json: whether standard output gets JSON alone.
        color: whether words on standard output are colored.
    """

    def __init__(self, stream: TextIO, notes: TextIO, *, as_json: bool, color: bool) -> None:
        self._stream = stream
        self._notes = notes
        self.as_json = as_json
        self._color = color and not as_json

    def document(self, content: Any, text: str) -> None:
        """Show one thing: ``content`` as a JSON document, or the text."""
        self._write(json.dumps(_encodable(content), ensure_ascii=False, indent=2) if self.as_json else text)

    def line(self, content: Any, text: str) -> None:
        """Show one of many things: ``content`` as one line of JSON, or the text."""
        self._write(json.dumps(_encodable(content), ensure_ascii=False) if self.as_json else text)

    def note(self, text: str) -> None:
        """Tell the person who waits; programs that read standard output never see it."""
        self._notes.write(f"{text}\n")
        self._notes.flush()

    def word(self, word: str) -> str:
        """Return a word for a state in its color."""
        return f"\x1b[{_COLORS[word]}m{word}\x1b[0m" if self._color and word in _COLORS else word

    def _write(self, text: str) -> None:
        self._stream.write(text if text.endswith("\n") else f"{text}\n")
        self._stream.flush()


def table(rows: Sequence[Sequence[str]], titles: Sequence[str]) -> str:
    """Return rows of text as columns under their titles; an empty table says so."""
    if not rows:
        return "(none)"
    widths = [max(len(row[column]) for row in (titles, *rows)) for column in range(len(titles))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in (titles, *rows))
    return "\n".join(lines)


def _encodable(value: Any) -> Any:
    """Return the value with NaN and infinities as text: JSON has none."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {name: _encodable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(part) for part in value]
    return value
