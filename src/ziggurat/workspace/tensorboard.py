"""TensorBoard as a process beside a job: on a free loopback port, ended with all its children."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from ziggurat.errors import JobError, MissingDependencyError

__all__ = ["TensorBoard", "wait_for_signal"]

_HOST: Final = "127.0.0.1"
_END_WITHIN_S: Final = 5.0


class TensorBoard:
    """Serves a folder of TensorBoard event files until it is closed; use it as a context manager.

    Args:
        folder: the event files; it need not be there yet.
        ready_within_s: longest time to wait for it to answer.
        sleep: waits so many seconds.

    Raises:
        MissingDependencyError: where TensorBoard is not installed.
        JobError: where it does not answer; its own words are shown.
    """

    def __init__(
        self, folder: Path, *, ready_within_s: float = 60.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            raise MissingDependencyError("tensorboard", extra="tensorboard", purpose="showing curves in a browser")
        self._port = _free_port()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tensorboard.main", "--logdir", str(folder)),
                *("--host", _HOST, "--port", str(self._port), "--reload_interval", "2"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._words,
            stderr=subprocess.STDOUT,
            process_group=0,  # it starts a helper of its own, which must end with it
        )
        try:
            self._wait_for_answer(ready_within_s, sleep)
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://{_HOST}:{self._port}/"

    def close(self) -> None:
        """End it and its helpers; closing twice does nothing."""
        if self._process.returncode is None:
            _signal_group(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(_END_WITHIN_S)
            except subprocess.TimeoutExpired:
                pass
            _signal_group(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._words.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _wait_for_answer(self, ready_within_s: float, sleep: Callable[[float], None]) -> None:
        last = time.monotonic() + ready_within_s
        while time.monotonic() < last and self._process.poll() is None:
            try:
                socket.create_connection((_HOST, self._port), timeout=1).close()
                return
            except OSError:
                sleep(0.1)
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").strip().splitlines()
        raise JobError(
            f"TensorBoard must answer at {self.address}.",
            received=words[-1] if words else "nothing",
            advice="Look at its installation with: ziggurat doctor",
        )


def wait_for_signal() -> None:
    """Wait until somebody presses Ctrl-C or ends this process, which then goes on instead of dying."""
    watched = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    signal.sigwait(watched)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return probe.getsockname()[1]


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass
