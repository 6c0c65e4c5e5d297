"""The end by force of a worker that is known by its job folder alone."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

import psutil

from ziggurat.entities import read_heartbeat
from ziggurat.entities.processes import is_shim
from ziggurat.errors import JobError
from ziggurat.layout import JobFolder

__all__ = ["kill_worker"]

_ENDS_WITHIN_S: Final = 15.0
_ALLOWANCE_S: Final = 1.0


def kill_worker(folder: JobFolder) -> None:
    """Kill the worker in a folder and all that it started, and wait for its end; one that has ended is no error.

    Raises:
        JobError: where it is on another machine, or does not end.
    """
    heartbeat = read_heartbeat(folder.heartbeat)
    if heartbeat is None:
        return
    if heartbeat.host != socket.gethostname():
        raise JobError(
            "A worker is killed on its own machine.",
            received=f"{folder.path}, whose worker is on {heartbeat.host}",
            advice=f"Call there: ziggurat stop {folder.path} --now",
        )
    with contextlib.suppress(psutil.NoSuchProcess):
        worker = psutil.Process(heartbeat.pid)
        if worker.create_time() > heartbeat.time + _ALLOWANCE_S:
            return  # another process with the same number
        shim = worker.parent()
        has_shim = shim is not None and is_shim(shim.cmdline())
        started = worker.children(recursive=True)
        worker.kill()
        for process in [] if has_shim else started:  # a shim ends them itself, also those that escaped
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        _, left = psutil.wait_procs([shim] if has_shim and shim is not None else [worker], _ENDS_WITHIN_S)
        if any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in left):
            raise JobError(
                "A worker that is killed ends.",
                received=f"process {heartbeat.pid} is still there: a disk or a driver holds it",
                advice="Look at that disk or driver; the process ends with what it waits for.",
            )
