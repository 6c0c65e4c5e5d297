"""Parent process of one worker: writes its output into a log of limited size, and ends all that it started.

It is executed as a file by ``python -I -S``, with the standard library alone, so that it starts fast and stays small::

    shim_process.py REPORT LOG LIMIT_BYTES COMMAND...

The descriptor REPORT gets one line: the process number of the worker, or ``error ERRNO``. Without a LOG (an empty
word), the worker writes where this process would, and stays in its session. On Linux, processes whose parents have
ended become children of this one (``PR_SET_CHILD_SUBREAPER``), also those that left session and process group, so none
can outlive the job. It ends as the worker ended: with its exit code, or by its signal.

There are two of it, made by a fork: a worker can kill its parent, and all that it started then comes to the parent
above, which ends it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import re
import resource
import select
import signal
import sys
import time

__all__ = ["Log", "main"]

PR_SET_CHILD_SUBREAPER = 36
PIPE_BYTES = 1 << 20
BLOCK_BYTES = 1 << 18
END_WITHIN_S = 10.0
"""How long the end of the processes that the worker left, and of their output, is waited for."""

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
RESET = (signal.SIGPIPE, signal.SIGXFSZ, *FORWARDED)
MARK = re.compile(rb"^\[Ziggurat: (\d{15}) bytes of output were left out here: the log is limited\.\]\n", re.MULTILINE)
MARK_TEXT = "[Ziggurat: %015d bytes of output were left out here: the log is limited.]\n"
MARK_BYTES = len(MARK_TEXT % 0)
KILLED_TEXT = "Error: the parent process of the worker was killed, perhaps by the code of the job\n"
DROPPED_TEXT = "\n[Ziggurat: %d bytes of output could not be written.]\n"


class Log:
    """A file that keeps its beginning and its newest end where more is written than the limit allows.

    Args:
        path: the file; what is there stays.
        limit_bytes: how large it may become.
    """

    def __init__(self, path: str, limit_bytes: int) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._rewritten = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # Linux appends whatever the offset with O_APPEND
        self._limit_bytes = limit_bytes
        self._dropped_bytes = 0

    def write(self, data: bytes) -> None:
        """Append; what a full disk does not take is left out, and that is said once there is room again."""
        if self._dropped_bytes:
            data = DROPPED_TEXT.encode() % self._dropped_bytes + data
            self._dropped_bytes = 0
        while data:
            try:
                data = data[os.write(self._file, data) :]
            except OSError:
                self._dropped_bytes = len(data)
                break
        if os.fstat(self._file).st_size > self._limit_bytes:
            with contextlib.suppress(OSError):
                self._shorten()

    def _shorten(self) -> None:
        """Take out the middle: afterwards the file has half of the size that it may have."""
        part = self._limit_bytes // 4
        size = os.fstat(self._file).st_size
        head = os.pread(self._rewritten, part + MARK_BYTES, 0)
        mark = MARK.search(head)
        at = mark.start() if mark else head.rfind(b"\n", 0, part) + 1 or part
        before = int(mark[1]) if mark else 0
        source = size - part
        newline = os.pread(self._rewritten, BLOCK_BYTES, source).find(b"\n")
        source += newline + 1
        left_out = source - at - (MARK_BYTES if mark else 0)
        os.pwrite(self._rewritten, (MARK_TEXT % (before + left_out)).encode(), at)
        target = at + MARK_BYTES
        while block := os.pread(self._rewritten, BLOCK_BYTES, source):
            os.pwrite(self._rewritten, block, target)
            source, target = source + len(block), target + len(block)
        os.ftruncate(self._rewritten, target)


def main() -> None:
    """Start the worker below a second process, stay until nothing of it is left, and end as it ended."""
    report, path, limit_bytes, command = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    become_subreaper()
    ended, ending = os.pipe()
    inner = os.fork()
    if not inner:
        os.close(ended)
        supervise(report, path, limit_bytes, command, ending)
    os.close(ending)
    os.dup2(os.open(os.devnull, os.O_WRONLY), report)  # who waits for the report shall notice the end of the other
    for number in FORWARDED:
        signal.signal(number, lambda received, _frame: forward(inner, received))
    pid, status = os.wait()
    while pid != inner:
        pid, status = os.wait()
    end_orphans()
    if not os.read(ended, 1):
        say_killed(path, limit_bytes)
    end_like(status)


def supervise(report: int, path: str, limit_bytes: int, command: list[str], ending: int) -> None:
    """Start the worker, stay until nothing of it is left, and end as it ended.

    Args:
        report: descriptor that gets the process number of the worker.
        path: file for its output; empty for none.
        limit_bytes: how large that file may become.
        command: what starts the worker.
        ending: descriptor that gets a byte at the end; without it, this process was killed.
    """
    become_subreaper()
    log = Log(path or os.devnull, limit_bytes)
    output, inlet = os.pipe()
    woken = wake_at_signals()
    worker = start(command, inlet if path else None, report)
    os.close(inlet)
    for number in FORWARDED:
        signal.signal(number, lambda received, _frame: forward(worker, received))
    status = follow(worker, output, woken, log)
    end_all(worker, output, woken, log)
    os.write(ending, b".")
    end_like(status)


def end_orphans() -> None:
    """Kill what came to this process when the one below was killed, until nothing is left."""
    last = time.monotonic() + END_WITHIN_S
    while time.monotonic() < last and (left := children()):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.wait()


def say_killed(path: str, limit_bytes: int) -> None:
    """Write into the log, or to standard error if there is none, why the worker ended."""
    if path:
        Log(path, limit_bytes).write(KILLED_TEXT.encode())
    else:
        sys.stderr.write(KILLED_TEXT)
        sys.stderr.flush()


def become_subreaper() -> None:
    """Get the orphans among all descendants as children; systems without that have only the process group."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wake_at_signals() -> int:
    """Return a descriptor that can be read after each signal."""
    woken, bell = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return woken


def start(command: list[str], inlet: int | None, report: int) -> int:
    """Start the worker in a group of its own, with its output to a pipe or unchanged, and report its number."""
    os.set_inheritable(report, False)
    actions = [] if inlet is None else [(os.POSIX_SPAWN_DUP2, inlet, 1), (os.POSIX_SPAWN_DUP2, inlet, 2)]
    spawn = functools.partial(
        os.posix_spawn, command[0], command, os.environ, file_actions=actions, setsigmask=(), setsigdef=RESET
    )
    try:
        worker = spawn(setpgroup=0) if inlet is None else spawn(setsid=True)
    except OSError as error:
        os.write(report, b"error %d\n" % (error.errno or errno.EIO))
        os._exit(1)
    if inlet is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(inlet, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with contextlib.suppress(OSError):  # the process that started this one may be gone already
        os.write(report, b"%d\n" % worker)
    os.dup2(os.open(os.devnull, os.O_WRONLY), report)  # closed, a later file would get its number
    return worker


def forward(worker: int, number: int) -> None:
    """Send a signal on to the worker."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, number)


def follow(worker: int, output: int, woken: int, log: Log) -> int:
    """Write down what comes until the worker ends; return its wait status."""
    watched = [woken, output]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
            status = reap(worker)
            if status is not None:
                return status
        if output in ready and not take(output, log):
            watched.remove(output)  # the worker closed its output and works on


def take(output: int, log: Log) -> bool:
    """Write down what is there; return whether more may come."""
    data = os.read(output, PIPE_BYTES)
    log.write(data)
    return bool(data)


def reap(worker: int) -> int | None:
    """Take note of all children that ended; return the wait status of the worker if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return found
            if pid == worker:
                found = status
    return found


def end_all(worker: int, output: int, woken: int, log: Log) -> None:
    """Kill what the worker left until nothing is left, and write down what it still said."""
    last = time.monotonic() + END_WITHIN_S
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker, signal.SIGKILL)
    while time.monotonic() < last and (left := children()):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if output in select.select([output, woken], [], [], 0.05)[0]:
            take(output, log)  # a process that waits for room in the pipe is killed all the same
        reap(worker)
    while output in select.select([output], [], [], 0)[0] and take(output, log) and time.monotonic() < last:
        pass


def children() -> list[int]:
    """Return the children of this process, the adopted ones among them; none where the system has no ``/proc``."""
    me, found = os.getpid(), []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == me:
                    found.append(int(name))
    return found


def end_like(status: int) -> None:
    """End with the exit code, or by the signal, of a wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)


if __name__ == "__main__":
    main()
