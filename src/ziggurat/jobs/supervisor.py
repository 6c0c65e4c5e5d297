"""Supervisor: the one thread that advances the jobs of a workspace, and the operations that interfaces may call.

The thread checks the workers, plans, and starts jobs. User requests run at once in their own threads, as a state
change in the store that only one of two concurrent requests can win. Any part can be killed at any moment: the next
supervisor finds the state in the store and in the folders, and the folders are authoritative. So it first adopts
the workers that still run. One supervisor at a time holds the lock of a workspace.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ziggurat.atomic import ProcessLock, storage_errors
from ziggurat.entities import Job, JobChange, NewJob, NodeResources, read_heartbeat
from ziggurat.entities.names import check_job_texts
from ziggurat.entities.queue_order import write_queue_order
from ziggurat.entities.trash import Discarded
from ziggurat.errors import JobError, StorageError, ZigguratError
from ziggurat.jobs.disk import Retention
from ziggurat.jobs.dispatcher import Dispatcher
from ziggurat.jobs.escalation import StopGrace, plain_reason
from ziggurat.jobs.executor import Executor, worker_fields
from ziggurat.jobs.job_file import record_of, write_job_file
from ziggurat.jobs.outcome import last_events, outcome_of
from ziggurat.jobs.plan import Waiting, in_order
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.pubsub import EventBus
from ziggurat.jobs.removal import Removal
from ziggurat.jobs.state_machine import JobTransitions
from ziggurat.jobs.worker_monitor import WorkerMonitor
from ziggurat.layout import JobFolder

__all__ = [
    "Supervisor",
    "SupervisorLock",
]


_LOG: Final = logging.getLogger(__name__)


class Supervisor:
    """Brings the jobs of a workspace forward. Any thread may call any method but ``tick``.

    Args:
        store: where the jobs are.
        executor: starts workers and knows who is alive.
        workspace: folder of everything; no other supervisor may be at work in it.
        environment: returns the variables of a job's worker, besides those of the executor.
        retention: what is kept.
        grace: how long a worker that was asked to stop may show no progress before it is ended by force.

    Raises:
        JobError: where another supervisor is at work in the workspace.
        StorageError: where the workspace cannot be written.
    """

    def __init__(
        self,
        store: JobStore,
        executor: Executor,
        workspace: Path,
        *,
        environment: Callable[[Job], Mapping[str, str]] = lambda job: {},
        retention: Retention | None = None,
        grace: StopGrace | None = None,
    ) -> None:
        self._process_lock = SupervisorLock(workspace)
        host = socket.gethostname()
        self.hub = EventBus()
        self._store = store
        self._workspace = workspace
        self._executor = executor
        self._lock = threading.RLock()
        self._changes = JobTransitions(store, self.hub)
        self._monitor = WorkerMonitor(store, executor, self._changes, host, grace)
        self._dispatcher = Dispatcher(
            store, executor, self._changes, self._monitor, environment=environment, host=host, lock=self._lock
        )
        self._removal = Removal(
            store, self._changes, self._monitor, workspace, retention=retention or Retention(), lock=self._lock
        )
        self._has_met = False
        self._problem = ""
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    # ---- the thread

    def start(self, *, every_s: float = 0.5, clock: Callable[[], float] = time.time) -> None:
        """Begin to work in a thread of its own; starting twice does nothing.

        Args:
            every_s: seconds between looks; what people ask for is done sooner.
            clock: seconds since 1970.
        """
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, args=(every_s, clock), name="supervisor", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """End the thread and let go of the workspace; workers work on. Closing twice does nothing."""
        self._closing.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
        self._removal.close()
        self._process_lock.close()

    def tick(self, now: float) -> None:
        """Do everything once: attend to the workers, start what can start. What ``start`` does again and again.

        Args:
            now: seconds since 1970.

        Raises:
            ZigguratError: where the store fails; the next tick tries again.
        """
        if not self._has_met:
            self._removal.finish()
            adopt_running_workers(self._store, self._executor, self._monitor, self._changes, now)
            self._has_met = True
        self._monitor.attend(now)
        nodes = self._executor.nodes()
        self._dispatcher.apply(nodes, now)
        is_low = any(node.disk_free_bytes < node.disk_reserve_bytes for node in nodes[:1])
        self._removal.empty_trash(now, disk_is_low=is_low)

    def _work(self, every_s: float, clock: Callable[[], float]) -> None:
        while not self._closing.is_set():
            self._woken.clear()
            try:
                self.tick(clock())
                self._problem = ""
            except ZigguratError as error:
                self._report(str(error))
            except Exception as error:  # a thread that ends would leave all jobs alone
                _LOG.exception("the jobs cannot be brought forward")
                self._report(f"{type(error).__name__}: {error}")
            self._woken.wait(every_s)

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            _LOG.error("the jobs cannot be brought forward: %s", problem)
        self._problem = problem

    # ---- what people ask for

    def submit(self, new: NewJob) -> Job:
        """Put a job, whose folder has its ``spec.json``, into the queue.

        Raises:
            JobError: where the folder has no spec, the id is taken, or a job that it needs is not there.
            StorageError: where the folder cannot be written.
        """
        folder = JobFolder(Path(new.folder))
        if not folder.spec.is_file():
            raise JobError(
                "The folder of a new job has a spec.json.", received=new.folder, advice="Write the spec there first."
            )
        with self._lock:
            for job_id in new.depends_on:
                self._store.jobs.get(job_id)
            write_job_file(folder.path, record_of(new))
            job = self._store.jobs.add(new)
        self._tell("added", job.id)
        return job

    def stop(self, job_id: str, reason: str = "asked to stop", *, at_once: bool = False) -> None:
        """Ask a job to save and end; one in the queue leaves it.

        A worker that does not end gets SIGTERM after a grace period, and is killed after a further one. Asked again,
        the next of these comes at once.

        Args:
            job_id: of the job.
            reason: one sentence, which says who asked.
            at_once: kill the worker; what was not saved is lost.

        Raises:
            JobError: where it has ended.
            StorageError: where the request cannot be written; it is tried again.
        """
        self._end(job_id, "stop", reason, at_once=at_once)

    def pause(self, job_id: str, reason: str = "paused") -> None:
        """Stop a job, to resume it later: it is shown as paused."""
        self._end(job_id, "pause", reason)

    def resume(self, job_id: str) -> None:
        """Put a job that was stopped or failed back into the queue; it goes on from its newest checkpoint."""
        self._back_into_queue(job_id, "resume")

    def retry(self, job_id: str) -> None:
        """Put a job that failed back into the queue; it goes on from its newest checkpoint."""
        self._back_into_queue(job_id, "retry")

    def delete(self, job_id: str, *, force: bool = False, now: float | None = None) -> None:
        """Delete a job; its folder lies in the trash for as long as the rules of retention say.

        Args:
            job_id: of the job.
            force: kill a worker that is at it; delete also what jobs that ended were made from. One whose folder is
                outside of the workspace is taken out of the list, and the folder stays.
            now: seconds since 1970.

        Raises:
            JobError: where it is in use or running, or its folder is outside of the workspace.
            StorageError: where its folder cannot be moved away; then nothing is deleted.
        """
        self._removal.delete(job_id, force=force, now=time.time() if now is None else now)
        self._tell("deleted", job_id)

    def restore(self, job_id: str) -> Path:
        """Move the folder of a deleted job back and return it; the store is told of it by who calls.

        Raises:
            JobError: where it is not deleted, is removed from the disk already, or something lies at its place.
            StorageError: where it cannot be moved.
        """
        return self._removal.restore(job_id)

    def trash(self) -> list[Discarded]:
        """Return the deleted jobs that can be restored, the newest first."""
        return self._removal.trash()

    def remove_now(self, job_id: str) -> None:
        """Remove a deleted job from the disk.

        Raises:
            JobError: where it is not deleted, or is removed already.
        """
        self._removal.remove_now(job_id)

    def change(self, job_id: str, change: JobChange, now: float | None = None) -> None:
        """Change name, notes, project, priority or tags of a job.

        Raises:
            JobError: where there is no such job.
            ConfigurationError: where a text has control characters.
            StorageError: where its folder cannot be written; then nothing is changed.
        """
        check_job_texts(name=change.name, project=change.project, tags=change.tags, notes=change.notes)
        with self._lock:
            job = self._store.jobs.get(job_id)
            if Path(job.folder).is_dir():
                write_job_file(Path(job.folder), record_of(job, change))
            self._store.jobs.change(job_id, change, time.time() if now is None else now)
        self._changes.tell("changed", job_id)
        if change.priority is not None:  # nothing else of it matters to the queue
            self.wake()

    def set_priority(self, job_id: str, priority: int) -> None:
        """Let a job be started sooner (more) or later (less) than others; 0 is usual."""
        self.change(job_id, JobChange(priority=priority))

    def reorder(self, job_id: str, before: str | None = None) -> None:
        """Place a job of the queue before another one, or last.

        Raises:
            JobError: where one of them is not in the queue.
        """
        with self._lock:
            for each in (job_id, *([before] if before is not None else [])):
                job = self._store.jobs.get(each)
                if job.state != "queued":
                    raise JobError(
                        "Only jobs in the queue are reordered.",
                        received=f"job {each} is {job.state}",
                        advice="Look at the queue again: it changed meanwhile.",
                    )
            self._store.jobs.reorder(job_id, before=before)
            order = [job.id for job in in_order(self._store.jobs.in_states(("queued",)))]
            try:
                write_queue_order(self._workspace, order)
            except StorageError as error:  # it is needed after a lost database only
                _LOG.warning("%s", error)
        self._tell("changed", job_id)

    def tidy(self, now: float | None = None) -> dict[str, list[str]]:
        """Remove the checkpoints of ended jobs that need not be kept; return their names by job."""
        return self._removal.tidy(time.time() if now is None else now)

    def owns(self, folder: Path) -> bool:
        """Return whether a job folder, and not only a link to it, is in the workspace."""
        return self._removal.owns(folder)

    # ---- what people look at

    @property
    def version(self) -> int:
        """Grows with every change; what ``wait_for_change`` returned last."""
        return self._changes.version

    def wait_for_change(self, since: int, timeout_s: float = 10.0) -> int:
        """Wait until the version is above ``since``, at most so long; return the version."""
        return self._changes.wait(since, timeout_s)

    def waiting(self) -> Mapping[str, Waiting]:
        """Return why each job of the queue waits, by its id, as of the newest plan."""
        return self._dispatcher.waiting

    def forced_end(self, job_id: str) -> float | None:
        """Return when a worker that does not stop is next forced to, in seconds since 1970; None where it is not."""
        return self._monitor.forced_end(job_id)

    def problems(self) -> dict[str, str]:
        """Return what goes wrong at the moment: by the id of a job, or by an empty id where it is no single job."""
        return {**self._monitor.problems, **({"": self._problem} if self._problem else {})}

    def nodes(self) -> Sequence[NodeResources]:
        """Return the machines that jobs can be put on, the studio's own first."""
        return self._executor.nodes()

    def accelerators(self) -> dict[str, int]:
        """Return how many accelerators each node has for jobs, in use or not; nodes without any are left out."""
        counts = {node.name: sum(device.usable for device in node.devices) for node in self.nodes()}
        return {name: count for name, count in counts.items() if count}

    def node_problem(self) -> str:
        """Return what keeps further machines from being used; empty if nothing does."""
        return self._executor.problem()

    def wake(self) -> None:
        """Let the thread look at once, and plan anew."""
        self._dispatcher.look_again()
        self._woken.set()

    # ---- parts

    def _end(self, job_id: str, event: str, reason: str, *, at_once: bool = False) -> None:
        with self._lock:
            before = self._store.jobs.get(job_id)
            is_again = before.state == "stopping" and before.paused == (event == "pause")
            said = plain_reason(before.reason) if is_again else reason
            job = self._changes.request(job_id, event, paused=event == "pause", reason=said)
            try:
                if job.is_active and at_once:
                    self._monitor.kill(job, reason)
                elif job.is_active and is_again:
                    self._monitor.hurry(job)
                elif job.is_active:
                    self._monitor.ask_to_stop(job, reason)
            finally:
                self.wake()

    def _back_into_queue(self, job_id: str, event: str) -> None:
        fields = {"paused": False, "reason": "", "health": "", "exit_code": None}
        with self._lock:
            self._changes.request(job_id, event, **fields)
        self.wake()

    def _tell(self, kind: str, job_id: str) -> None:
        self._changes.tell(kind, job_id)
        self.wake()


SUPERVISOR_LOCK: Final = ".supervisor.lock"
"""File in the workspace that the supervisor's process holds."""


class SupervisorLock(ProcessLock):
    """The lock of a workspace.

    Args:
        workspace: the folder of everything; made where it is not there.

    Raises:
        JobError: where another supervisor is at work.
        StorageError: where the file cannot be made.
    """

    def __init__(self, workspace: Path) -> None:
        def taken(holder: str) -> JobError:
            return JobError(
                f"One studio at a time starts the jobs of {workspace}.",
                received=f"process {holder} does so",
                advice="Use that one, end it first, or choose another workspace.",
            )

        with storage_errors(workspace):
            workspace.mkdir(parents=True, exist_ok=True)
        path = workspace / SUPERVISOR_LOCK
        super().__init__(path, taken, f"A studio locks its workspace by the file {path}.")


_QUIET_STATES: Final = ("queued", "stopped", "failed")
_FRESH_S: Final = 60.0


def adopt_running_workers(
    store: JobStore, executor: Executor, monitor: WorkerMonitor, changes: JobTransitions, now: float
) -> None:
    """Reconcile jobs without a worker with their folders, which take precedence over the store.

    Args:
        store: where the jobs are.
        executor: knows who is alive.
        monitor: attends to what is alive after all.
        changes: changes states.
        now: seconds since 1970.
    """
    for job in store.jobs.in_states(_QUIET_STATES):
        folder = JobFolder(Path(job.folder))
        heartbeat = read_heartbeat(folder.heartbeat)
        is_fresh = heartbeat is not None and now - heartbeat.time < _FRESH_S
        if _size(folder) == job.events_offset and not is_fresh:
            continue
        worker = executor.adopt(folder.path, heartbeat, job.worker) if is_fresh else None
        if worker is not None and heartbeat is not None:
            fields = {"started": heartbeat.time, "ended": None, "reason": "", **worker_fields(worker)}
            if changes.apply(job, "adopt", **fields):
                monitor.take_on(job, worker)
            continue
        monitor.read_on(job, now)
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
