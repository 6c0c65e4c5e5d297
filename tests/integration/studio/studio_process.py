"""Studio in a process of its own, started with ``ziggurat up``."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ziggurat.cli.application import Application
from ziggurat.cli.main import main

__all__ = ["Answer", "StudioProcess", "call", "tiny_training"]


class StudioProcess:
    """``ziggurat up`` in a workspace; it says its address in its first line.

    Args:
        workspace: the folder.
        words: further words of ``ziggurat up``.
    """

    def __init__(self, workspace: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [*_command(workspace), "up", "--port", "0", "--no-open", "--json", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.said: dict[str, Any] = json.loads(line)
        self.address: str = self.said["address"]

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal, wait for the end, and return the exit code and what was said to people."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


@dataclass(frozen=True)
class Answer:
    """What one call of ``ziggurat`` gave."""

    returncode: int
    stdout: str
    stderr: str


def call(workspace: Path | None, *words: str) -> Answer:
    """Call ``ziggurat`` once, in this process: a new one would take seconds to begin.

    Args:
        workspace: None for that of the settings.
        words: of the call.
    """
    out, err = io.StringIO(), io.StringIO()
    place = [] if workspace is None else ["--workspace", str(workspace)]
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*place, *words], Application())
    return Answer(code, out.getvalue(), err.getvalue())


def tiny_training(epochs: int) -> dict[str, Any]:
    """Return the spec of a training of the null backend on small digits."""
    return {
        "kind": "train",
        "version": 1,
        "name": "tiny",
        "backend": "null",
        "backend_options": {"hidden": 8},
        "network": "mlp",
        "data": "digits",
        "epochs": epochs,
        "steps_per_epoch": 20,
        "batch_size": 4,
        "checkpoints": {"every_epochs": 50},
        "validation": {"every_epochs": 1000},
        "heartbeat_s": 0.2,
    }


def _command(workspace: Path) -> list[str]:
    return [sys.executable, "-m", "ziggurat", "--workspace", str(workspace)]
