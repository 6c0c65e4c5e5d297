"""``job.json`` and ``attempt.json`` beside ``spec.json``: what users set on a job, what it needs and where it runs.

With them the folder is self-contained: the store can be made again from it, also while the job runs on a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import Job, JobChange, NewJob, ResourceRequest, Share, WorkerRef
from ziggurat.layout import JobFolder

__all__ = [
    "JobRecord",
    "StartedAttempt",
    "close_attempt",
    "read_attempt",
    "read_job_file",
    "record_of",
    "write_attempt",
    "write_job_file",
]

_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """What ``job.json`` holds; the fields are those of ``Job``. Without ``needs``, its spec alone tells these."""

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
    needs: ResourceRequest | None = None


@dataclass(frozen=True)
class StartedAttempt:
    """What ``attempt.json`` holds.

    Args:
        worker: as the store has it; its ``opaque`` is empty before it is there and after it has ended.
        placement: nodes and accelerators.
        started: when, in seconds since 1970.
    """

    worker: WorkerRef
    placement: tuple[Share, ...]
    started: float


def write_attempt(folder: Path, attempt: StartedAttempt) -> None:
    """Replace the file.

    Raises:
        StorageError: where it cannot be written; what was there stays.
    """
    text = json.dumps({"version": _VERSION, **asdict(attempt)}, indent=2) + "\n"
    atomic_write_text(JobFolder(folder).attempt, text, "What is known of the worker")


def read_attempt(folder: Path) -> StartedAttempt | None:
    """Return what the file says; None where there is none that can be read."""
    try:
        content = json.loads(JobFolder(folder).attempt.read_text(encoding="utf-8"))
        shares = content["placement"]
        placement = tuple(Share(each["node"], tuple(each["devices"]), tuple(each["ranks"])) for each in shares)
        return StartedAttempt(WorkerRef(**content["worker"]), placement, float(content["started"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def close_attempt(folder: Path) -> None:
    """Note that the worker has ended: it must not be adopted again. Its number stays.

    Raises:
        StorageError: where it cannot be written.
    """
    attempt = read_attempt(folder)
    if attempt is not None and attempt.worker.opaque:
        write_attempt(folder, replace(attempt, worker=replace(attempt.worker, opaque={})))


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
    content = {"version": _VERSION, **asdict(record)}
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
        if part.name == "needs":
            sound[part.name] = _needs(value)
        elif isinstance(usual, tuple) and isinstance(value, list):
            sound[part.name] = tuple(each for each in value if isinstance(each, str))
        elif isinstance(usual, float) and isinstance(value, int | float) and not isinstance(value, bool):
            sound[part.name] = float(value)
        elif isinstance(value, type(usual)) and not isinstance(value, bool):
            sound[part.name] = value
    return sound


def _needs(value: Any) -> ResourceRequest | None:
    """Return stored needs; None where one of them is of another type."""
    usual = asdict(ResourceRequest())
    if not isinstance(value, dict):
        return None
    found: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in value.items() if name in usual
    }
    is_sound = all(type(each) is type(usual[name]) for name, each in found.items())
    return ResourceRequest(**found) if is_sound else None
