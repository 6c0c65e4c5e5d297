"""Batch normalization over the processes of a training equals that of one process on the whole batch."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

PROGRAM = Path(__file__).with_name("distributed_layers_program.py")


def run(folder: Path, size: int, engine: str) -> list[dict[str, np.ndarray]]:
    """Train in so many processes; return the variables of each."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, str(PROGRAM), str(folder), engine]
    started = [
        subprocess.Popen(command, env={**os.environ, **place, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(size)
    ]
    for process in started:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
    return [dict(np.load(folder / f"rank-{rank}.npz")) for rank in range(size)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(tmp_path_factory.mktemp("alone") / "run", 1, "collectives")[0]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["collectives", pytest.param("gloo", marks=pytest.mark.nightly)])
def test_statistics_over_two_processes_equal_one(tmp_path: Path, alone: Any, engine: str) -> None:
    if engine == "gloo":
        pytest.importorskip("torch", reason="sums by gloo need PyTorch")
    first, second = run(tmp_path / "run", 2, engine)
    assert len(alone) == 10
    for name, wanted in alone.items():
        np.testing.assert_allclose(first[name], wanted, rtol=1e-4, atol=1e-5, err_msg=name)
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
