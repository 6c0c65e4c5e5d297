"""Processes of one training, started as a launcher does it, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run_together(program: Path, arguments: Sequence[Sequence[Any]]) -> list[subprocess.CompletedProcess[str]]:
    """Run a program in one process for each list of arguments, and wait for all of them; one alone has no launcher."""
    port, size = str(_free_port()), len(arguments)
    started = []
    for rank, words in enumerate(arguments):
        place = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, str(program), *map(str, words)]
        environment = {**os.environ, **(place if size > 1 else {}), "PYTHONPATH": str(program.parent)}
        pipe: Any = subprocess.PIPE
        started.append(subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True))
    ended = []
    for process in started:
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:  # it hangs: a test compares its exit code
            process.kill()
            out, err = process.communicate()
        ended.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    return ended


def _free_port() -> int:
    """Return a port whose neighbor above is free, too: the processes meet there."""
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                two.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port
