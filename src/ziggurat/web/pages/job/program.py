"""What a job page shows of a program: its files, the text of one of them, and the values that it logged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ziggurat.entities import Job, ScalarSummary
from ziggurat.entities.best_checkpoint import is_share, known_mode, metric_text
from ziggurat.layout import JobFolder
from ziggurat.workspace.programs import kept_files
from ziggurat.workspace.studio import Studio

__all__ = ["LoggedValue", "ProgramView", "logged_values", "program_text", "program_view"]

_MOST_BYTES: Final = 1_000_000
_MOST_FILES: Final = 200
_MOST_VALUES: Final = 12
_PART: Final = re.compile(r"(?:train|training|val|validation|test|eval)[/_](.+)")
_FALLING: Final = ("loss", "cost", "error", "perplexity")


@dataclass(frozen=True, kw_only=True)
class ProgramView:
    """What is shown of a program.

    Args:
        files: ``name`` and ``size_bytes`` of its first 200 files; the script comes first.
        further: how many files are not listed.
        name: of the file that is shown.
        text: of it; None where it is no text, too long, or gone.
    """

    files: list[dict[str, Any]]
    further: int
    name: str
    text: str | None


def program_view(studio: Studio, job: Job, name: str = "") -> ProgramView | None:
    """Return what is shown of the program of a job; None for jobs of other kinds.

    Args:
        studio: where the job is.
        job: it.
        name: of the file to show; the script where there is none of that name.
    """
    if job.kind != "program":
        return None
    files = studio.programs.files(job.id)
    known = [each["name"] for each in files]
    chosen = name if name in known else str(job.spec.get("script", ""))
    return ProgramView(
        files=files[:_MOST_FILES], further=max(0, len(files) - _MOST_FILES), name=chosen, text=program_text(job, chosen)
    )


def program_text(job: Job, name: str) -> str | None:
    """Return the text of a file that came with a program; None where it is no text, too long, or not there."""
    path = dict(kept_files(JobFolder(Path(job.folder)))).get(name)
    if path is None or path.stat().st_size > _MOST_BYTES:
        return None
    content = path.read_bytes()
    try:
        return None if b"\0" in content else content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, kw_only=True)
class LoggedValue:
    """What a value that a program logged came to.

    Args:
        name: as the program calls it.
        first: its first value.
        last: its newest value.
        best: its best value; empty if it is not known whether small or large values are good.
        best_step: ``global_step`` of the best value.
        points: number of values.
    """

    name: str
    first: str
    last: str
    best: str
    best_step: int
    points: int


def logged_values(studio: Studio, job: Job, scalars: Sequence[ScalarSummary]) -> list[LoggedValue]:
    """Return what the first 12 curves of a program came to; empty for jobs of other kinds.

    Args:
        studio: where the job is.
        job: any job.
        scalars: its curves, the important ones first.
    """
    shown = {each.tag: each for each in scalars[:_MOST_VALUES]} if job.kind == "program" else {}
    curves = studio.curves.some(job.id, shown) if shown else ()
    return [_logged_value(shown[curve.tag], curve.steps, curve.values) for curve in curves]


def _logged_value(scalar: ScalarSummary, steps: np.ndarray, values: np.ndarray) -> LoggedValue:
    """Return what a curve came to; thinned curves keep their ends and extremes."""
    tag, mode = scalar.tag, _good_values(scalar.tag)
    known = np.isfinite(values)
    best, best_step = "", 0
    if mode and known.any():
        worst = np.inf if mode == "min" else -np.inf
        place = int((np.argmin if mode == "min" else np.argmax)(np.where(known, values, worst)))
        best, best_step = metric_text(tag, float(values[place])), int(steps[place])
    first = metric_text(tag, float(values[0])) if len(values) else "–"
    last = metric_text(tag, scalar.last)
    return LoggedValue(name=tag, first=first, last=last, best=best, best_step=best_step, points=scalar.count)


def _good_values(tag: str) -> Literal["min", "max", ""]:
    found = _PART.fullmatch(tag.lower())
    base = found.group(1) if found else tag.lower()
    mode = known_mode(base)
    if mode is not None:
        return mode
    return "min" if base.endswith(_FALLING) else "max" if is_share(base) else ""
