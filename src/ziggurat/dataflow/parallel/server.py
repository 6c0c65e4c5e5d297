"""Fork server: a small process that has imported nothing but this package, and starts workers by forking.

A fork of the user's process would copy its threads' locks in whatever state they are, and frameworks that hang in the
child. A fresh interpreter for every worker takes a quarter of a second each. So one fresh interpreter is started and
then forks: a few milliseconds per worker. It has one thread, which lives as long as the process; so the parent-death
signal of its workers is safe whichever thread of the user's process requested them.

Messages are JSON, one per packet. The parent sends ``{"op": "start", "id": …, "settings": …}`` with the worker's
descriptors, and ``{"op": "kill", "id": …}``; the reply to a start is ``{"pid": …}``. A worker's exit status is
written to its status pipe.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import traceback
import warnings
from typing import Any

from ziggurat.dataflow.parallel import lifeline, worker

__all__ = ["DESCRIPTORS_AT_MOST", "STATUS", "main"]

DESCRIPTORS_AT_MOST = 8
STATUS = struct.Struct("<i")
"""What is written to a status pipe: the exit code, or minus the number of the signal."""

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


def main(control_descriptor: int, parent: int) -> None:
    """Serve until the parent closes its end, or ends.

    Args:
        control_descriptor: our end of a pair of sockets (SOCK_SEQPACKET).
        parent: process id of the process that started this one.
    """
    signal.signal(signal.SIGINT, lifeline.go_on)
    signal.signal(signal.SIGTERM, lifeline.go_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with socket.socket(fileno=control_descriptor) as control:
        code = 1
        try:
            _Server(control, parent).serve()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)  # the workers' death signals do the rest


class _Server:
    def __init__(self, control: socket.socket, parent: int) -> None:
        self._control = control
        self._pid = os.getpid()
        self._parent = parent
        self._handle = lifeline.parent_handle(parent)
        self._pids: dict[int, int] = {}
        self._status: dict[int, int] = {}
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lifeline.go_on)

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
        lifeline.die_with_parent_thread()
        if os.getppid() != self._pid:
            os._exit(1)
        worker.close_all_but({0, 1, 2, *own})
        worker.main(own, settings)

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


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
