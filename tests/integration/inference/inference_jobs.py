"""Shared parts of the inference tests: a trained job, its images, a fake worker."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.made_once import trained_once
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.images import encode_image
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

Pictures = list[tuple[str, bytes]]

STAND_IN = (sys.executable, str(Path(__file__).with_name("inference_stand_in.py")))
"""Starts what speaks like a warm process at once, and does odd things where it is asked to."""

SPEC = {
    "kind": "train",
    "version": 1,
    "data": "digits",
    "batch_size": 32,
    "seed": 3,
    "epochs": 2,
    "backend": "null",
    "network": "mlp",
    "schedule": "fixed",
    "monitors": ["events"],
}
"""Spec of a small job."""


def digits_job() -> Path:
    """Return a small classifier of digits that a worker trained without a framework; cropped, less a mean image."""
    return train("mlp", backend="null", learning_rate=0.1, preprocessing={"crop": 24, "mean": "image"})


def lenet_job() -> Path:
    """Return a LeNet that a worker trained."""
    preprocessing = {"crop": 24, "mean": "image"}
    return train("lenet", backend="tensorflow", epochs=4, learning_rate=0.02, preprocessing=preprocessing)


def train(network: str, **changes: Any) -> Path:
    """Return a job that is done."""
    return trained_once(network, {**SPEC, "network": network, **changes})


def write_spec(folder: Path, **changes: Any) -> Path:
    """Return a job folder with nothing but a spec."""
    folder.mkdir()
    save_spec(parse_spec({**SPEC, **changes}, source="a test"), JobFolder(folder).spec)
    return folder


@functools.cache
def _digits() -> list[Any]:
    return list(SklearnDigits("val", shuffle=False, size=28))


def digit_pictures(count: int) -> Pictures:
    """Return the first images of the validation split as PNG files."""
    return [(f"{number}.png", encode_image(point[0], "png")) for number, point in enumerate(_digits()[:count])]


def digit_labels(count: int) -> list[int]:
    """Return their classes."""
    return [int(point[1]) for point in _digits()[:count]]


def save_pictures(folder: Path, pictures: Pictures) -> list[str]:
    """Write images as files; return their paths."""
    for name, content in pictures:
        (folder / name).write_bytes(content)
    return [str(folder / name) for name, _ in pictures]


def named_by(paths: list[str], pictures: Pictures) -> Pictures:
    """Return the images under other names."""
    return [(path, content) for path, (_, content) in zip(paths, pictures, strict=True)]


def probabilities_of(answer: dict[str, Any]) -> np.ndarray:
    """Return (N, classes) of an answer to ``predict`` with all classes, by class number."""
    rows = [sorted(each["classes"], key=lambda one: one["number"]) for each in answer["predictions"]]
    return np.array([[one["probability"] for one in row] for row in rows])


def is_gone(pid: int) -> bool:
    """Return whether a process has ended; a zombie has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
