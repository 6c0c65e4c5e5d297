"""Worker monitoring: re-adopts workers, ingests their events, checks heartbeats, records outcomes."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import ACTIVE_STATES, ENDED_STATES, Heartbeat, Job, WorkerRef, judge_pulse, read_heartbeat
from ziggurat.errors import JobError, ZigguratError
from ziggurat.jobs.escalation import Escalation, StopGrace, plain_reason
from ziggurat.jobs.event_tail import Tail
from ziggurat.jobs.executor import Ended, Executor, worker_fields
from ziggurat.jobs.job_file import close_attempt
from ziggurat.jobs.outcome import AttemptOutcome, are_fruitless, last_events, outcome_of
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.state_machine import JobTransitions
from ziggurat.layout import JobFolder

__all__ = ["WorkerMonitor", "stop_reason"]

_LOG: Final = logging.getLogger(__name__)

_UNREADABLE_FOR_S: Final = 60.0
"""So long the end of a job waits for events that cannot be read."""

_ENDED_BY_FORCE: Final = (None, -signal.SIGTERM, -signal.SIGKILL)
"""Exit codes of a worker that was asked to stop and then killed; None where another process had started it."""

_NOT_BEGUN: Final = "the studio ended before its worker was started"


@dataclass
class _Attended:
    """What is known of a worker besides the store.

    Args:
        worker: None if its process is unknown.
        begin_offset: size of the events file when it was started; None where that was another process's doing.
        ended_since: when its end was seen first; None while it is alive.
        killed_by: reason why it was ended at once; empty where it was not.
        escalation: how far its end was enforced; None if it was not asked to stop.
    """

    worker: WorkerRef | None = None
    begin_offset: int | None = None
    ended_since: float | None = None
    killed_by: str = ""
    escalation: Escalation | None = None


class WorkerMonitor:
    """Attends to all jobs that are running or stopping.

    Args:
        store: where the jobs are.
        executor: knows their processes.
        changes: changes their states.
        host: name of this machine.
        grace: how long a worker that was asked to stop may show no progress.
    """

    def __init__(
        self, store: JobStore, executor: Executor, changes: JobTransitions, host: str, grace: StopGrace | None = None
    ) -> None:
        self._store = store
        self._executor = executor
        self._changes = changes
        self._host = host
        self._grace = grace or StopGrace()
        self._attended: dict[str, _Attended] = {}
        self.tail = Tail(store, lambda job_id, offset: changes.tell("events", job_id, offset))
        self.problems: dict[str, str] = {}

    def attend(self, now: float) -> None:
        """Look at every active job once. What goes wrong with one job stops no other.

        Args:
            now: seconds since 1970.
        """
        active = self._store.jobs.in_states(ACTIVE_STATES)
        # Asked first, read then: what a worker wrote before its end is not missed.
        ended = {job.id: self._ended(job) for job in active}
        self.tail.look(active, now)
        for job in active:
            self._guarded(job, lambda job=job: self._judge(job, ended[job.id], now))
        for job_id in {*self._attended, *self.problems} - {job.id for job in active}:
            job = self._store.jobs.find(job_id)
            if job is None or job.state in ENDED_STATES:
                self.forget(job_id)

    def take_on(self, job: Job, worker: WorkerRef, begin_offset: int | None = None) -> None:
        """Attend to a worker from now on."""
        self._attended[job.id] = _Attended(worker, begin_offset)

    def forget(self, job_id: str) -> None:
        """Attend to a job no more."""
        self._attended.pop(job_id, None)
        self.tail.forget(job_id)
        self.problems.pop(job_id, None)

    def read_on(self, job: Job, now: float) -> None:
        """Take what is new in the events of a job that has ended."""
        tail = Tail(self._store, lambda job_id, offset: self._changes.tell("events", job_id, offset))
        tail.look([job], now)

    def ask_to_stop(self, job: Job, reason: str) -> None:
        """Ask the worker of a job to save and end; one on another machine sees the same folder.

        Raises:
            StorageError: where the request cannot be written.
        """
        worker = self._attended.get(job.id, _Attended()).worker or self._find(job)
        if worker is not None:
            self._executor.ask_to_stop(worker, reason)
        elif Path(job.folder).is_dir():
            atomic_write_text(JobFolder(Path(job.folder)).stop_request, reason.strip() + "\n", "The stop request")

    def hurry(self, job: Job) -> None:
        """Do at the next look what comes next for a worker that does not stop: SIGTERM, then SIGKILL."""
        self._escalation(job).is_hurried = True

    def forced_end(self, job_id: str) -> float | None:
        """Return when more force will be used on a job that does not stop, in seconds since 1970; None for never."""
        attended = self._attended.get(job_id)
        return None if attended is None or attended.escalation is None else attended.escalation.due

    def kill(self, job: Job, reason: str) -> None:
        """End the worker of a job at once; the next look notes that it stopped.

        Raises:
            JobError: where it is on another machine.
        """
        worker = self._find(job)
        if worker is None:
            if self._is_elsewhere(job, read_heartbeat(JobFolder(Path(job.folder)).heartbeat)):
                raise JobError(
                    "A worker is ended at once on its own machine.",
                    received=f"job {job.id} is on {job.host}",
                    advice="Stop it without force, or end it there.",
                )
            return
        self._attended.setdefault(job.id, _Attended(worker)).killed_by = reason
        self._executor.kill(worker)

    def is_alive(self, job: Job) -> bool:
        """Return whether the process of a job is known and has not ended."""
        attended = self._attended.get(job.id)
        if attended is None or attended.worker is None:
            return self._find(job) is not None
        return not isinstance(self._executor.poll(attended.worker), Ended)

    # ---- whether the worker is there

    def _find(self, job: Job) -> WorkerRef | None:
        """Return the worker of a job, and attend to it; one of an earlier supervisor is adopted."""
        attended = self._attended.setdefault(job.id, _Attended())
        if attended.worker is None:
            folder = JobFolder(Path(job.folder))
            attended.worker = self._executor.adopt(folder.path, read_heartbeat(folder.heartbeat), job.worker)
            if attended.worker is not None:
                self._changes.note(job, worker_fields(attended.worker))
        return attended.worker

    def _ended(self, job: Job) -> Ended | None:
        """Return the end of a worker that is gone; None while it is there, or if this machine cannot tell."""
        try:
            worker = self._find(job)
            if worker is not None:
                state = self._executor.poll(worker)
                if isinstance(state, Ended):
                    return state
                if job.state == "running":
                    self._changes.note(job, {"reason": state.waits})
                return None
        except (ZigguratError, OSError) as error:
            self.problems[job.id] = str(error)
            return None
        heartbeat = read_heartbeat(JobFolder(Path(job.folder)).heartbeat)
        return None if self._is_elsewhere(job, heartbeat) else Ended(None)

    def _is_elsewhere(self, job: Job, heartbeat: Heartbeat | None) -> bool:
        if heartbeat is not None and heartbeat.time >= (job.started or 0.0):
            return heartbeat.host != self._host
        return bool(job.host) and job.host != self._host

    # ---- how it is

    def _judge(self, job: Job, ended: Ended | None, now: float) -> None:
        if ended is None:
            self._note_health(job, now)
            self._carry_requests(job)
            self._enforce(job, now)
            return
        attended = self._attended.get(job.id)
        if attended is None:
            return  # deleted meanwhile
        attended.ended_since = now if attended.ended_since is None else attended.ended_since
        if not self.tail.is_at_end(job.id) and now - attended.ended_since < _UNREADABLE_FOR_S:
            return
        self._note_end(job, ended, attended, now)

    def _note_health(self, job: Job, now: float) -> None:
        heartbeat = read_heartbeat(JobFolder(Path(job.folder)).heartbeat)
        if heartbeat is None or heartbeat.time < (job.started or 0.0):
            return  # it has not begun to beat
        hung_after_s = job.spec.get("hung_after_s", 120.0)
        if not isinstance(hung_after_s, int | float):
            hung_after_s = 120.0
        self._changes.note(job, {"health": judge_pulse(heartbeat, now, hung_after_s=float(hung_after_s)).value})

    def _carry_requests(self, job: Job) -> None:
        """Make the state and the stop request in the folder agree, also after a kill in between."""
        reason = stop_reason(JobFolder(Path(job.folder)))
        if job.state == "running" and reason is not None:
            self._changes.apply(job, "stop", reason=reason)  # requested by the shell
        elif job.state == "stopping" and reason is None:
            self.ask_to_stop(job, plain_reason(job.reason) or "asked to stop")

    def _enforce(self, job: Job, now: float) -> None:
        """End a worker that was asked to stop and does not."""
        attended = self._attended.get(job.id)
        if job.state != "stopping" or attended is None or attended.worker is None or attended.killed_by:
            return
        escalation = self._escalation(job)
        reason, due = plain_reason(job.reason), escalation.look(JobFolder(Path(job.folder)), now)
        if due == "terminate":
            _LOG.warning("job %s does not stop: its worker gets SIGTERM", job.id)
            self._executor.terminate(attended.worker)
        elif due == "kill":
            _LOG.warning("job %s does not stop: its worker is killed", job.id)
            self.kill(job, f"{reason}, by force: its worker did not end when it was asked to")
            return
        self._changes.note(job, {"reason": escalation.reason(reason, now)})

    def _escalation(self, job: Job) -> Escalation:
        attended = self._attended.setdefault(job.id, _Attended())
        attended.escalation = attended.escalation or Escalation(self._grace)
        return attended.escalation

    def _note_end(self, job: Job, ended: Ended, attended: _Attended, now: float) -> None:
        folder = JobFolder(Path(job.folder))
        words = last_events(folder, since=job.started or 0.0, from_offset=attended.begin_offset)
        ending = outcome_of(folder, ended.exit_code, words)
        if words is None and attended.killed_by:
            ending = AttemptOutcome(event="end_stopped", reason=attended.killed_by, exit_code=ended.exit_code)
        elif words is None and ended.exit_code in _ENDED_BY_FORCE and (asked := _asked_to_stop(job, folder)):
            reason = f"{asked}, by force: its worker ended before it had saved"
            ending = AttemptOutcome(event="end_stopped", reason=reason, exit_code=ended.exit_code)
        elif words is None and self._never_began(job, folder):
            self._changes.apply(job, "not_begun", started=None, reason=_NOT_BEGUN, health="", devices=())
            self.forget(job.id)
            return
        if ending.event == "lost" and ended.lost_node:
            ending = replace(ending, reason=f"node {ended.lost_node} does not answer")
        elif words is None and ended.reason and not attended.killed_by:
            ending = replace(ending, reason=ended.reason)
        is_taken_back = ended.goes_on and ending.event in ("lost", "end_stopped")
        if is_taken_back and ended.stuck and job.state == "running" and are_fruitless(folder, job.kind):
            ending, is_taken_back = replace(ending, event="end_failed", reason=ended.stuck), False
        if ending.event == "lost":
            self._store.events.lose_attempt(job.id, ending.reason)
        columns = _columns(job, ending, now)
        worker = attended.worker or job.worker
        if worker is not None:  # its number is kept; it must not be adopted again
            columns["worker"] = replace(worker, opaque={})
            close_attempt(folder.path)
        event = ending.event
        if job.state == "running" and (is_taken_back or (event == "lost" and ended.lost_node)):
            event = "give_back"
            columns |= {"reason": "", "health": "", "exit_code": None}
        if self._changes.apply(job, event, **columns):
            _LOG.info("job %s ended: %s (%s)", job.id, event, ending.reason)
            self.forget(job.id)

    def _never_began(self, job: Job, folder: JobFolder) -> bool:
        """Return whether the starting process was killed before the worker began: there is no trace of it."""
        heartbeat = read_heartbeat(folder.heartbeat)
        has_beaten = heartbeat is not None and heartbeat.time >= (job.started or 0.0)
        has_worker = job.pid is not None or bool(job.worker is not None and job.worker.opaque)
        return not has_worker and not has_beaten and folder.path.is_dir()

    def _guarded(self, job: Job, act: Callable[[], None]) -> None:
        try:
            act()
            problem = self.tail.problem(job.id)
        except (ZigguratError, OSError) as error:
            problem = str(error)
        except Exception as error:  # the others must be attended to all the same
            problem = f"{type(error).__name__}: {error}"
            _LOG.exception("job %s cannot be attended to", job.id)
        if not problem:
            self.problems.pop(job.id, None)
        elif self._is_deleted(job.id):
            self.forget(job.id)
        else:
            self.problems[job.id] = self._with_end(job, problem)

    def _is_deleted(self, job_id: str) -> bool:
        """Return whether someone deleted a job after it was listed; False where the store does not say."""
        try:
            return self._store.jobs.find(job_id) is None
        except (ZigguratError, OSError):
            return False

    def _with_end(self, job: Job, problem: str) -> str:
        """Return a problem with the cause of the worker's end, which the store does not know yet."""
        attended = self._attended.get(job.id)
        if attended is None or attended.ended_since is None:
            return problem
        words = last_events(JobFolder(Path(job.folder)), since=job.started or 0.0, from_offset=attended.begin_offset)
        said = words.reason or words.outcome if words is not None else "its log may say why"
        return f"its worker has ended ({said}); this cannot be noted: {problem}"


def stop_reason(folder: JobFolder) -> str | None:
    """Return the reason of a stop request; None if there is none."""
    try:
        return folder.stop_request.read_text(encoding="utf-8", errors="replace").strip() or "asked to stop"
    except OSError:
        return None


def _asked_to_stop(job: Job, folder: JobFolder) -> str:
    """Return why a worker that is gone had been asked to stop; empty where it had not."""
    return plain_reason(job.reason) if job.state == "stopping" else stop_reason(folder) or ""


def _columns(job: Job, ending: AttemptOutcome, now: float) -> dict[str, Any]:
    return {
        "reason": ending.reason,
        "exit_code": ending.exit_code,
        "ended": now if ending.time is None else ending.time,
        "health": "lost" if ending.event == "lost" else "",
        "pid": None,
        "paused": job.paused and ending.event == "end_stopped",
        "remaining_s": None,
    }
