"""Template process of a test session: imports one framework once, and forks what would import it again.

``python -m tests.warm.template FRAMEWORK DESCRIPTOR``, with the descriptor of a listening Unix socket. It opens no
session and no device, which it asserts before each fork: a fork of a framework that computes may wait forever for a
lock of a thread that it does not have. It ends when its parent process ends.

A request is one JSON object with three descriptors (standard input, output and error); see ``tests.warm.start``. The
answers are lines: ``cold``, or ``PID`` of the fork and later its wait status. A request whose connection closes has
lost its process, and the fork is killed with its process group.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import runpy
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.warm.keys import read_at_import

MODULES = {
    "null": (),
    "tensorflow": ("ziggurat.backends.tensorflow.backend",),
    "torch": ("ziggurat.backends.torch.backend",),
}
WORKER_MODULES = (
    "ziggurat.worker.main",
    "ziggurat.worker.commands.process",
    "ziggurat.worker.inference.process",
)
REQUEST_BYTES = 1 << 20
PARENT_WATCH_S = 1.0


@dataclass(frozen=True)
class Template:
    """What this process imported.

    Args:
        framework: name of the framework's package.
        environment: variables that its import read.
        defaults: variables that its import set.
    """

    framework: str
    environment: dict[str, str]
    defaults: dict[str, str]


@dataclass(frozen=True)
class Fork:
    """A forked process and the connection of the command that stands for it."""

    pid: int
    pidfd: int
    connection: socket.socket


def main() -> None:
    """Import the framework, then serve requests until the parent process is gone."""
    framework, descriptor = sys.argv[1:]
    parent = os.getppid()
    before = dict(os.environ)
    listener = socket.socket(fileno=int(descriptor))
    for name in (*MODULES[framework], *WORKER_MODULES):
        importlib.import_module(name)
    # An import sets some variables where they have no value; a process that starts without them gets the same.
    defaults = {name: value for name, value in os.environ.items() if before.get(name) != value}
    template = Template(framework, read_at_import(os.environ), defaults)
    gc.collect()
    gc.freeze()
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while os.getppid() == parent:
        for event, _ in selector.select(PARENT_WATCH_S):
            if event.fileobj is listener:
                accept(listener, selector, template)
            else:
                end_or_kill(event.data, selector)


def accept(listener: socket.socket, selector: selectors.BaseSelector, template: Template) -> None:
    """Take one request, and fork for it or refuse it."""
    connection, _ = listener.accept()
    data, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 3)
    try:
        try:
            request = json.loads(data)
        except ValueError:  # the command was killed before it had asked
            connection.close()
            return
        if (
            len(descriptors) != 3
            or {**read_at_import(template.defaults), **request["read_at_import"]} != template.environment
        ):
            connection.sendall(b"cold\n")
            connection.close()
            return
        assert_untouched(template)
        pid = os.fork()
        if pid == 0:
            selector.close()
            listener.close()
            connection.close()
            run(request, descriptors, template.defaults)
        with_own_group(pid)
        fork = Fork(pid, os.pidfd_open(pid), connection)
        selector.register(fork.pidfd, selectors.EVENT_READ, fork)
        selector.register(connection, selectors.EVENT_READ, fork)
        with suppress(OSError):  # the command was killed meanwhile: its connection ends, and the fork with it
            connection.sendall(b"%d\n" % pid)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def assert_untouched(template: Template) -> None:
    """Refuse to fork once a session, a device or a Python thread was opened here."""
    assert threading.active_count() == 1, threading.enumerate()
    if template.framework == "torch":
        assert not sys.modules["torch"].cuda.is_initialized()
    elif template.framework == "tensorflow":
        from tensorflow.python.eager import context

        assert context.context()._context_handle is None, "TensorFlow opened its devices in the template"


def end_or_kill(fork: Fork, selector: selectors.BaseSelector) -> None:
    """Report the end of a fork; kill it if the command that stands for it is gone."""
    if fork.connection.fileno() < 0:
        return  # both ended at the same time, and this is the second event
    pid, status = os.waitpid(fork.pid, os.WNOHANG)
    if not pid:
        try:
            os.killpg(fork.pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(fork.pid, signal.SIGKILL)
        _, status = os.waitpid(fork.pid, 0)
    selector.unregister(fork.pidfd)
    selector.unregister(fork.connection)
    os.close(fork.pidfd)
    with suppress(OSError):  # the command is gone
        fork.connection.sendall(b"%d\n" % status)
    fork.connection.close()


def with_own_group(pid: int) -> None:
    """Let a fork lead a process group, whichever of the two processes comes first."""
    try:
        os.setpgid(pid, pid)
    except (PermissionError, ProcessLookupError):
        pass


def run(request: dict[str, Any], descriptors: list[int], defaults: dict[str, str]) -> None:
    """Become the process that was asked for; never return."""
    code = 1
    try:
        with_own_group(0)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python starts
        os.chdir(request["folder"])
        os.umask(request["umask"])
        os.nice(request["nice"] - os.nice(0))
        os.environ.clear()
        os.environ.update({**defaults, **request["environment"]})
        sys.path[0] = request["folder"]
        random.seed()
        np.random.seed()
        module, *words = request["words"]
        if "--end-with" in words:
            # The command that stands for this process watches the one that it was started by.
            words[words.index("--end-with") + 1] = str(os.getppid())
        sys.argv = [module, *words]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


if __name__ == "__main__":
    main()
