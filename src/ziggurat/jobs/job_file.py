"""``job.json`` beside ``spec.json``: what users set on a job, so that its folder is self-contained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import Job, JobChange, NewJob
from ziggurat.layout import JobFolder

__all__ = ["JobRecord", "read_job_file", "record_of", "write_job_file"]

_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """What ``job.json`` holds; the fields are those of ``Job``."""

    name: str = ""
    notes: str = ""
    project: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()
    priority: int = 0
    created: float = 0.0
    group: str = ""
    parent: str = ""
    depends_on: tuple[str, ...] = ()


def record_of(job: Job | NewJob, change: JobChange | None = None) -> JobRecord:
    """Return what the file of a job says, after a change."""
    values = {part.name: getattr(job, part.name) for part in fields(JobRecord)}
    changed = {part.name: getattr(change, part.name) for part in fields(JobChange)} if change is not None else {}
    return JobRecord(**{**values, **{name: value for name, value in changed.items() if value is not None}})


def write_job_file(folder: Path, record: JobRecord) -> None:
    """Replace the file.

    Raises:
        StorageError: where it cannot be written; what was there stays.
    """
    content = {"version": _VERSION, **{part.name: getattr(record, part.name) for part in fields(JobRecord)}}
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    atomic_write_text(JobFolder(folder).record, text, "What is known of the job")


def read_job_file(folder: Path) -> JobRecord | None:
    """Return what the file says, as far as it can be used; None where there is none that can be read."""
    try:
        content = json.loads(JobFolder(folder).record.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return JobRecord(**_sound(content)) if isinstance(content, dict) else None


def _sound(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are of the right type: a person may have edited the file."""
    sound: dict[str, Any] = {}
    for part in fields(JobRecord):
        value, usual = content.get(part.name), part.default
        if isinstance(usual, tuple) and isinstance(value, list):
            sound[part.name] = tuple(each for each in value if isinstance(each, str))
        elif isinstance(usual, float) and isinstance(value, int | float) and not isinstance(value, bool):
            sound[part.name] = float(value)
        elif isinstance(value, type(usual)) and not isinstance(value, bool):
            sound[part.name] = value
    return sound
