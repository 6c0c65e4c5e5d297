"""Dispatcher for the plan: starts workers, fails jobs that can never start, and records why the others wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ziggurat.entities import ACTIVE_STATES, Job, NodeResources, WorkerRef, read_heartbeat
from ziggurat.errors import ZigguratError
from ziggurat.jobs.disk import has_checkpoint
from ziggurat.jobs.executor import Executor, NotNowError, worker_fields
from ziggurat.jobs.fewer_processes import SETTLED_S
from ziggurat.jobs.job_file import StartedAttempt, write_attempt
from ziggurat.jobs.plan import Fail, Start, Waiting, plan
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.state_machine import JobTransitions
from ziggurat.jobs.worker_monitor import WorkerMonitor
from ziggurat.layout import JobFolder
from ziggurat.settings import RESUMED_ON_VARIABLE

__all__ = ["Dispatcher"]

_LOG: Final = logging.getLogger(__name__)

_PLAN_HOLDS_S: Final = 10.0
"""So long a plan holds while no job moves: planning reads the whole queue, and only times of day would differ."""

_NEW_ATTEMPT: Final = {
    "ended": None,
    "reason": "",
    "exit_code": None,
    "error": None,
    "health": "",
    "paused": False,
    "remaining_s": None,
}


class Dispatcher:
    """Plans and starts.

    Args:
        store: where the jobs are.
        executor: starts workers.
        changes: changes states.
        monitor: attends to what was started.
        environment: variables of a job's worker, besides those of the executor.
        host: name of this machine.
        lock: held while the requested state of a job changes.
    """

    def __init__(
        self,
        store: JobStore,
        executor: Executor,
        changes: JobTransitions,
        monitor: WorkerMonitor,
        *,
        environment: Callable[[Job], Mapping[str, str]],
        host: str,
        lock: threading.RLock,
    ) -> None:
        self._store = store
        self._executor = executor
        self._changes = changes
        self._monitor = monitor
        self._environment = environment
        self._host = host
        self._lock = lock
        self.waiting: Mapping[str, Waiting] = {}
        self._asked = threading.Event()
        self._nodes: object = None
        self._nodes_since = 0.0
        self._planned_for: object = None
        self._planned_at = 0.0

    def look_again(self) -> None:
        """Plan anew at the next call of ``apply``, whatever has changed. Any thread may call it."""
        self._asked.set()

    def apply(self, nodes: Sequence[NodeResources], now: float) -> None:
        """Plan once and do it; the last plan holds for some seconds where nothing has changed that it depends on.

        Args:
            nodes: the machines, the studio's own first.
            now: seconds since 1970.
        """
        self._note_nodes(nodes, now)
        # Before the jobs are read: what changes meanwhile is another plan's.
        are_settled = now - self._nodes_since >= SETTLED_S
        basis = (self._changes.moves, [_for_plans(node) for node in nodes], are_settled)
        is_asked = self._asked.is_set()
        self._asked.clear()
        if not is_asked and basis == self._planned_for and 0 <= now - self._planned_at < _PLAN_HOLDS_S:
            return
        self._planned_for, self._planned_at = None, now
        if self._plan_and_do(nodes, now):
            self._planned_for = basis

    def _note_nodes(self, nodes: Sequence[NodeResources], now: float) -> None:
        """Note since when the nodes have been the same ones."""
        found = sorted((node.name, sum(device.usable for device in node.devices)) for node in nodes)
        if found != self._nodes or now < self._nodes_since:
            self._nodes, self._nodes_since = found, now

    def _plan_and_do(self, nodes: Sequence[NodeResources], now: float) -> bool:
        """Return whether nothing was to be done but to wait, and all of that succeeded."""
        queued = {job.id: job for job in self._store.jobs.in_states(("queued",))}
        if not queued:
            self.waiting = {}
            return True
        running = self._store.jobs.in_states(ACTIVE_STATES)
        jobs = [*queued.values(), *self._dependencies(queued, running)]
        resumable = {job.id for job in queued.values() if _is_resumable(job)}
        made = plan(jobs, running, nodes, now, resumable=resumable, nodes_since=self._nodes_since)
        self.waiting = made.waiting
        for action in made.actions:
            self._guarded(queued[action.job_id], action, nodes, now)
        noted = [self._guarded(queued[job_id], waiting, nodes, now) for job_id, waiting in made.waiting.items()]
        return not made.actions and all(noted)

    def _guarded(self, job: Job, action: Start | Fail | Waiting, nodes: Sequence[NodeResources], now: float) -> bool:
        """Do one thing, and return whether that succeeded; where not, such as on a full disk, the others are done."""
        try:
            if isinstance(action, Start):
                executor = next(node.executor for node in nodes if node.name == action.placement[0].node)
                self._start(job, action, executor, now)
            elif isinstance(action, Fail):
                self._changes.apply(job, "end_failed", reason=action.reason, ended=now)
            else:
                self._changes.note(job, {"reason": action.reason}, "waiting")
            self._monitor.problems.pop(job.id, None)
            return True
        except (ZigguratError, OSError) as error:
            if self._store.jobs.find(job.id) is not None:  # else it was deleted meanwhile
                self._monitor.problems[job.id] = str(error)
            return False

    def _dependencies(self, queued: Mapping[str, Job], running: list[Job]) -> list[Job]:
        known = {*queued, *(job.id for job in running)}
        wanted = {job_id for job in queued.values() for job_id in job.depends_on} - known
        return self._store.jobs.some(sorted(wanted))

    def _start(self, job: Job, action: Start, executor: str, now: float) -> None:
        placement = action.placement
        folder = JobFolder(Path(job.folder))
        with self._lock:
            if not folder.spec.is_file():
                self._changes.apply(job, "end_failed", reason=f"its folder {folder.path} has no spec.json", ended=now)
                return
            if self._is_taken(job, folder, now):
                return
            # Before the state changes: a request that comes after it is one for this attempt.
            folder.stop_request.unlink(missing_ok=True)
            begin_offset = folder.events.stat().st_size if folder.events.exists() else 0
            number = 1 + max(job.attempt, 0 if job.worker is None else job.worker.attempt)
            planned = WorkerRef(executor=executor, node=placement[0].node, attempt=number)
            fields = {**_NEW_ATTEMPT, **worker_fields(planned), "host": self._host, "started": now}
            fields |= {"devices": placement[0].devices, "placement": placement}
            # Its number is on the disk before any worker has it, so that the next attempt always has a higher one.
            write_attempt(folder.path, StartedAttempt(planned, placement, now))
            if not self._changes.apply(job, "start", **fields):
                return  # stopped or deleted in between
            self._spawn(job, folder, action, number, begin_offset, now)

    def _spawn(self, job: Job, folder: JobFolder, action: Start, number: int, begin_offset: int, now: float) -> None:
        placement, environment = action.placement, dict(self._environment(job))
        if action.note:
            environment[RESUMED_ON_VARIABLE] = action.note
        try:
            worker = self._executor.start(folder.path, placement, environment, attempt=number)
        except NotNowError as error:
            _LOG.info("job %s waits on: %s", job.id, error)
            started = self._store.jobs.get(job.id)  # it may have been asked to stop
            reason = str(error) if started.state == "running" else started.reason
            # The nodes of its last attempt stay known: they are named if it resumes on fewer.
            fields = {"started": None, "devices": (), "placement": job.placement, "reason": reason}
            self._changes.apply(started, "not_begun", **fields)
            return
        except (ZigguratError, OSError, TimeoutError) as error:
            started = self._store.jobs.get(job.id)
            self._changes.apply(started, "end_failed", reason=str(error), ended=now)
            return
        self._monitor.take_on(job, worker, begin_offset)
        self._store.jobs.note(job.id, **worker_fields(worker))
        places = ", ".join(f"{share.node} {list(share.devices)}" for share in placement)
        _LOG.info("job %s started by executor %s on devices of %s", job.id, worker.executor, places)
        if action.note:
            _LOG.warning("job %s: %s", job.id, action.note)
        write_attempt(folder.path, StartedAttempt(worker, placement, now))

    def _is_taken(self, job: Job, folder: JobFolder, now: float) -> bool:
        """Return whether a worker was started in the folder by the shell; it is monitored from now on."""
        heartbeat = read_heartbeat(folder.heartbeat)
        worker = self._executor.adopt(folder.path, heartbeat, job.worker) if heartbeat is not None else None
        if worker is None:
            return False
        if self._changes.apply(job, "adopt", **{**_NEW_ATTEMPT, "started": now, **worker_fields(worker)}):
            self._monitor.take_on(job, worker)
        return True


def _is_resumable(job: Job) -> bool:
    """Return whether a job is a training over several nodes that was interrupted and has a checkpoint."""
    is_of_nodes = job.kind == "train" and job.needs.nodes > 1 and job.attempt > 0
    return is_of_nodes and has_checkpoint(JobFolder(Path(job.folder)))


def _for_plans(node: NodeResources) -> NodeResources:
    """Return what a plan depends on: not how busy accelerators are, nor how much more than enough the disk has."""
    is_full = node.disk_free_bytes < node.disk_reserve_bytes
    devices = tuple(replace(device, load=None) for device in node.devices)
    return replace(node, devices=devices, disk_free_bytes=0 if is_full else node.disk_reserve_bytes)
