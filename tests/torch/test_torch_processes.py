"""Several processes of one training, started by ``torchrun`` on this machine."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import joining_program
import library_program
from safetensors.numpy import load_file
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ziggurat.errors import ConfigurationError
from ziggurat.torch import Processes, join_processes

pytestmark = pytest.mark.usefixtures("cold_starts")

PROGRAM = Path(library_program.__file__)
JOINING = Path(joining_program.__file__)


def torchrun(folder: Path, *options: str) -> None:
    """Train in two processes, by the command."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, PROGRAM, folder, "2", *options],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr


def launched(folder: Path, *options: str, restarts: int = 0) -> None:
    """Train in two processes, as ``torchrun`` does."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        run_id=folder.name,
        max_restarts=restarts,
        monitor_interval=0.05,
        start_method="spawn",
    )
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1"):  # as ``torchrun`` sets it: sums depend on it
        elastic_launch(config, library_program.main)([str(folder), "2", *options])


def final(folder: Path, rank: int = 0) -> Any:
    return load_file(folder / f"final-{rank}.safetensors")


def alone(folder: Path, *options: str) -> Any:
    library_program.main([str(folder), "2", *options])
    return final(folder)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed training in two processes."""
    folder = tmp_path_factory.mktemp("together")
    torchrun(folder)
    return folder


@pytest.mark.timeout(600)
def test_two_processes_equal_one(together, tmp_path):
    one, two = alone(tmp_path), final(together)
    for name, values in one.items():
        np.testing.assert_allclose(two[name], values, rtol=1e-4, atol=1e-5)
    for name, values in final(together, 1).items():
        assert np.array_equal(values, two[name])


@pytest.mark.timeout(600)
def test_only_the_first_process_writes_curves(together, tmp_path):
    alone(tmp_path)
    assert len((together / "stats.json").read_text().splitlines()) == 2
    names = [sorted(path.name for path in (folder / "checkpoints").iterdir()) for folder in (together, tmp_path)]
    assert names[0] == names[1]


@pytest.mark.timeout(600)
def test_a_killed_process_is_restarted_and_finishes_alike(together, tmp_path):
    launched(tmp_path, "--kill-at", "11", restarts=1)
    assert (tmp_path / "killed").exists()
    steps = [int(line) for line in (tmp_path / "steps-0").read_text().split()]
    assert steps.count(10) == 2, "it went on from the checkpoint of step 9"
    for name, values in final(together).items():
        assert np.array_equal(final(tmp_path)[name], values)


@pytest.mark.nightly
def test_gradients_may_be_averaged_at_the_end_of_a_step(together, tmp_path):
    launched(tmp_path, "--together")
    for name, values in final(together).items():
        np.testing.assert_allclose(final(tmp_path)[name], values, rtol=1e-5, atol=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("rank", ["0", "1"])
def test_an_end_in_one_process_ends_both(rank, tmp_path):
    launched(tmp_path, "--end-at", "5", "--end-rank", rank)
    for number in ("0", "1"):
        assert (tmp_path / f"steps-{number}").read_text().split()[-1] == "5"
    for name, values in final(tmp_path).items():
        assert np.array_equal(final(tmp_path, 1)[name], values)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("killed_in", ["init_process_group", "new_group"])
def test_a_peer_killed_while_it_joins_is_an_error(killed_in):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    command = [sys.executable, JOINING, killed_in]
    first, second = (
        subprocess.Popen(command, env={**os.environ, **place, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    )
    with first, second:
        try:
            _, said = first.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            first.kill()
            _, said = first.communicate()
        assert second.wait() == -signal.SIGKILL
    assert first.returncode == 1
    assert "Processes of a training reach each other (received: " in said


@pytest.mark.timeout(600)
def test_without_a_launcher_there_is_one_process(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    found = join_processes("cpu")
    assert (found.rank, found.size, found.is_first) == (0, 1, True)
    assert isinstance(found, Processes)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "given", [{"RANK": "0"}, {"RANK": "2", "WORLD_SIZE": "2"}, {"RANK": "x", "WORLD_SIZE": "2"}, {"WORLD_SIZE": "2"}]
)
def test_wrong_variables_of_a_launcher_are_told(given, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    more = {} if len(given) == 1 else {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in {**given, **more}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError):
        join_processes("cpu")


@pytest.mark.timeout(600)
def test_rows_are_split_over_processes_by_their_numbers():
    from ziggurat.backends.torch.batches import row_count, rows_of

    batch = [np.arange(5), {"a": np.arange(10).reshape(5, 2)}, ["v", "w", "x", "y", "z"], 7]
    assert row_count(batch) == 5
    first, second = rows_of(batch, 0, 2), rows_of(batch, 2, 5)
    assert first[0].tolist() == [0, 1]
    assert second[1]["a"].tolist() == [[4, 5], [6, 7], [8, 9]]
    assert second[2:] == [["x", "y", "z"], 7]
