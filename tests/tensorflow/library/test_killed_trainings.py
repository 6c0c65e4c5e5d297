"""Trainings on two towers and over two processes that are killed, and go on bit for bit."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched_processes import run_together

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import PeriodicTrigger
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.layout import JobFolder
from ziggurat.tf.process_states import PartStore, newest_of_all
from ziggurat.tf.processes import Place
from ziggurat.tf.savers import MinSaver, ModelSaver
from ziggurat.tf.trainers import SimpleTrainer

pytestmark = pytest.mark.usefixtures("cold_starts")

_PROGRAM = Path(__file__).with_name("killed_program.py")


def _run(folders: Sequence[Path], *arguments: int) -> list[subprocess.CompletedProcess[str]]:
    """Run the program, in a process for each folder."""
    for folder in folders:
        folder.mkdir(exist_ok=True)
    return run_together(_PROGRAM, [[folder, *arguments] for folder in folders])


def _codes(ended: Sequence[subprocess.CompletedProcess[str]]) -> list[int]:
    return [each.returncode for each in ended]


def _known(folder: Path, rank: int) -> Any:
    return json.loads((folder / f"known-{rank}.json").read_text())


def _assert_goes_on_as_if_whole(whole: Path, parts: Path, size: int) -> None:
    for rank in range(size):
        one, other = _known(whole, rank), _known(parts, rank)
        assert one["arrays"] == other["arrays"], rank
        assert min(map(int, other["costs"])) == 13
        assert other["costs"] == {step: one["costs"][step] for step in other["costs"]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes reach that nobody kills."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    ended = _run([folder, folder])
    assert _codes(ended) == [0, 0], ended[0].stderr + ended[1].stderr
    return folder


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes leave whose first is killed."""
    folder = tmp_path_factory.mktemp("killed") / "run"
    first, second = _run([folder, folder], 14)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert second.returncode == 1, second.stderr
    assert "another process of the training has ended" in second.stderr
    return folder


@pytest.mark.timeout(600)
def test_two_towers_go_on_bit_for_bit_after_a_kill(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert _codes(_run([parts], 14)) == [-signal.SIGKILL]
    assert _codes(_run([parts]) + _run([whole])) == [0, 0]
    _assert_goes_on_as_if_whole(whole, parts, 1)


@pytest.mark.nightly
def test_processes_must_begin_at_the_same_step(killed: Path, tmp_path: Path) -> None:
    ended = _run([killed, tmp_path / "other"])
    for each in ended:
        assert each.returncode != 0
        assert "begin at the same step" in each.stderr


@pytest.mark.nightly
def test_two_processes_go_on_bit_for_bit_after_a_kill(killed: Path, whole: Path) -> None:
    ended = _run([killed, killed])
    assert _codes(ended) == [0, 0], ended[0].stderr + ended[1].stderr
    _assert_goes_on_as_if_whole(whole, killed, 2)
    assert _known(whole, 0)["costs"] != _known(whole, 1)["costs"]  # each draws its own batches


@pytest.mark.timeout(600)
def test_a_wrapped_saver_saves_in_every_process() -> None:
    with tf.Graph().as_default():
        trainer = SimpleTrainer()
    trainer.is_chief = False
    assert trainer.register_callback(PeriodicTrigger(ModelSaver(), every_k_epochs=2))
    assert not trainer.register_callback(PeriodicTrigger(MinSaver("cost"), every_k_epochs=2))


# ---- the parts of run states


def _state(step: int, rank: int) -> RunState:
    names = {"w": 1.0, "w/Momentum": 2.0, "beta1_power": 3.0, "mean/EMA": 4.0}
    arrays = {name: np.float32(value + 10 * rank) for name, value in names.items()}
    return RunState({"global_step": step, "batches": f"of {rank}", "random": rank}, arrays)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A training over two processes; the second is one save behind."""
    first = CheckpointStore(JobFolder(tmp_path).checkpoints)
    second = PartStore(tmp_path, 1, lambda: {"w"})
    for step in (4, 8):
        first.save(_state(step, 0))
    second.save(_state(4, 1))
    return tmp_path


@pytest.mark.timeout(600)
def test_a_part_leaves_weights_to_the_first_process(folder: Path) -> None:
    (part,) = CheckpointStore(JobFolder(folder / "processes" / "1").checkpoints).list()
    assert set(CheckpointStore(part.path.parent).load(part.name).arrays) == {"beta1_power", "mean/EMA"}
    state = newest_of_all(folder, Place(1, 2))
    assert state is not None
    assert {name: float(array) for name, array in state.arrays.items()} == {
        "w": 1.0,
        "w/Momentum": 2.0,
        "beta1_power": 13.0,
        "mean/EMA": 14.0,
    }


@pytest.mark.timeout(600)
def test_all_processes_choose_the_newest_common_step(folder: Path) -> None:
    states = [newest_of_all(folder, Place(rank, 2)) for rank in (0, 1)]
    assert [each.meta for each in states if each] == [_state(4, rank).meta for rank in (0, 1)]
    alone = newest_of_all(folder, Place())
    assert alone is not None
    assert alone.meta["global_step"] == 8


@pytest.mark.timeout(600)
def test_without_parts_the_others_begin_with_their_data(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    states = [newest_of_all(folder, Place(rank, 3)) for rank in (0, 2)]
    assert "have saved nothing for step 8" in caplog.text
    assert [each.meta for each in states if each] == [
        {"global_step": 8, "batches": "of 0", "random": 0},
        {"global_step": 8, "batches": None, "random": None},
    ]


@pytest.mark.timeout(600)
def test_an_empty_folder_has_no_state_for_any_process(tmp_path: Path) -> None:
    assert [newest_of_all(tmp_path, Place(rank, 2)) for rank in (0, 1)] == [None, None]
