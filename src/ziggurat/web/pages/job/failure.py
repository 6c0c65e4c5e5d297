"""View model of the error that ended a job: the cause, the lines of the user's own code, the full traceback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import UnknownNameError
from ziggurat.workspace.standard_networks import network_text

__all__ = ["Failure", "failure_of"]

_LINES_AROUND: Final = 4


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job failed.

    Args:
        cause: one sentence.
        received: what came instead of what the cause asks for; empty for nothing.
        advice: what to do; empty for nothing.
        file: of the user's code; empty where it is not known.
        line: of that file, from 1; None where it is not known.
        lines: number and text of the lines around it.
        trace: the whole stack trace; empty for none.
    """

    cause: str
    received: str = ""
    advice: str = ""
    file: str = ""
    line: int | None = None
    lines: tuple[tuple[int, str], ...] = ()
    trace: str = ""


def failure_of(job: Job) -> Failure | None:
    """Return why a job failed; None where it did not."""
    if job.state != "failed":
        return None
    error = job.error
    if error is None:  # nobody said more, such as of a worker that was killed
        return Failure(cause=job.reason or "The job failed, and nobody said why.")
    details = error.get("details")
    known: Mapping[str, Any] = details if isinstance(details, Mapping) else {}
    file, line = _text(known.get("file")), known.get("line")
    number = line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None
    return Failure(
        cause=_text(error.get("rule")) or _text(error.get("message")) or job.reason,
        received=_text(error.get("received")),
        advice=_text(error.get("advice")),
        file=file,
        line=number,
        lines=_around(_source(job, file), number),
        trace=_text(error.get("traceback")) or _text(known.get("traceback")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _source(job: Job, file: str) -> str:
    """Return the text of the job's network where the error is in it; other files are not the job's."""
    network = job.spec.get("network")
    if not file or not isinstance(network, Mapping):
        return ""
    if network.get("source") == "file":
        return _text(network.get("text")) if file == network.get("path") else ""
    try:
        name = _text(network.get("name"))
        return network_text(name, job.framework) if file.endswith(f"{name}.py") else ""
    except (UnknownNameError, OSError):
        return ""


def _around(text: str, line: int | None) -> tuple[tuple[int, str], ...]:
    lines = text.splitlines()
    if line is None or line > len(lines):
        return ()
    first = max(1, line - _LINES_AROUND)
    return tuple(enumerate(lines[first - 1 : line + _LINES_AROUND], start=first))
