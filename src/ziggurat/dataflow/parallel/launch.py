"""Start and termination of worker processes: the three start methods, the default choice, and the fork server.

- ``"forkserver"`` (the default): a small clean process forks the workers.
- ``"spawn"``: a fresh interpreter for each worker.
- ``"fork"``: a copy of this process. Nothing needs to be pickled, but a copy of a process that has threads or has
  used a framework may hang (TensorFlow and PyTorch do). It is chosen by default only where the program cannot be
  pickled, this process has one thread, and no framework is imported.

The fork server exists because a fork of the user's process would copy its threads' locks in whatever state they are,
and frameworks that hang in the child, while a fresh interpreter for every worker takes a quarter of a second each. So
one fresh interpreter, which has imported nothing but this package, is started and then forks: a few milliseconds per
worker. It has one thread, which lives as long as the process; so the parent-death signal of its workers is safe
whichever thread of the user's process requested them.

Messages to the fork server are JSON, one per packet. The parent sends ``{"op": "start", "id": …, "settings": …}`` with
the worker's descriptors, and ``{"op": "kill", "id": …}``; the reply to a start is ``{"pid": …}``. A worker's exit
status is written to its status pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ziggurat.dataflow.parallel.worker import (
    bind_to_parent,
    close_all_but,
    die_with_parent_thread,
    go_on,
    parent_handle,
    run_worker,
)

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

DESCRIPTORS_AT_MOST = 8
STATUS = struct.Struct("<i")
"""What is written to a status pipe: the exit code, or minus the number of the signal."""

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


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
                bind_to_parent(parent, by_lasting_thread=lasting)
                run_worker(descriptors, settings, program)
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
            status = os.read(self._status, STATUS.size)
            # No bytes: the server itself was killed, and its workers with it.
            self._code = STATUS.unpack(status)[0] if status else -int(signal.SIGKILL)
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
            code = "from ziggurat.dataflow.parallel.launch import serve_forks; serve_forks"
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
    bind_to_parent(parent, by_lasting_thread=lasting)
    run_worker(descriptors, settings)


def _start_interpreter(call: str, arguments: list[Any], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    path = [each or os.getcwd() for each in sys.path]
    words = f"import sys, json; sys.path[:] = json.loads(sys.argv[1]); {call}(*json.loads(sys.argv[2]))"
    # A pool of threads in each of many workers only makes them wait for each other.
    environment = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ}
    with _signals_held():
        # `-c` and not `-m`: no module of the package is then imported a second time as `__main__`.
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


def serve_forks(control_descriptor: int, parent: int) -> None:
    """Serve until the parent closes its end, or ends.

    Args:
        control_descriptor: our end of a pair of sockets (SOCK_SEQPACKET).
        parent: process id of the process that started this one.
    """
    signal.signal(signal.SIGINT, go_on)
    signal.signal(signal.SIGTERM, go_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with socket.socket(fileno=control_descriptor) as control:
        code = 1
        try:
            _ForkServer(control, parent).serve()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)  # the workers' death signals do the rest


class _ForkServer:
    def __init__(self, control: socket.socket, parent: int) -> None:
        self._control = control
        self._pid = os.getpid()
        self._parent = parent
        self._handle = parent_handle(parent)
        self._pids: dict[int, int] = {}
        self._status: dict[int, int] = {}
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, go_on)

    def serve(self) -> None:
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._woken, self._handle):
            if descriptor is not None:
                poll.register(descriptor, _READABLE)
        timeout_ms = None if self._handle is not None else 1000
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(timeout_ms)}
            if self._handle in ready or os.getppid() != self._parent:
                return
            if self._woken in ready:
                os.read(self._woken, 4096)
            self._reap()
            if self._control.fileno() in ready and not self._answer():
                return

    def _answer(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, 65536, DESCRIPTORS_AT_MOST)
        if not message:
            return False
        request: dict[str, Any] = json.loads(message)
        if request["op"] == "kill":
            pid = self._pids.get(request["id"])
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
            return True
        *own, status = descriptors
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's threads, which it handles itself
            pid = os.fork()
        if pid == 0:
            self._become_worker(own, request["settings"])
        for descriptor in own:
            os.close(descriptor)
        self._pids[request["id"]] = pid
        self._status[pid] = status
        self._control.send(json.dumps({"pid": pid}).encode())
        return True

    def _become_worker(self, own: list[int], settings: dict[str, Any]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        die_with_parent_thread()
        if os.getppid() != self._pid:
            os._exit(1)
        close_all_but({0, 1, 2, *own})
        run_worker(own, settings)

    def _reap(self) -> None:
        while self._pids:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._pids = {number: each for number, each in self._pids.items() if each != pid}
            descriptor = self._status.pop(pid)
            try:
                os.write(descriptor, STATUS.pack(os.waitstatus_to_exitcode(status)))
            except BrokenPipeError:
                pass  # the parent did not wait for it
            os.close(descriptor)
