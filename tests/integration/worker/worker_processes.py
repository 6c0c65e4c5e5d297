"""Real worker processes for the tests; none outlives its test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import worker_plugins

from tests.waiting import wait_until

HERE = Path(__file__).parent


class Worker:
    """A worker that was started.

    Args:
        pid: its process.
        output: file of its standard output and error.
        poll: returns its exit code, or None while it is alive.
    """

    def __init__(self, pid: int, output: Path, poll: Callable[[], int | None]) -> None:
        self.pid = pid
        self._output = output
        self._poll = poll
        self._code: int | None = None

    @property
    def said(self) -> str:
        """What it wrote to standard output and error."""
        return self._output.read_text()

    def is_alive(self) -> bool:
        """Return whether it has not ended yet."""
        if self._code is None:
            self._code = self._poll()
        return self._code is None

    def wait(self, at_most_s: float = 180.0) -> int:
        """Wait for its end; return the exit code, negative for a signal."""
        wait_until(lambda: not self.is_alive(), at_most_s, what="the end of the worker")
        assert self._code is not None
        return self._code

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


class Workers:
    """Starts workers and leaves none behind.

    Args:
        folder: for outputs, and the installed plugins.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        installed = folder / "plugins" / "worker_plugins-1.0.dist-info"
        installed.mkdir(parents=True)
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: worker-plugins\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text(worker_plugins.ENTRY_POINTS)
        path = os.pathsep.join([str(HERE), str(folder / "plugins")])
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ZIGGURAT_")}
        self.environment = {**kept, "PYTHONPATH": path, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        self._server = subprocess.Popen(
            [sys.executable, str(HERE / "worker_forks.py")],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started: list[Worker] = []

    def start(
        self, folder: Path, *options: str, environment: dict[str, str] | None = None, largest_file_bytes: int = 0
    ) -> Worker:
        """Start a worker as a fork of a process that has its modules."""
        return self._fork(
            arguments=[*options, str(folder)],
            environment=environment or {},
            largest_file_bytes=largest_file_bytes,
        )

    def start_saver(self, folder: Path, seed: int) -> Worker:
        """Start a process that saves checkpoints into ``folder`` until it is killed."""
        return self._fork(arguments=[str(folder)], environment={}, largest_file_bytes=0, saver_seed=seed)

    def start_command(self, folder: Path, *options: str, environment: dict[str, str] | None = None) -> Worker:
        """Start a worker as everybody does: ``python -m ziggurat.worker``."""
        output = self._new_output()
        command = [sys.executable, "-m", "ziggurat.worker", *options, str(folder)]
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                env={**self.environment, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        return self._keep(Worker(process.pid, output, process.poll))

    def execute(
        self, folder: Path, strike: str = "", *, variables: dict[str, str] | None = None, **options: Any
    ) -> int:
        """Start a worker and wait for its end; return the exit code.

        Args:
            folder: the job folder.
            strike: how and when it is ended, see ``worker_plugins``.
            variables: further ones of its environment.
            options: of ``start``.
        """
        return self.start(folder, environment={"TEST_STRIKE": strike, **(variables or {})}, **options).wait()

    def close(self) -> None:
        """End the workers that are left, and the process that forks."""
        for worker in self._started:
            if worker.is_alive():
                worker.signal(signal.SIGKILL)
                worker.wait()
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(60)
        self._server.stdout.close()

    def _fork(self, **asked: Any) -> Worker:
        output = self._new_output()
        pid = self._ask({**asked, "output": str(output)})["pid"]
        return self._keep(Worker(pid, output, lambda: self._ask({"poll": pid})["code"]))

    def _keep(self, worker: Worker) -> Worker:
        self._started = [each for each in self._started if each.is_alive()] + [worker]
        return worker

    def _new_output(self) -> Path:
        return self._folder / f"output-{time.monotonic_ns()}.txt"

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())
