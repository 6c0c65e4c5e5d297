"""What the four doors of the studio share: handwritten digits in folders of classes, and how good a network must be."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from tests.integration.studio.studio_process import StudioProcess

__all__ = ["EPOCHS", "LENET", "check_confusion", "check_curves", "curl", "digit_folders", "studio_of_digits"]

EPOCHS = 10
LENET = {"network": "lenet", "backend": "tensorflow", "epochs": EPOCHS, "batch_size": 32, "seed": 3}
LENET |= {"optimizer": "adam", "learning_rate": 0.002, "schedule": "fixed"}
LENET |= {"checkpoints": {"keep_best": {"tag": "validation_accuracy", "mode": "max"}, "keep_last": None}}
_PICTURES = 600
_LEAST_ACCURACY = 0.85
"""Far above the tenth that guessing gives, and below what every run came to."""


def digit_folders(root: Path) -> Path:
    """Write scikit-learn's first digits as images of 8 x 8 pixels, one folder for each of the ten classes."""
    pictures, labels = (np.asarray(each)[:_PICTURES] for each in load_digits(return_X_y=True))
    for number, (picture, label) in enumerate(zip(pictures.reshape(-1, 8, 8), labels, strict=True)):
        path = root / str(label) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.uint8(picture * 15.9)).save(path)
    return root


@contextmanager
def studio_of_digits(place: Path) -> Iterator[tuple[StudioProcess, Path]]:
    """Give a studio in a process of its own, and the folder of digits below the home that it offers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        digits = digit_folders(place / "digits")
        studio = StudioProcess(place / "workspace")
    try:
        yield studio, digits
    finally:
        studio.end(15)


def curl(*words: str) -> str:
    """Call curl, and return what it printed."""
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--fail-with-body", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_curves(curves: Mapping[str, Mapping[str, Any]]) -> None:
    """Assert that a training got better, and good."""
    losses, accuracies = curves["validation_cost"]["values"], curves["validation_accuracy"]["values"]
    assert len(losses) == len(accuracies) == EPOCHS + 1
    assert losses[-1] < losses[0] / 2
    assert accuracies[-1] > _LEAST_ACCURACY
    steps = curves["cost"]["steps"]
    assert steps == sorted(set(steps))


def check_confusion(figures: Mapping[str, Any], samples: int) -> None:
    """Assert that a confusion matrix counts every sample of a split once, and agrees with the accuracy."""
    confusion = np.asarray(figures["confusion"])
    assert confusion.shape == (10, 10)
    assert confusion.sum() == figures["samples"] == samples
    assert confusion.trace() / samples == pytest.approx(figures["accuracy"], abs=1e-6)
    assert figures["accuracy"] > _LEAST_ACCURACY
