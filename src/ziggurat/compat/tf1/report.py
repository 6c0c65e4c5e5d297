"""Report on a TensorFlow 1 script: notices while it runs, and a summary of the adapted names at its end."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from ziggurat.backends.tensorflow.namespace.proxy import users_frame

__all__ = ["Report"]

_COMMAND = "ziggurat run-script"


class Report:
    """What was adapted for a script.

    Args:
        script: its path, as the user wrote it.
        stream: where notices and the summary go; standard error if not given.
        command: the words that the summary begins with.
    """

    def __init__(self, script: str, stream: TextIO | None = None, command: str = _COMMAND) -> None:
        self._script = script
        self._command = command
        self._stream = stream
        self._names: dict[str, tuple[str, str, int]] = {}

    @property
    def names(self) -> dict[str, tuple[str, str, int]]:
        """Name in the script → name that stands for it, file and line of its first use."""
        return dict(self._names)

    def adapt(self, old: str, new: str, frame: FrameType | None = None) -> None:
        """Record that a name of the script stands for another one; only its first use counts.

        Args:
            old: as the script has it.
            new: what it is today.
            frame: where the search for the script's own line begins; the caller's if not given.
        """
        users = users_frame(sys._getframe(1) if frame is None else frame)
        if users is not None:
            self._names.setdefault(old, (new, users.f_code.co_filename, users.f_lineno))

    def notice(self, file: str, line: int, text: str) -> None:
        """Write a sentence on a line of the script at once."""
        self._write(f"{file}, line {line}: {text}\n")

    def summary(self) -> str:
        """Return each adapted name with the line of its first use, in the order of the lines."""
        if not self._names:
            return f"{self._command}: no name of {Path(self._script).name} had to be adapted.\n"
        rows = sorted((file, line, old, new) for old, (new, file, line) in self._names.items())
        places = [f"{Path(file).name}:{line}" for file, line, _, _ in rows]
        place_width, width = max(map(len, places)), max(len(row[2]) for row in rows)
        count = "1 name" if len(rows) == 1 else f"{len(rows)} names"
        lines = [f"{self._command}: {count} of {Path(self._script).name} adapted to TensorFlow {_version()}:"]
        lines += [
            f"  {place:<{place_width}}  {old:<{width}}  ->  {new}"
            for place, (_, _, old, new) in zip(places, rows, strict=True)
        ]
        return "\n".join(lines) + "\n"

    def write_summary(self) -> None:
        """Write the summary."""
        self._write(self.summary())

    def _write(self, text: str) -> None:
        stream: Any = self._stream or sys.stderr
        sys.stdout.flush()
        stream.write(text)
        stream.flush()


def _version() -> str:
    return str(sys.modules["tensorflow"].__version__)
