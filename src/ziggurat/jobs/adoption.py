"""Reconciliation of a new supervisor with the job folders: running workers to adopt, and unrecorded ends."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ziggurat.entities import Job, read_heartbeat
from ziggurat.jobs.executor import Executor
from ziggurat.jobs.outcome import last_events, outcome_of
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.state_machine import JobTransitions
from ziggurat.jobs.worker_monitor import WorkerMonitor
from ziggurat.layout import JobFolder

__all__ = ["adopt_running_workers"]

_QUIET_STATES: Final = ("queued", "stopped", "failed")
_FRESH_S: Final = 60.0


def adopt_running_workers(
    store: JobStore, executor: Executor, attendance: WorkerMonitor, changes: JobTransitions, now: float
) -> None:
    """Bring jobs that nobody attends to in line with their folders, which are right where the store says otherwise.

    Args:
        store: where the jobs are.
        executor: knows who is alive.
        attendance: attends to what is alive after all.
        changes: changes states.
        now: seconds since 1970.
    """
    for job in store.jobs.in_states(_QUIET_STATES):
        folder = JobFolder(Path(job.folder))
        heartbeat = read_heartbeat(folder.heartbeat)
        is_fresh = heartbeat is not None and now - heartbeat.time < _FRESH_S
        if _size(folder) == job.events_offset and not is_fresh:
            continue
        handle = executor.adopt(folder.path, heartbeat) if is_fresh else None
        if handle is not None and heartbeat is not None:
            fields = {"started": heartbeat.time, "ended": None, "reason": "", "pid": handle.pid, "host": handle.host}
            if changes.apply(job, "adopt", **fields):
                attendance.take_on(job, handle)
            continue
        attendance.read_on(job, now)
        _note_end(store, changes, job, folder)


def _note_end(store: JobStore, changes: JobTransitions, job: Job, folder: JobFolder) -> None:
    words = last_events(folder, since=0.0)
    if words is None or words.time <= (job.ended or job.created):
        return
    ending = outcome_of(folder, words.exit_code, words)
    state = ending.event.removeprefix("end_")
    if state == "stopped" and job.state == "queued":
        return  # it was stopped before it was resumed
    fields = {"reason": ending.reason, "exit_code": ending.exit_code, "ended": ending.time}
    if store.jobs.move(job.id, (job.state,), state, **fields):
        changes.tell("state", job.id)


def _size(folder: JobFolder) -> int:
    try:
        return folder.events.stat().st_size
    except OSError:
        return 0
