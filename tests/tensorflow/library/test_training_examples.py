"""The programs of ``examples/training`` run as they stand: some steps, an evaluation, files that are read again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

FOLDER = Path(__file__).parents[3] / "examples/training"


def run(program: str, *arguments: object) -> str:
    """Run an example in a process of its own; return what it printed."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{program}.py"), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def latest(folder: Path) -> dict[str, float]:
    """Return the numbers of the last epoch."""
    lines = (folder / "stats.json").read_text().splitlines()
    return json.loads(lines[-1])


@pytest.mark.nightly
def test_mnist_convnet_learns_and_resumes(tmp_path: Path) -> None:
    run("mnist_convnet", "--epochs", 1, "--out", tmp_path)
    first = latest(tmp_path)
    run("mnist_convnet", "--epochs", 3, "--out", tmp_path)
    assert latest(tmp_path)["validation_error"] < min(0.2, first["validation_error"])
    assert (tmp_path / "min-validation_error.index").is_file()


@pytest.mark.parametrize("towers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_cifar_resnet_learns(tmp_path: Path, towers: int) -> None:
    run("cifar_resnet", "--epochs", 2, "--towers", towers, "--out", tmp_path)
    assert latest(tmp_path)["validation_error"] < 0.5  # by chance 0.75


@pytest.mark.nightly
def test_imagenet_resnet_trains(tmp_path: Path) -> None:
    run("imagenet_resnet", "--epochs", 2, "--size", 32, "--out", tmp_path)
    assert latest(tmp_path)["val-error-top1"] < 0.75


@pytest.mark.nightly
@pytest.mark.parametrize("program", ["dcgan", "image_to_image"])
def test_gans_train_both_networks(tmp_path: Path, program: str) -> None:
    run(program, "--epochs", 1, "--steps", 12, "--out", tmp_path)
    numbers = latest(tmp_path)
    assert {"d_loss"} < set(numbers)
    assert all(value == value for value in numbers.values() if isinstance(value, float))


@pytest.mark.nightly
def test_char_rnn_writes_text(tmp_path: Path) -> None:
    run("char_rnn", "--epochs", 3, "--out", tmp_path)
    assert latest(tmp_path)["perplexity"] < 15
    written = run("char_rnn", "--out", tmp_path, "--sample", 40, "--start", "Now is")
    assert re.search("Now is.{20,}", written, re.DOTALL)  # what it writes may have line breaks


@pytest.mark.nightly
def test_dqn_learns_to_catch(tmp_path: Path) -> None:
    run("dqn", "--epochs", 5, "--out", tmp_path)
    assert latest(tmp_path)["caught"] > 0.6  # by chance a quarter
