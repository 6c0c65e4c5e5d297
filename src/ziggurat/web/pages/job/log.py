"""View model of a job's log: start-up messages of frameworks and stack traces folded, epochs once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ziggurat.formatting import plural
from ziggurat.workspace.studio import Studio

__all__ = ["JobPageLog", "LogBlock", "job_log", "log_blocks"]

_NOISE: Final = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] "  # TensorFlow
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ "  # absl
    r"|I?W?E?F?0000 00:00:"  # absl before it knows the time
    r"|WARNING: All log messages before absl::InitializeLog"
    r"|To enable the following instructions"
    r"|Skipping registering GPU devices"
    r"|.*\bcuInit\b"
)
_LAST_STEP: Final = re.compile(r"epoch (\d+)/\d+, step (\d+)/\2(?:,|$)")
"""The line of progress at the end of an epoch, which the summary of the epoch says again."""

_TRACE: Final = "Traceback (most recent call last):"
_FEW: Final = 2
"""So few lines are not worth a fold."""


@dataclass(frozen=True)
class LogBlock:
    """Lines of a log that belong together.

    Args:
        kind: ``text``, ``noise`` (start-up messages of a framework) or ``trace``.
        text: the lines.
        title: of the fold; empty for ``text``.
    """

    kind: Literal["text", "noise", "trace"]
    text: str
    title: str = ""


@dataclass(frozen=True)
class JobPageLog:
    """The end of a worker's log.

    Args:
        text: it, whole.
        mark: another one when the text is another.
        start: offset in bytes at which it begins; 0 where it is the whole log.
    """

    text: str
    mark: str
    start: int

    @property
    def blocks(self) -> list[LogBlock]:
        """Return what is shown of it."""
        return log_blocks(self.text)


def job_log(studio: Studio, job_id: str) -> JobPageLog:
    """Return the end of a job's log."""
    found = studio.outputs.log(job_id)
    text = found.text
    return JobPageLog(text, hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest(), found.start)


def log_blocks(text: str) -> list[LogBlock]:
    """Return a log in blocks, in its order; lines that say again what stands in the next ones are left out."""
    found: list[LogBlock] = []
    for kind, lines in _runs(text.splitlines()):
        is_folded = kind != "text" and len(lines) > _FEW
        joined = "\n".join(lines)
        if not is_folded and found and found[-1].kind == "text":
            found[-1] = LogBlock("text", f"{found[-1].text}\n{joined}")
        elif not is_folded:
            found.append(LogBlock("text", joined))
        else:
            word = "Traceback" if kind == "trace" else "Start-up messages of the framework"
            found.append(LogBlock(kind, joined, f"{word}, {plural(len(lines), 'line')}"))
    return found


def _runs(lines: list[str]) -> Iterator[tuple[Literal["text", "noise", "trace"], list[str]]]:
    """Return kind and lines of each run of lines of the same kind."""
    kind: Literal["text", "noise", "trace"] = "text"
    held: list[str] = []
    for line in lines:
        new = _kind(line, kind)
        if new == "text" and _LAST_STEP.match(line):
            continue
        if new != kind and held:
            yield kind, held
            held = []
        kind = new
        held.append(line)
    if held:
        yield kind, held


def _kind(line: str, before: Literal["text", "noise", "trace"]) -> Literal["text", "noise", "trace"]:
    # The lines of a trace are indented; the last one names the error, and stays in sight.
    if line.lstrip().startswith(_TRACE) or (before == "trace" and (line.startswith((" ", "\t")) or not line.strip())):
        return "trace"
    return "noise" if _NOISE.match(line) else "text"
