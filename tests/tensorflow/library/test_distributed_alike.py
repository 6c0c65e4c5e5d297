"""Processes of one training do the same: rates, lengths of epochs, and ends; where they cannot, none of them hangs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = Path(__file__).with_name("distributed_alike_program.py")


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


def _run(folder: Path, what: str) -> tuple[list[int], list[str], list[Any]]:
    """Run two processes; return their exit codes, what they said on standard error, and their outcomes."""
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    environment = {**os.environ, **place, "PYTHONPATH": str(_PROGRAM.parent)}
    command = [sys.executable, str(_PROGRAM), str(folder), what]
    started = [
        subprocess.Popen(command, env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120)[1] for process in started]
    files = [folder / f"rank-{rank}.json" for rank in range(2)]
    outcomes = [json.loads(file.read_text()) for file in files if file.is_file()]
    return [process.returncode for process in started], said, outcomes


def test_all_have_the_rates_of_the_first_and_the_fewest_steps(tmp_path: Path) -> None:
    codes, said, (one, two) = _run(tmp_path, "rates")
    assert codes == [0, 0], said
    assert one == two
    assert one["learning_rate"] == pytest.approx([0.001])
    assert (one["steps"], one["step"]) == (6, 24)
    assert "another process has fewer batches" in said[0]


def test_a_callback_of_the_first_process_completes_all(tmp_path: Path) -> None:
    codes, said, (one, two) = _run(tmp_path, "complete")
    assert codes == [0, 0], said
    assert one["step"] == two["step"] in (17, 18)
    assert one["outcome"] == "done"


def test_processes_that_begin_apart_end_with_an_error(tmp_path: Path) -> None:
    codes, said, _ = _run(tmp_path, "apart")
    assert codes == [1, 1]
    assert all("rank 1 begins at step 0, epochs 2 to 4" in text for text in said), said
