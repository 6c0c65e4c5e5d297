"""Conformance suites for executors: one that passes starts workers, finds them again, and leaves no orphans.

``ExecutorConformance`` holds for all executors; ``LocalExecutorConformance`` adds what only processes of this machine
can show. A small stand-in replaces ``python -m ziggurat.worker``. It does what its ``spec.json`` says and communicates
through the same files, so that the suites take seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from ziggurat.entities import EXIT_STOPPED, Heartbeat, Share, WorkerRef, read_heartbeat, write_heartbeat
from ziggurat.errors import JobError, StorageError, ZigguratError
from ziggurat.layout import JobFolder

__all__ = ["STAND_IN", "ExecutorConformance", "LocalExecutorConformance"]

STAND_IN = """
import json, os, signal, socket, subprocess, sys, time

folder = sys.argv[-1]
asked = json.load(open(os.path.join(folder, "spec.json")))


def write(name, content):
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        json.dump(content, file)
    os.replace(path + ".new", path)


def beat():
    write("heartbeat.json", {"pid": os.getpid(), "host": socket.gethostname(), "time": time.time()})


def escaped():
    # A process that leaves group, session, parent and environment of this one.
    said, says = os.pipe()
    if os.fork() == 0:
        os.setsid()
        child = subprocess.Popen(["sleep", "60"], env={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.write(says, b"%d" % child.pid)
        os._exit(0)
    os.wait()
    return int(os.read(said, 20))


print("begun", flush=True)
if asked.get("beats", True):
    beat()
child = subprocess.Popen(["sleep", "60"]).pid if asked.get("has_child") else None
away = escaped() if asked.get("has_escaped") else None
if asked.get("is_deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
write("said.json", {"pid": os.getpid(), "child": child, "away": away, "environment": dict(os.environ)})
last = time.time() + asked.get("for_s", 0)
while time.time() < last:
    if os.path.exists(os.path.join(folder, "stop.json")):
        os._exit(75)
    time.sleep(0.01)
os._exit(asked.get("exit_code", 0))
"""
"""Text of the stand-in.

Its ``spec.json``: ``for_s`` until it ends, ``exit_code``, ``has_child``, ``has_escaped``, ``is_deaf``, ``beats``.
"""

_LONG_S = 30
_KILLED = (-9, None)
"""Exit codes of a worker that was killed; None where it is not known."""


class ExecutorConformance(ABC):
    """What holds for all executors.

    Subclass it in a test file (as ``class TestMyExecutor(ExecutorConformance)``) and give it the method.
    """

    at_most_s: float = 30.0
    """How long anything may take."""

    @abstractmethod
    def executor(self, command: Sequence[str]) -> Any:
        """Return a new executor, as another process would make it, whose workers are started by a command.

        Its first node has no accelerators that matter: devices 1 and 3 are passed on to the worker as they are.
        """

    def setup_method(self) -> None:
        """Before each test."""
        self._folders: set[Path] = set()

    def teardown_method(self) -> None:
        """Leave no worker behind, whatever the test found."""
        for path in [path for folder in self._folders for path in folder.glob("job*/said.json")]:
            said = json.loads(path.read_text())
            _end([said["pid"], said["child"], said["away"]])

    def test_nodes_have_names_of_their_own(self, tmp_path: Path) -> None:
        """There is one at least, and jobs are placed by their names."""
        names = [node.name for node in self._made(tmp_path).nodes()]
        assert names
        assert all(names)
        assert len(names) == len(set(names))

    def test_a_worker_ends_by_itself(self, tmp_path: Path) -> None:
        """Its exit code comes back, again and again."""
        executor = self._made(tmp_path)
        worker = self._start(executor, _job(tmp_path, exit_code=7))
        assert self._wait_for_end(executor, worker) == 7
        assert executor.poll(worker).exit_code == 7

    def test_a_worker_is_running_until_it_ends(self, tmp_path: Path) -> None:
        """Polling does not wait."""
        executor = self._made(tmp_path)
        worker = self._start(executor, _job(tmp_path, for_s=_LONG_S))
        assert not _has_ended(executor.poll(worker))
        executor.kill(worker)

    def test_a_reference_comes_back_from_json(self, tmp_path: Path) -> None:
        """As the store keeps it; and it says node and attempt."""
        executor = self._made(tmp_path)
        worker = self._start(executor, _job(tmp_path, for_s=_LONG_S), attempt=3)
        again = WorkerRef(**json.loads(json.dumps(asdict(worker))))
        assert again == worker
        assert (again.node, again.attempt) == (executor.nodes()[0].name, 3)
        assert not _has_ended(executor.poll(again))
        executor.kill(again)
        assert self._wait_for_end(executor, worker) in _KILLED

    def test_a_share_on_an_unknown_node_starts_nothing(self, tmp_path: Path) -> None:
        """Whole or not at all."""
        executor, folder = self._made(tmp_path), _job(tmp_path)
        shares = (Share(executor.nodes()[0].name), Share("a node that is not there", (), (1,)))
        error = _error_of(JobError, lambda: executor.start(folder, shares, {}, attempt=1))
        assert "a node that is not there" in str(error)
        assert executor.adopt(folder, None) is None
        assert not JobFolder(folder).log.exists()

    def test_it_sees_its_devices_and_no_others(self, tmp_path: Path) -> None:
        """A job on the processors sees none."""
        executor = self._made(tmp_path)
        self._start(executor, _job(tmp_path, "job1"), (1, 3))
        self._start(executor, _job(tmp_path, "job2"))
        assert self._said(tmp_path, "job1")["environment"]["CUDA_VISIBLE_DEVICES"] == "1,3"
        assert self._said(tmp_path, "job2")["environment"]["CUDA_VISIBLE_DEVICES"] == ""

    def test_it_gets_the_variables_of_its_job(self, tmp_path: Path) -> None:
        """Besides those of the executor."""
        self._start(self._made(tmp_path), _job(tmp_path), environment={"OF_THE_JOB": "1"})
        assert self._said(tmp_path)["environment"]["OF_THE_JOB"] == "1"

    def test_its_output_is_added_to_the_log(self, tmp_path: Path) -> None:
        """What an earlier attempt wrote stays."""
        executor, folder = self._made(tmp_path), _job(tmp_path)
        JobFolder(folder).log.write_text("earlier\n")
        self._wait_for_end(executor, self._start(executor, folder))
        assert JobFolder(folder).log.read_text() == "earlier\nbegun\n"

    def test_a_log_that_cannot_be_written_is_an_error(self, tmp_path: Path) -> None:
        """And there is no worker."""
        executor = self._made(tmp_path)
        error = _error_of(StorageError, lambda: self._start(executor, tmp_path / "nowhere"))
        assert "log.txt" in str(error)

    def test_asked_to_stop_it_ends_in_order(self, tmp_path: Path) -> None:
        """By the request in its folder, which says why."""
        executor, folder = self._made(tmp_path), _job(tmp_path, for_s=_LONG_S)
        worker = self._start(executor, folder)
        executor.ask_to_stop(worker, "the test asks")
        assert JobFolder(folder).stop_request.read_text() == "the test asks\n"
        assert self._wait_for_end(executor, worker) == EXIT_STOPPED

    def test_killed_it_ends(self, tmp_path: Path) -> None:
        """Killing it again does nothing."""
        executor = self._made(tmp_path)
        worker = self._start(executor, _job(tmp_path, for_s=_LONG_S))
        self._said(tmp_path)
        executor.kill(worker)
        assert self._wait_for_end(executor, worker) in _KILLED
        executor.kill(worker)
        assert executor.poll(worker).exit_code in _KILLED

    def test_terminated_it_may_end_or_not(self, tmp_path: Path) -> None:
        """By SIGTERM, which a worker may ignore; a kill is not to be ignored."""
        executor = self._made(tmp_path)
        usual = self._start(executor, _job(tmp_path, "job1", for_s=_LONG_S))
        deaf = self._start(executor, _job(tmp_path, "job2", for_s=_LONG_S, is_deaf=True))
        for name, worker in (("job1", usual), ("job2", deaf)):
            self._said(tmp_path, name)
            executor.terminate(worker)
        assert self._wait_for_end(executor, usual) == -15
        executor.terminate(usual)  # it has ended: nothing happens
        assert not _has_ended(executor.poll(deaf))
        executor.kill(deaf)
        assert self._wait_for_end(executor, deaf) in _KILLED

    def test_another_executor_adopts_it(self, tmp_path: Path) -> None:
        """By what the store and its heartbeat say; and it can poll it, and kill it."""
        folder = _job(tmp_path, for_s=_LONG_S)
        started = self._start(self._made(tmp_path), folder, attempt=2)
        self._said(tmp_path)
        other = self._made(tmp_path)
        worker = other.adopt(folder, read_heartbeat(JobFolder(folder).heartbeat), started)
        assert worker == started
        assert not _has_ended(other.poll(worker))
        other.kill(worker)
        assert self._wait_for_end(other, worker) in _KILLED
        assert other.adopt(folder, read_heartbeat(JobFolder(folder).heartbeat)) is None

    def test_nobody_is_adopted_where_nobody_is(self, tmp_path: Path) -> None:
        """In a folder that nothing was started in."""
        assert self._made(tmp_path).adopt(_job(tmp_path), None) is None

    def _start(
        self,
        executor: Any,
        folder: Path,
        devices: tuple[int, ...] = (),
        *,
        environment: dict[str, str] | None = None,
        attempt: int = 1,
    ) -> Any:
        share = Share(executor.nodes()[0].name, devices)
        return executor.start(folder, (share,), environment or {}, attempt=attempt)

    def _made(self, folder: Path) -> Any:
        self._folders.add(folder)
        script = folder / "stand_in.py"
        script.write_text(STAND_IN)
        return self.executor((sys.executable, "-S", str(script)))

    def _said(self, folder: Path, name: str = "job") -> dict[str, Any]:
        path = folder / name / "said.json"
        self._wait(path.exists)
        return json.loads(path.read_text())

    def _wait_for_end(self, executor: Any, worker: Any) -> int | None:
        self._wait(lambda: _has_ended(executor.poll(worker)))
        return executor.poll(worker).exit_code

    def _wait(self, condition: Callable[[], bool]) -> None:
        last = time.monotonic() + self.at_most_s
        while not condition():
            assert time.monotonic() < last, f"waited {self.at_most_s:.0f} s"
            time.sleep(0.01)


class LocalExecutorConformance(ExecutorConformance):
    """What processes of this machine can show besides: nothing outlives a worker, and its number tells who it is."""

    def test_its_number_is_that_of_its_process(self, tmp_path: Path) -> None:
        """The process that was started is the worker itself."""
        worker = self._start(self._made(tmp_path), _job(tmp_path, for_s=_LONG_S))
        assert worker.opaque["pid"] == self._said(tmp_path)["pid"]

    def test_a_request_that_cannot_be_written_is_an_error(self, tmp_path: Path) -> None:
        """The caller must know."""
        executor, folder = self._made(tmp_path), _job(tmp_path, for_s=_LONG_S)
        worker = self._start(executor, folder)
        self._said(tmp_path)
        folder.rename(tmp_path / "job-elsewhere")
        error = _error_of(StorageError, lambda: executor.ask_to_stop(worker, "the test asks"))
        assert "The stop request must be written" in str(error)

    def test_a_folder_that_was_moved_is_used_where_it_is(self, tmp_path: Path) -> None:
        """A worker of a moved workspace is asked to stop at the new place."""
        executor, folder = self._made(tmp_path), _job(tmp_path, for_s=_LONG_S)
        started = self._start(executor, folder)
        self._said(tmp_path)
        moved = folder.rename(tmp_path / "job-elsewhere")
        worker = executor.adopt(moved, read_heartbeat(JobFolder(moved).heartbeat), started)
        executor.ask_to_stop(worker, "the test asks")
        assert JobFolder(moved).stop_request.read_text() == "the test asks\n"

    def test_killed_it_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """What it started ends with it; killing it again does nothing."""
        executor = self._made(tmp_path)
        worker = self._start(executor, _job(tmp_path, for_s=_LONG_S, has_child=True))
        child = self._said(tmp_path)["child"]
        executor.kill(worker)
        assert self._wait_for_end(executor, worker) == -9
        executor.kill(worker)
        self._wait(lambda: not _is_alive(child))

    def test_ended_it_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """A process that loads data must not outlive its worker."""
        executor = self._made(tmp_path)
        worker = self._start(executor, _job(tmp_path, has_child=True))
        child = self._said(tmp_path)["child"]
        self._wait_for_end(executor, worker)
        self._wait(lambda: not _is_alive(child))

    def test_a_process_that_escaped_ends_with_it(self, tmp_path: Path) -> None:
        """One that left group, session and parent is no exception: after the worker's own end, and after a kill."""
        executor = self._made(tmp_path)
        for name, for_s in (("job1", 0), ("job2", _LONG_S)):
            worker = self._start(executor, _job(tmp_path, name, for_s=for_s, has_escaped=True))
            away = self._said(tmp_path, name)["away"]
            if for_s:
                executor.kill(worker)
            assert self._wait_for_end(executor, worker) == (-9 if for_s else 0)
            assert not _is_alive(away)

    def test_one_that_escaped_from_an_adopted_worker_ends_too(self, tmp_path: Path) -> None:
        """The process that started the worker may be gone."""
        folder = _job(tmp_path, for_s=_LONG_S, has_escaped=True)
        self._start(self._made(tmp_path), folder)
        away = self._said(tmp_path)["away"]
        other = self._made(tmp_path)
        worker = other.adopt(folder, read_heartbeat(JobFolder(folder).heartbeat))
        other.kill(worker)
        self._wait_for_end(other, worker)
        assert not _is_alive(away)

    def test_one_that_the_store_does_not_know_is_adopted(self, tmp_path: Path) -> None:
        """The shell may have started it, or a release that stored only process and machine."""
        folder = _job(tmp_path, for_s=_LONG_S)
        executor = self._made(tmp_path)
        started = self._start(executor, folder, attempt=2)
        self._said(tmp_path)
        worker = self._made(tmp_path).adopt(folder, read_heartbeat(JobFolder(folder).heartbeat))
        assert (worker.opaque, worker.attempt) == (started.opaque, 0)
        executor.kill(started)
        assert self._wait_for_end(executor, started) == -9

    def test_one_without_a_heartbeat_is_adopted_too(self, tmp_path: Path) -> None:
        """The process that started it may have been killed a moment later."""
        folder = _job(tmp_path, for_s=_LONG_S, beats=False)
        executor = self._made(tmp_path)
        started = self._start(executor, folder)
        self._said(tmp_path)
        worker = self._made(tmp_path).adopt(folder, None)
        assert worker is not None
        assert worker.opaque["pid"] == started.opaque["pid"]
        executor.kill(started)
        assert self._wait_for_end(executor, started) == -9

    def test_a_process_that_began_after_the_heartbeat_is_not_adopted(self, tmp_path: Path) -> None:
        """It is another one with the same number."""
        folder, path = _job(tmp_path), JobFolder(tmp_path / "job").heartbeat
        beat = Heartbeat(pid=os.getpid(), host=os.uname().nodename, time=psutil.Process().create_time() - 60)
        write_heartbeat(path, beat)
        assert self._made(tmp_path).adopt(folder, read_heartbeat(path)) is None


def _job(folder: Path, name: str = "job", **asked: Any) -> Path:
    path = folder / name
    path.mkdir()
    JobFolder(path).spec.write_text(json.dumps(asked))
    return path


def _error_of(kind: type[ZigguratError], act: Callable[[], object]) -> ZigguratError:
    try:
        act()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def _has_ended(state: Any) -> bool:
    return hasattr(state, "exit_code")


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _end(pids: Sequence[int | None]) -> None:
    for pid in pids:
        if pid is not None and _is_alive(pid):
            psutil.Process(pid).kill()
