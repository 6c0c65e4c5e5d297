"""Fakes for the job tests: an in-memory store, and an executor whose workers are files."""

from __future__ import annotations

import json
import os
import socket
import threading
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ziggurat.entities import (
    Device,
    Heartbeat,
    Job,
    JobChange,
    NewJob,
    NodeResources,
    ResourceRequest,
    Share,
    WorkerRef,
    write_heartbeat,
)
from ziggurat.errors import JobError, StorageError
from ziggurat.events import AttemptEnded, AttemptStarted, Event, EventFile, ScalarLogged
from ziggurat.jobs.executor import Ended, Running
from ziggurat.layout import JobFolder

HOST = socket.gethostname()


class MemoryJobs:
    """The jobs, in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, Job] = {}
        self.moved: list[tuple[str, str]] = []
        """Each change of a state: id and state after it."""
        self._lock = threading.Lock()

    def add(self, new: NewJob) -> Job:
        with self._lock:
            if new.id in self.rows:
                raise JobError("The id of a job must be its own.", received=new.id)
            values = {part.name: getattr(new, part.name) for part in fields(NewJob)}
            position = 1.0 + max((job.position for job in self.rows.values()), default=0.0)
            self.rows[new.id] = Job(**values, state="queued", position=position)
            return self.rows[new.id]

    def get(self, job_id: str) -> Job:
        job = self.find(job_id)
        if job is None:
            raise JobError("There is no such job.", received=job_id)
        return job

    def find(self, job_id: str) -> Job | None:
        return self.rows.get(job_id)

    def some(self, job_ids: Any) -> list[Job]:
        return [self.rows[job_id] for job_id in job_ids if job_id in self.rows]

    def in_states(self, states: Any) -> list[Job]:
        return [job for job in list(self.rows.values()) if job.state in states]

    def change(self, job_id: str, change: JobChange, now: float) -> Job:
        values = {part.name: getattr(change, part.name) for part in fields(JobChange)}
        self.note(job_id, **{name: value for name, value in values.items() if value is not None})
        return self.get(job_id)

    def move(self, job_id: str, from_states: Any, to_state: str, **columns: Any) -> bool:
        with self._lock:
            if self.get(job_id).state not in from_states:
                return False
            self.rows[job_id] = replace(self.rows[job_id], state=to_state, **columns)
            self.moved.append((job_id, to_state))
            return True

    def note(self, job_id: str, **columns: Any) -> None:
        with self._lock:
            self.rows[job_id] = replace(self.get(job_id), **columns)

    def reorder(self, job_id: str, *, before: str | None) -> None:
        if job_id == before:
            return
        order = sorted((job.position, job.id) for job in self.rows.values() if job.id != job_id)
        place = len(order) if before is None else [each for _, each in order].index(before)
        for position, each in enumerate([*[each for _, each in order[:place]], job_id, *[e for _, e in order[place:]]]):
            self.note(each, position=float(position))

    def dependents(self, job_id: str) -> list[Job]:
        return [job for job in self.rows.values() if job_id in job.depends_on]

    def delete(self, job_id: str) -> bool:
        return self.rows.pop(job_id, None) is not None


class MemoryEvents:
    """What events say, in memory: just what was taken."""

    def __init__(self, jobs: MemoryJobs) -> None:
        self._jobs = jobs
        self.taken: dict[str, list[Event]] = {}
        self.lost: list[str] = []
        self.is_full = False

    def take(self, job_id: str, offset: int, next_offset: int, events: Any) -> bool:
        if self.is_full:
            raise StorageError("The store must be writable.", received="no space left on device")
        if self._jobs.get(job_id).events_offset != offset:
            return False
        self.taken.setdefault(job_id, []).extend(events)
        self._jobs.note(job_id, events_offset=next_offset)
        return True

    def reset(self, job_id: str) -> None:
        self.taken[job_id] = []
        self._jobs.note(job_id, events_offset=0)

    def lose_attempt(self, job_id: str, reason: str) -> None:
        self.lost.append(job_id)


class MemoryStore:
    """A store that forgets."""

    def __init__(self) -> None:
        self.jobs = MemoryJobs()
        self.events = MemoryEvents(self.jobs)


@dataclass
class FakeExecutor:
    """Workers that do what the test says; they live in this object, however many supervisors come and go."""

    now: float = 1000.0
    alive: dict[Path, int] = field(default_factory=dict)
    codes: dict[int, int | None] = field(default_factory=dict)
    started: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    terminated: list[str] = field(default_factory=list)
    attempts: dict[Path, int] = field(default_factory=dict)
    machines: list[NodeResources] = field(default_factory=lambda: [NodeResources()])
    refuses: str = ""
    broken: str = ""
    next_pid: int = 100_000_000  # above all that a system gives

    def nodes(self) -> list[NodeResources]:
        return [replace(node, name=node.name or HOST) for node in self.machines]

    def problem(self) -> str:
        return self.broken

    def start(self, job_folder: Path, placement: Any, environment: Any, *, attempt: int) -> WorkerRef:
        if self.refuses:
            raise StorageError("The log of a job must be written.", received=self.refuses)
        self.next_pid += 1
        assert job_folder not in self.alive, "two workers in one folder"
        assert self.attempts.get(job_folder, 0) < attempt, "the number of an attempt grows"
        self.attempts[job_folder] = attempt
        self.alive[job_folder] = self.next_pid
        self.started.append((job_folder.name, placement[0].devices))
        self.say(job_folder, AttemptStarted(time=self.now, attempt=1, pid=1, host=HOST, backend="null", release="0"))
        self.beat(job_folder)
        return self._ref(job_folder)

    def poll(self, worker: WorkerRef) -> Running | Ended:
        if self.alive.get(_folder(worker)) == worker.opaque["pid"]:
            return Running()
        return Ended(self.codes.get(worker.opaque["pid"]))

    def ask_to_stop(self, worker: WorkerRef, reason: str) -> None:
        JobFolder(_folder(worker)).stop_request.write_text(reason + "\n")

    def terminate(self, worker: WorkerRef) -> None:
        if self.alive.get(_folder(worker)) == worker.opaque["pid"]:
            self.terminated.append(_folder(worker).name)

    def kill(self, worker: WorkerRef) -> None:
        if self.alive.get(_folder(worker)) == worker.opaque["pid"]:
            self.end(_folder(worker), code=-9)

    def adopt(self, folder: Path, heartbeat: Heartbeat | None, worker: WorkerRef | None = None) -> WorkerRef | None:
        return self._ref(folder) if folder in self.alive else None

    # ---- what a test lets a worker do

    def start_by_shell(self, folder: Path) -> None:
        self.start(folder, (Share(HOST),), {}, attempt=self.attempts.get(folder, 0) + 1)

    def say(self, folder: Path, *events: Event) -> None:
        file = EventFile(JobFolder(folder).events)
        file.write(*events)
        file.close()

    def beat(self, folder: Path) -> None:
        write_heartbeat(JobFolder(folder).heartbeat, Heartbeat(pid=self.alive[folder], host=HOST, time=self.now))

    def put(self, folder: Path, step: int, value: float = 0.5) -> None:
        self.say(folder, ScalarLogged(time=self.now, tag="cost", value=value, step=step, epoch=1))

    def end(self, folder: Path, outcome: str = "", code: int = 0, reason: str = "") -> None:
        """Let it end, with the words for an outcome, or without a word."""
        pid = self.alive.pop(folder)
        self.codes[pid] = code
        if outcome:
            self.say(folder, AttemptEnded(time=self.now, outcome=outcome, exit_code=code, reason=reason))
        JobFolder(folder).stop_request.unlink(missing_ok=True)

    def _ref(self, folder: Path) -> WorkerRef:
        opaque = {"folder": str(folder), "pid": self.alive[folder]}
        return WorkerRef(executor="fake", node=HOST, attempt=self.attempts.get(folder, 0), opaque=opaque)


def _folder(worker: WorkerRef) -> Path:
    return Path(worker.opaque["folder"])


def new_job(workspace: Path, job_id: str, /, **changes: Any) -> NewJob:
    """Return a job whose folder is there."""
    folder = workspace / "jobs" / job_id
    folder.mkdir(parents=True, exist_ok=True)
    JobFolder(folder).spec.write_text(json.dumps({"kind": "train", "name": job_id}))
    values: dict[str, Any] = {"id": job_id, "kind": "train", "name": job_id, "folder": os.fspath(folder), "spec": {}}
    return NewJob(**{**values, "created": 900.0, **changes})


def a_job(name: str, state: str = "queued", *, position: float = 0.0, gpus: int = 0, **changes: Any) -> Job:
    """Return a job for the plan."""
    changes.setdefault("needs", ResourceRequest(devices=gpus, slot="device" if gpus else "cpu"))
    values: dict[str, Any] = {"id": name, "kind": "train", "name": name, "state": state, "folder": "", "spec": {}}
    values["position"] = position
    return Job(**{**values, **changes})


def gpus(count: int, memory_bytes: int = 16_000_000_000) -> tuple[Device, ...]:
    """Return accelerators of which nobody uses anything."""
    return tuple(
        Device(index=index, name="test", memory_bytes=memory_bytes, free_bytes=memory_bytes) for index in range(count)
    )


def machine(devices: int = 0, **changes: Any) -> NodeResources:
    """Return what a machine has."""
    return NodeResources(devices=gpus(devices), **changes)
