"""Start and termination of worker processes: the three start methods, and the default choice.

- ``"forkserver"`` (the default): a small clean process forks the workers, see ``server``.
- ``"spawn"``: a fresh interpreter for each worker.
- ``"fork"``: a copy of this process. Nothing needs to be pickled, but a copy of a process that has threads or has
  used a framework may hang (TensorFlow and PyTorch do). It is chosen by default only where the program cannot be
  pickled, this process has one thread, and no framework is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ziggurat.dataflow.parallel import lifeline, server, worker

__all__ = [
    "ForkedWorker",
    "ServedWorker",
    "SpawnedWorker",
    "StartMethod",
    "WorkerProcess",
    "frameworks_in_use",
]

StartMethod = Literal["forkserver", "spawn", "fork"]

_FRAMEWORKS = ("tensorflow", "torch", "jax")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")
_END_S = 2.0


class WorkerProcess(ABC):
    """One worker process, however it was started."""

    pid: int

    @abstractmethod
    def exit_code(self, timeout_s: float) -> int | None:
        """Wait for the end; return the exit code, or minus the number of the signal, or None where it has not come."""

    @abstractmethod
    def kill(self) -> None:
        """End the process at once; does nothing where it has ended."""

    def release(self) -> None:
        """Give back what belongs to this process object, after the end."""

    def leave(self) -> None:
        """In a copy of the parent: let go, for the process is not ours."""


class SpawnedWorker(WorkerProcess):
    """A fresh interpreter."""

    def __init__(self, descriptors: Sequence[int], settings: dict[str, Any]) -> None:
        lasting = threading.current_thread() is threading.main_thread()
        arguments = [os.getpid(), lasting, list(descriptors), settings]
        code = "from ziggurat.dataflow.parallel.launch import become_spawned; become_spawned"
        self._process = _start_interpreter(code, arguments, descriptors)
        self.pid = self._process.pid

    def exit_code(self, timeout_s: float) -> int | None:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        self._process.kill()

    def leave(self) -> None:
        self._process.returncode = 0  # or it would complain that it still runs


class ForkedWorker(WorkerProcess):
    """A copy of this process.

    Args:
        descriptors: what the worker gets.
        settings: what the worker is told.
        program: what it runs.
    """

    def __init__(self, descriptors: Sequence[int], settings: dict[str, Any], program: Any) -> None:
        parent, lasting = os.getpid(), threading.current_thread() is threading.main_thread()
        self._code: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on threads; the user asked for it
            pid = os.fork()
        if pid == 0:
            try:
                lifeline.bind_to_parent(parent, by_lasting_thread=lasting)
                worker.main(descriptors, settings, program)
            finally:
                os._exit(1)
        self.pid = pid

    def exit_code(self, timeout_s: float) -> int | None:
        until = time.monotonic() + timeout_s
        while self._code is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self._code = os.waitstatus_to_exitcode(status)
                    break
            if time.monotonic() >= until:
                break
            time.sleep(0.002)
        return self._code

    def kill(self) -> None:
        if self._code is None and self.exit_code(0) is None:
            os.kill(self.pid, signal.SIGKILL)


class ServedWorker(WorkerProcess):
    """A copy of the fork server."""

    def __init__(self, descriptors: Sequence[int], settings: dict[str, Any]) -> None:
        self._status, theirs = os.pipe()
        self._code: int | None = None
        try:
            self._server = _Server.borrow()
            self._id, self.pid = self._server.start([*descriptors, theirs], settings)
        except BaseException:
            os.close(self._status)
            raise
        finally:
            os.close(theirs)

    def exit_code(self, timeout_s: float) -> int | None:
        if self._code is None and select.select([self._status], [], [], timeout_s)[0]:
            status = os.read(self._status, server.STATUS.size)
            # No bytes: the server itself was killed, and its workers with it.
            self._code = server.STATUS.unpack(status)[0] if status else -int(signal.SIGKILL)
        return self._code

    def kill(self) -> None:
        if self._code is None:
            self._server.kill(self._id)

    def release(self) -> None:
        os.close(self._status)
        self._server.give_back()

    def leave(self) -> None:
        os.close(self._status)


class _Server:
    """The fork server as this process sees it; started for the first worker, ended after the last."""

    _current: _Server | None = None
    _lock = threading.RLock()

    def __init__(self) -> None:
        self._users = 0
        self._ids = 0
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            code = "from ziggurat.dataflow.parallel.server import main; main"
            self._process = _start_interpreter(code, [theirs.fileno(), os.getpid()], [theirs.fileno()])
        self._end = weakref.finalize(self, _end_server, self._control, self._process, os.getpid())

    @classmethod
    def borrow(cls) -> _Server:
        """Return the server of this process, with one more user."""
        with cls._lock:
            if cls._current is None:
                cls._current = cls()
            cls._current._users += 1
            return cls._current

    def give_back(self) -> None:
        """Let the last user end the server."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                if _Server._current is self:
                    _Server._current = None
                self._end()

    @classmethod
    def forget(cls) -> None:
        """In a copy of this process: the server is not ours."""
        mine, cls._current, cls._lock = cls._current, None, threading.RLock()
        if mine is not None:
            mine._end.detach()
            mine._control.close()
            mine._process.returncode = 0

    def start(self, descriptors: Sequence[int], settings: dict[str, Any]) -> tuple[int, int]:
        """Return the number of a new worker, and its process id."""
        with self._lock:
            self._ids += 1
            request = {"op": "start", "id": self._ids, "settings": settings}
            try:
                socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)
                return self._ids, json.loads(self._control.recv(65536))["pid"]
            except BaseException:
                if _Server._current is self:  # it was killed: the next user starts another
                    _Server._current = None
                self.give_back()
                raise

    def kill(self, number: int) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._control.send(json.dumps({"op": "kill", "id": number}).encode())


def frameworks_in_use() -> list[str]:
    """Return the imported frameworks that hang in a copy of a process that has used them."""
    return [name for name in _FRAMEWORKS if name in sys.modules]


def become_spawned(parent: int, lasting: bool, descriptors: list[int], settings: dict[str, Any]) -> None:
    """Turn this fresh interpreter into a worker."""
    lifeline.bind_to_parent(parent, by_lasting_thread=lasting)
    worker.main(descriptors, settings)


def _start_interpreter(call: str, arguments: list[Any], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    path = [each or os.getcwd() for each in sys.path]
    words = f"import sys, json; sys.path[:] = json.loads(sys.argv[1]); {call}(*json.loads(sys.argv[2]))"
    # A pool of threads in each of many workers only makes them wait for each other.
    environment = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ}
    with _signals_held():
        return subprocess.Popen(
            [sys.executable, "-c", words, json.dumps(path), json.dumps(arguments)],
            stdin=subprocess.DEVNULL,
            pass_fds=descriptors,
            env=environment,
        )


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Start processes with Ctrl-C held back, until they can handle it: no traceback of a half-started interpreter."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_server(control: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return
    control.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


os.register_at_fork(after_in_child=_Server.forget)
