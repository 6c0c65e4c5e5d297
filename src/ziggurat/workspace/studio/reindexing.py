"""Records of a job read from its folder, for a database that is rebuilt from the folders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import NewJob
from ziggurat.jobs.job_file import JobRecord, read_job_file
from ziggurat.specs import Spec, TrainSpec, load_spec
from ziggurat.store import JobOnDisk
from ziggurat.workspace.job_status import JobStatus, job_status, open_job
from ziggurat.workspace.studio.new_jobs import needs_of, network_name

__all__ = ["job_reader"]

_NEVER_BEGUN: Final = "it was made in the shell, and never begun"


def job_reader(clock: Callable[[], float]) -> Callable[[Path], JobOnDisk]:
    """Return what reads the folder of a job; it raises a ZigguratError where there is no sound job.

    Args:
        clock: seconds since 1970.
    """
    return lambda folder: _read_job(folder, clock())


def _read_job(folder: Path, now: float) -> JobOnDisk:
    path = open_job(folder).spec
    spec = load_spec(path)
    record = read_job_file(folder)
    status = job_status(folder, now)
    state, reason = status.state, status.reason
    if state == "queued" and record is None:
        # Nobody put it into the queue of a studio: a rebuild must not begin to train it.
        state, reason = "stopped", _NEVER_BEGUN
    known = record or JobRecord()
    created = known.created or path.stat().st_mtime
    return JobOnDisk(job=_job(folder, spec, known, created), state=state, fields=_fields(status, reason))


def _job(folder: Path, spec: Spec, record: JobRecord, created: float) -> NewJob:
    said = asdict(record) | {"created": created, "name": record.name or spec.name or folder.name}
    return NewJob(
        id=folder.name,
        kind=spec.kind,
        folder=str(folder.absolute()),
        spec=spec.model_dump(mode="json"),
        needs=needs_of(spec),
        framework=spec.backend if isinstance(spec, TrainSpec) else "",
        network=network_name(spec),
        **said,
    )


def _fields(status: JobStatus, reason: str) -> dict[str, Any]:
    return {
        "reason": reason,
        "exit_code": status.exit_code,
        "error": status.error,
        "pid": status.pid,
        "host": status.host,
        "health": status.health if status.is_active else "",
    }
