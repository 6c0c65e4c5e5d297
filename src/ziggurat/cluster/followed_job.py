"""One job that runs on another machine, as the bridge follows it: seeded, started, mirrored, and given up on."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ziggurat.cluster.exchange import APPENDED, Reply, Request, mirrored_files, read_text
from ziggurat.cluster.inputs import Input, inputs_of
from ziggurat.cluster.mirror import Mirror
from ziggurat.cluster.node_cache import inner_path
from ziggurat.entities import EXIT_STOPPED
from ziggurat.errors import StorageError, ZigguratError
from ziggurat.formatting import as_bytes, as_percent, as_rough_duration
from ziggurat.layout import TEST_OPENINGS_FILE, JobFolder

__all__ = ["FollowedJob", "GoneError", "Place", "RemoteWorker", "UnreachableError"]

_PART_BYTES: Final = 1 << 20
_START_PATIENCE_S: Final = 60.0
_AGAIN_S: Final = 0.5
_ROOM_AGAIN_S: Final = 5.0
_SLACK_S: Final = 2.0
"""So long after the end of a lease the job is given up: clocks run at different speeds."""


class UnreachableError(Exception):
    """The node, or the process there that holds the worker, did not answer."""


class GoneError(UnreachableError):
    """What holds the worker is gone for good; a worker that it has started may be alive."""


class RemoteWorker(Protocol):
    """A ``NodeWorker`` on another machine. Every method may raise an ``UnreachableError``."""

    def receive(self, name: str, offset: int, data: bytes) -> None:
        """Write a part of a file of the job."""
        ...

    def see(self, workspace: str) -> None:
        """Let the worker use the studio's workspace, which the node sees."""
        ...

    def stand_for(self, *workspaces: str) -> None:
        """Let paths into the studio's workspace, which the node does not see, mean the copies there.

        Args:
            workspaces: its path, also without links.
        """
        ...

    def take(self, key: str, size_bytes: int, target: str) -> str:
        """Take a folder from the node's cache, or begin to copy it; see ``NodeCache.take``."""
        ...

    def copy(self, name: str, offset: int, data: bytes) -> None:
        """Write the next part of a file of the folder that is copied."""
        ...

    def finish(self, files: Mapping[str, tuple[int, bytes]], target: str) -> None:
        """Compare the copy with the original and take it."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Write a file that the worker may change."""
        ...

    def added(self) -> dict[str, bytes]:
        """Return what the worker added to such files, by name."""
        ...

    def address(self) -> tuple[str, int]:
        """Return the address of the node, and a port that is free there."""
        ...

    def accelerators(self, devices: Sequence[int]) -> list[int]:
        """Return the accelerators that the processes of the node get, given those of the plan."""
        ...

    def is_started(self) -> bool:
        """Return whether the worker was started."""
        ...

    def start(self, devices: Sequence[int], environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Start the worker, once."""
        ...

    def exchange(self, request: Request) -> Reply:
        """Return what the mirror lacks."""
        ...

    def terminate(self) -> None:
        """Send the worker SIGTERM."""
        ...

    def kill(self) -> None:
        """End the worker."""
        ...

    def remove(self) -> None:
        """Remove the folder there, and the process that holds the worker."""
        ...


@dataclass(frozen=True)
class Place:
    """Where a process of a job runs.

    Args:
        node: name of the node.
        workspace: of the studio.
        sees_workspace: whether the node has it under the same path; else what a job reads of it is copied there.
        rank: number of the process, in a job over several nodes; each has a folder of its own for log and events.
    """

    node: str
    workspace: Path
    sees_workspace: bool = True
    rank: int = 0


class _EndedError(Exception):
    """The job was ended by request before its worker was started; the argument is its exit code."""


class FollowedJob:
    """A job on a node. One thread at a time calls ``begin`` or ``look``; any may call the others.

    Args:
        folder: the job folder of the studio.
        attempt: number of the attempt.
        worker: the worker on its node.
        place: where that is.
        lease_s: how long a lease holds.
        clock: seconds, never going back.
        closing: set when the bridge ends.
    """

    def __init__(
        self,
        folder: Path,
        attempt: int,
        worker: RemoteWorker,
        place: Place,
        lease_s: float,
        clock: Callable[[], float],
        closing: threading.Event,
    ) -> None:
        self._closing = closing
        self._source, self.folder = folder, JobFolder(folder).of_rank(place.rank).path
        self.attempt = attempt
        self.worker = worker
        self._place = place
        self._is_begun = self._may_run = False
        self._lease_s = lease_s
        self._clock = clock
        self._mirror: Mirror | None = None
        self._answered = clock()
        self._asked: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._due: float | None = None
        self._hearing = threading.Lock()
        """Held while an answer is taken: until it is on the disk, the job is not given up."""
        self._stop = ""
        self.state: dict[str, Any] = {"state": "running"}
        """``state`` is ``running``, ``ended`` with an ``exit_code``, or ``lost``.

        ``problem`` says what is wrong; ``waits``, why the worker has not begun; ``reason``, why it ended.
        """

    @property
    def members(self) -> Sequence[FollowedJob]:
        """The processes of the job, as ``FollowedGroup`` has them."""
        return (self,)

    @property
    def node(self) -> str:
        """Name of the node."""
        return self._place.node

    # ---- what the studio asks for

    def ask_to_stop(self, reason: str) -> None:
        """Let the worker save and end, at the next exchange."""
        self._stop = reason

    def terminate(self) -> None:
        """Let the worker get SIGTERM, at the next exchange."""
        with self._lock:
            self._asked.append(self.worker.terminate)

    def kill(self) -> None:
        """Let the worker be killed, at the next exchange."""
        with self._lock:
            self._asked.append(self.worker.kill)

    # ---- the thread that follows it

    def begin(self, devices: Sequence[int], environment: Mapping[str, str]) -> None:
        """Send the folder to the node and start the worker; what goes wrong is the end of the attempt."""
        self.attempt_to(self._prepare)
        if self.state["state"] == "running":
            self.start(devices, environment)

    def prepare(self) -> None:
        """Send the folder to the node; what goes wrong is the end of the attempt."""
        self.attempt_to(self._prepare)

    def start(self, devices: Sequence[int], environment: Mapping[str, str]) -> None:
        """Start the worker; what goes wrong is the end of the attempt."""
        self.attempt_to(lambda: self._start(devices, environment))

    def attempt_to(self, act: Callable[[], None]) -> None:
        """Do a part of the beginning; what goes wrong is the end of the attempt."""
        self._is_begun = True
        try:
            act()
        except _EndedError as ended:
            self._remove()
            self.state = {"state": "ended", "exit_code": ended.args[0], "reason": self._stop}
        except UnreachableError:
            self.state = {"state": "lost"}
        except (ZigguratError, OSError) as error:
            with JobFolder(self.folder).log.open("a", encoding="utf-8") as log:
                log.write(f"Error: the worker could not be started on its node: {error}\n")
            self._remove()
            self.state = {"state": "ended", "exit_code": 1, "reason": str(error)}

    def _remove(self) -> None:
        """Remove the worker, which has ended or was not started: it holds accelerators, and perhaps half a copy."""
        with suppress(UnreachableError, ZigguratError, OSError):
            self.worker.remove()

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._send_inputs()
        _drop_torn_line(self.folder / APPENDED[0])
        own = JobFolder(Path())
        for name in (own.spec.name, own.record.name, own.hyperparameters.name, *mirrored_files(self._source)):
            self._send(self._source / name, name)
        for name in APPENDED:
            self._send(self.folder / name, name)
        self.state = {"state": "running"}

    def _start(self, devices: Sequence[int], environment: Mapping[str, str]) -> None:
        self._check_requests()
        self._may_run = True
        self._insist(self.worker.start, devices, environment)
        self.state = {"state": "running"}

    def look(self) -> None:
        """Exchange once with the node, and take what it says."""
        if self.state["state"] != "running":
            return
        try:
            if not self._is_begun and not self.worker.is_started():
                # The bridge that sent the folder was killed meanwhile: what is there is half a job.
                self.worker.remove()
                self._note({"state": "lost", "reason": f"the studio ended while it sent the job to {self._node}"})
                return
            self._is_begun = True
            self._exchange()
        except UnreachableError:
            self._give_up_after_lease()
        except (ZigguratError, OSError) as error:  # such as a full disk of the studio
            self._note({"state": "running", "problem": str(error)})
        finally:
            self._due = None

    def expect_look(self) -> None:
        """Note that ``look`` is called as soon as a thread is free."""
        self._due = self._clock()

    def judge(self) -> None:
        """Give the job up if its lease is over and ``look`` hangs; what that returns later is not heard."""
        due = self._due
        # A bridge that itself stood still asks before it judges.
        if due is not None and self._clock() - due > _SLACK_S and self._hearing.acquire(blocking=False):
            try:
                self._give_up_after_lease()
            finally:
                self._hearing.release()

    def _give_up_after_lease(self) -> None:
        if self._clock() - self._answered > self._lease_s + _SLACK_S:
            self._note({"state": "lost"})

    def _exchange(self) -> None:
        if self._mirror is None:
            self._mirror = Mirror(self.folder, self.attempt)
        self._carry_out_requests()
        hyperparameters = read_text(JobFolder(self._source).hyperparameters)
        reply = self.worker.exchange(self._mirror.request(self._stop, hyperparameters))
        with self._hearing:
            if self.state["state"] != "running":
                return  # given up meanwhile: another attempt may be at work in this folder
            self._answered = self._clock()
            self._mirror.take(reply)
            if reply.has_ended and self._mirror.is_whole:
                self._mirror.close()
                self._take_openings()
                self._remove()
                self._note({"state": "ended", "exit_code": reply.exit_code})
            else:
                self._note({"state": "running"})

    def _carry_out_requests(self) -> None:
        """Do what the studio asked for; what the node does not answer is asked again at the next exchange."""
        while self._asked:
            act = self._asked[0]
            with suppress(ZigguratError, OSError):  # such as that of a worker that has ended
                act()
            with self._lock:
                self._asked.remove(act)

    def _note(self, state: dict[str, Any]) -> None:
        """Change the state; one that was given up, or has ended, stays so."""
        if self.state["state"] == "running":
            self.state = state

    # ---- what it reads of the workspace

    def _send_inputs(self) -> None:
        workspace = self._place.workspace
        if self._place.sees_workspace:
            self._insist(self.worker.see, str(workspace))
            return
        self._insist(self.worker.stand_for, str(workspace), os.path.realpath(workspace))
        for each in inputs_of(self._source, workspace, self._place.node):
            self._send_input(each)
            if each.is_dataset:
                log = each.folder / TEST_OPENINGS_FILE
                self._insist(self.worker.put, f"{each.target}/{log.name}", log.read_bytes() if log.exists() else b"")

    def _send_input(self, each: Input) -> None:
        """Wait until the node has a copy: until there is room, or until another job there has made it."""
        while True:
            self._check_requests()
            try:
                answer = self._insist(self.worker.take, each.key, each.size_bytes, each.target)
                if answer == "there":
                    return
                if answer == "begun":
                    self._copy(each)
                    return
                self._wait(f"waits until another job has copied {each.title} to {self._node}", _AGAIN_S)
            except StorageError as error:
                free = error.details.get("free_bytes", -1)
                if free < 0:
                    raise
                room = f"{as_bytes(free)} of room for copies, and {each.title} has {as_bytes(each.size_bytes)}"
                self._wait(f"{self._node} has {room}: it waits until a job there ends", _ROOM_AGAIN_S)

    def _copy(self, each: Input) -> None:
        began, sent, size = self._clock(), 0, max(1, each.size_bytes)
        files: dict[str, tuple[int, bytes]] = {}
        for name in each.files:
            digest, offset = hashlib.blake2b(digest_size=16), 0
            with (each.folder / name).open("rb") as file:
                while (part := file.read(_PART_BYTES)) or not offset:
                    self._check_requests()
                    self._insist(self.worker.copy, name, offset, part)
                    digest.update(part)
                    offset, sent = offset + len(part), sent + len(part)
                    spent = self._clock() - began
                    rest = f", {as_rough_duration(spent * (size - sent) / sent)}" if sent and spent > 1 else ""
                    text = f"copies {each.title} to {self._node}, {as_percent(min(1.0, sent / size), 0)}{rest}"
                    self.state = {"state": "running", "waits": text}
                    if not part:
                        break
            files[name] = (offset, digest.digest())
        self._insist(self.worker.finish, files, each.target)

    def _take_openings(self) -> None:
        """Add the uses of test splits on the node to the logs of their datasets."""
        for name, data in self.worker.added().items():
            with (self._place.workspace / inner_path(name)).open("ab") as file:
                file.write(data)

    @property
    def _node(self) -> str:
        return f"node {self._place.node}"

    def _wait(self, text: str, seconds: float) -> None:
        self.state = {"state": "running", "waits": text}
        self._answered = self._clock()
        if self._closing.wait(seconds):
            raise UnreachableError("the bridge ends")

    def _check_requests(self) -> None:
        """End the job if that was asked for: there is no worker yet that could."""
        with self._lock:
            if self._asked:
                raise _EndedError(-9)
        if self._stop:
            raise _EndedError(EXIT_STOPPED)

    def _insist(self, act: Callable[..., Any], *values: Any) -> Any:
        """Do something again until it is answered: a new process takes a while on a busy machine."""
        while True:
            try:
                answer = act(*values)
                self._answered = self._clock()
                return answer
            except UnreachableError as error:
                if isinstance(error, GoneError) and not self._may_run:
                    raise  # there is no lease to wait for
                is_over = self._clock() > self._answered + _START_PATIENCE_S
                if is_over or self._closing.wait(_AGAIN_S):
                    raise

    def _send(self, path: Path, name: str) -> None:
        try:
            with path.open("rb") as file:
                offset = 0
                while (part := file.read(_PART_BYTES)) or not offset:
                    self._insist(self.worker.receive, name, offset, part)
                    offset += len(part)
                    if not part:
                        return
        except FileNotFoundError:
            return


def _drop_torn_line(events: Path) -> None:
    """Remove the part of a line that a killed worker left at the end: the next worker would remove it on its node."""
    if not events.exists():
        return
    content_end = events.read_bytes().rfind(b"\n") + 1
    if content_end < events.stat().st_size:
        os.truncate(events, content_end)
