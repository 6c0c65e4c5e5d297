"""The networks of the two DIGITS guides train as they stand, by the command line, on scikit-learn's digits.

The guides are not part of the project: where their folder is not there, these tests are skipped. Only the indentation,
which the published texts lost, is put back; every line is the guide's own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.events import effective_scalars, read_events

SHARED = Path(os.environ.get("ZIGGURAT_SHARED", Path(__file__).parents[2].parent / "shared"))
GUIDES = sorted((SHARED / "seeds").glob("000_*.txt"))
pytestmark = pytest.mark.skipif(not GUIDES, reason="the DIGITS guides are not on this machine")

LENET = "0 1 1 2 2 2 2 23 23 3 3 3 3 3 3 3 3 3 1 1 2 2 2 2"
AUTOENCODER = "0 1 1 2 2 2 2 2 23 23 3 3 3 3 3 3 3 3 3 3 2 1 1 2 2 2 2 2 2"
"""Indentation of each line, in steps of four blanks; 23 for a continued argument list."""


def networks() -> list[list[str]]:
    """Return the lines of every class in the guide, up to its last statement."""
    found: list[list[str]] = []
    lines = GUIDES[0].read_text().splitlines()
    for number, line in enumerate(lines):
        if line == "class UserModel(Tower):":
            ends = [n for n in range(number, len(lines)) if lines[n] == "return loss"]
            found.append(lines[number : ends[0] + 1])
    return found


def restored(lines: list[str], indents: str) -> str:
    levels = [int(level) for level in indents.split()]
    assert len(levels) == len(lines), "\n".join(lines)
    return "\n".join(" " * (4 * level) + line for level, line in zip(levels, lines, strict=True)) + "\n"


def train(network: str, folder: Path, *flags: str) -> dict[str, list[float]]:
    """Train by the command line; return tag → values."""
    path = folder / "network.py"
    path.write_text(network)
    command = [sys.executable, "-m", "ziggurat", "train", "--framework", "tensorflow", "--network", str(path)]
    done = subprocess.run(
        [*command, "--data", "digits", "--out", str(folder / "job"), *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    curves: dict[str, list[float]] = {}
    for scalar in effective_scalars(read_events(folder / "job" / "events.jsonl")[0]):
        curves.setdefault(scalar.tag, []).append(scalar.value)
    return curves


def test_the_guides_lenet_reaches_98_percent_in_ten_epochs(tmp_path: Path) -> None:
    source = restored(networks()[1], LENET)
    curves = train(
        source, tmp_path, "--epochs", "10", "--batch-size", "16", "--schedule", "cosine", "--learning-rate", "0.02"
    )
    assert max(curves["validation_accuracy"]) >= 0.98
    assert len(curves["accuracy"]) > 200, "from the first step on"


@pytest.mark.nightly
def test_the_guides_autoencoder_learns_to_copy(tmp_path: Path) -> None:
    source = restored(networks()[2], AUTOENCODER)
    assert "_x" in source
    curves = train(
        source, tmp_path, "--epochs", "10", "--batch-size", "16", "--optimizer", "adam", "--learning-rate", "0.001",
        "--schedule", "cosine",
    )  # fmt: skip
    pixels = load_digits().data / 16 * 255
    # The cost has the regularisation in it; the guide's network sees pixels from 0 to 255.
    assert curves["validation_cost"][-1] < np.var(pixels) / 4
    log = (tmp_path / "job" / "log.txt").read_text()
    assert "reads `_x` without defining it" in log
    assert json.loads((tmp_path / "job" / "preprocessing.json").read_text())["size"] == [28, 28]
