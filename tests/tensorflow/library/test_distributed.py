"""Training over processes: equal to one process on the same total batch; stops together; a killed peer is an error."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched_processes import run_together

from ziggurat.errors import ConfigurationError
from ziggurat.tf.processes import Place, place_of

_PROGRAM = Path(__file__).with_name("distributed_program.py")


def _run(folder: Path, size: int, engine: str, *arguments: int) -> list[subprocess.CompletedProcess[str]]:
    folder.mkdir()
    return run_together(_PROGRAM, [[folder, engine, *arguments]] * size)


def _outcome(folder: Path, rank: int) -> Any:
    return json.loads((folder / f"rank-{rank}.json").read_text())


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one process reaches on the whole batches."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    (ended,) = _run(folder, 1, "collectives")
    assert ended.returncode == 0, ended.stderr
    return _outcome(folder, 0)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["collectives", pytest.param("gloo", marks=pytest.mark.nightly)])
def test_two_processes_equal_one(tmp_path: Path, alone: Any, engine: str) -> None:
    if engine == "gloo":
        pytest.importorskip("torch", reason="sums by gloo need PyTorch")
    ended = _run(tmp_path / "run", 2, engine)
    assert [process.returncode for process in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    one, two = _outcome(tmp_path / "run", 0), _outcome(tmp_path / "run", 1)
    assert one == two
    assert one["step"] == alone["step"] == 40
    np.testing.assert_allclose(one["w"], alone["w"], rtol=2e-5)


@pytest.mark.nightly
def test_a_stop_of_one_process_stops_all_at_one_step(tmp_path: Path) -> None:
    ended = _run(tmp_path / "run", 2, "collectives", 12)
    assert [process.returncode for process in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    one, two = _outcome(tmp_path / "run", 0), _outcome(tmp_path / "run", 1)
    assert one["step"] == two["step"] in (13, 14)
    assert (one["stopped"], two["stopped"]) == ("another process was asked to stop", "this process was asked")


@pytest.mark.timeout(600)
def test_a_killed_peer_ends_the_training_with_an_error(tmp_path: Path) -> None:
    began = time.monotonic()
    ended = _run(tmp_path / "run", 2, "collectives", 0, 12)
    assert ended[1].returncode == -signal.SIGKILL
    assert ended[0].returncode not in (0, None)
    assert "another process of the training has ended" in ended[0].stderr
    assert time.monotonic() - began < 60  # it hangs, or not


@pytest.mark.timeout(600)
def test_a_peer_killed_before_the_first_step_is_an_error(tmp_path: Path) -> None:
    # The other one waits in the sum of the first values, which a closed session does not cancel.
    ended = _run(tmp_path / "run", 2, "collectives", 0, -1)
    assert [process.returncode for process in ended] == [1, -signal.SIGKILL]
    assert "another process of the training has ended (received: rank 1" in ended[0].stderr


@pytest.mark.timeout(600)
def test_place_is_read_from_the_variables_of_a_launcher() -> None:
    variables = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "node-0", "MASTER_PORT": "29500"}
    assert place_of(variables) == Place(3, 4, 1, "node-0", 29500)
    assert place_of({}) == Place(0, 1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"RANK": "0"}, "WORLD_SIZE"),
        ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "below WORLD_SIZE"),
        ({"RANK": "x", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "whole numbers"),
    ],
)
def test_variables_that_do_not_fit_are_refused(variables: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        place_of(variables)
    assert said in str(error.value)
