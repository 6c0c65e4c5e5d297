"""Compares fine-tuning from the weights that come with Ziggurat with training from scratch, on few samples.

``python -m tools.compare_fine_tuning DATA``: ``DATA`` is ``digits`` (scikit-learn's), a folder with idx files such as
MNIST's, or one with the folders ``train`` and ``val``, in each of which is a folder of images for each class. Images
become 28 × 28 gray. For each seed, as many training images of each class are drawn as ``--per-class`` says; both sides
get the same ones, the same epochs and batches, and each is shown at every rate. The last epoch counts, on test images
that are the same for all runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.dataset.mnist import read_idx
from ziggurat.engine.callback import Callback
from ziggurat.layout import JobFolder
from ziggurat.settings import load_settings
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import build_job
from ziggurat.workspace.workspace import open_folders

__all__ = ["SIDES", "Comparison", "Images", "accuracy_of", "compare", "digits", "draw", "main"]

WEIGHTS = "convnet-fashion"
SIDES = ("scratch", "fine-tuned")
_SIDE_PX = 28
_TEST_IMAGES = 1000


@dataclass(frozen=True)
class Images:
    """Images with classes.

    Args:
        train: (N, 28, 28) uint8 and (N) int.
        test: likewise.
    """

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is compared.

    Args:
        backend: that trains.
        per_class: training images of each class; 0 for all.
        epochs: of each training.
        batch_size: of each step.
        rates: learning rates at which each side is trained.
        seeds: number of draws and trainings.
    """

    backend: str = "torch"
    per_class: int = 10
    epochs: int = 20
    batch_size: int = 16
    rates: Sequence[float] = (0.02, 0.08)
    seeds: int = 3


def main(arguments: Sequence[str]) -> int:
    """Compare; print each accuracy, and the means of each side at its best rate."""
    parser = argparse.ArgumentParser(prog="python -m tools.compare_fine_tuning")
    parser.add_argument("data", help="`digits`, or a folder")
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--per-class", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rates", type=float, nargs="+", default=list(Comparison.rates))
    parser.add_argument("--seeds", type=int, default=3)
    given = vars(parser.parse_args(arguments))
    images = _images(given.pop("data"))
    with tempfile.TemporaryDirectory() as scratch:
        found = compare(images, Comparison(**given), Path(scratch))
    best = {side: max(found[side].values(), key=statistics.mean) for side in SIDES}
    for side in SIDES:
        for rate, accuracies in found[side].items():
            print(f"{side:10} rate {rate:<6g} {_line(accuracies)}")
    print(json.dumps({side: statistics.mean(best[side]) for side in SIDES}))
    print(f"margin {statistics.mean(best[SIDES[1]]) - statistics.mean(best[SIDES[0]]):+.2%}")
    return 0


def compare(images: Images, wanted: Comparison, scratch: Path) -> dict[str, dict[float, list[float]]]:
    """Return side → rate → accuracy on the test images for each seed.

    Args:
        images: that are drawn from.
        wanted: what is compared.
        scratch: an empty folder.
    """
    settings = load_settings({"ZIGGURAT_WORKSPACE": str(scratch / "workspace"), "HOME": str(scratch)})
    open_folders(settings).weights.download(WEIGHTS)
    found: dict[str, dict[float, list[float]]] = {side: {rate: [] for rate in wanted.rates} for side in SIDES}
    for seed in range(wanted.seeds):
        data = scratch / f"seed-{seed}"
        draw(images, wanted.per_class, seed, data)
        for side in SIDES:
            for rate in wanted.rates:
                spec = _spec(wanted, data, side, rate, seed)
                folder = scratch / f"{side}-{rate:g}-{seed}"
                accuracy = accuracy_of(spec, folder, settings)
                print(f"seed {seed} {side} rate {rate:g}: {accuracy:.2%}", file=sys.stderr, flush=True)
                found[side][rate].append(accuracy)
    return found


def accuracy_of(spec: TrainSpec, folder: Path, settings: Any) -> float:
    """Train as a worker does, in this process; return the accuracy after the last epoch on the validation split."""
    built = build_job(spec, JobFolder(folder), Callback(), settings)
    with closing(built.trainer.program):
        built.trainer.train(spec.epochs)
    return float(built.trainer.monitors.get_latest("validation_accuracy"))


def draw(images: Images, per_class: int, seed: int, folder: Path) -> None:
    """Write idx files with as many training images of each class, and with all test images."""
    values, labels = images.train
    chosen = np.arange(len(labels))
    if per_class:
        random = np.random.default_rng(seed)
        classes = [np.flatnonzero(labels == each) for each in np.unique(labels)]
        chosen = np.concatenate([random.permutation(each)[:per_class] for each in classes])
    folder.mkdir(parents=True)
    for split, (x, y) in (("train", (values[chosen], labels[chosen])), ("val", images.test)):
        (folder / f"{split}-images-idx3-ubyte").write_bytes(_idx(x))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(_idx(y))


def digits() -> Images:
    """Return scikit-learn's digits at 28 × 28; what is not for training is for the test."""
    parts = []
    for splits in (("train",), ("val", "test")):
        points = [each for split in splits for each in SklearnDigits(split, shuffle=False, size=_SIDE_PX)]
        values = np.stack([each[0] for each in points]).reshape(-1, _SIDE_PX, _SIDE_PX)
        parts.append((values.astype(np.uint8), np.array([int(each[1]) for each in points])))
    return Images(*parts)


def _images(data: str) -> Images:
    if data == "digits":
        return digits()
    folder = Path(data)
    if (folder / "train").is_dir():
        return Images(_of_folders(folder / "train"), _of_folders(folder / "val"))
    test = _of_idx(folder, "t10k")
    chosen = np.random.default_rng(0).permutation(len(test[1]))[:_TEST_IMAGES]
    return Images(_of_idx(folder, "train"), (test[0][chosen], test[1][chosen]))


def _of_idx(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    found = [
        read_idx(min(folder.glob(f"{split}-{part}*")), dimensions=dimensions)
        for part, dimensions in (("images", 3), ("labels", 1))
    ]
    return found[0], found[1]


def _of_folders(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    samples = list(_samples(folder))
    return np.stack([each[0] for each in samples]), np.array([each[1] for each in samples])


def _samples(folder: Path) -> Iterator[tuple[np.ndarray, int]]:
    for number, each in enumerate(sorted(path for path in folder.iterdir() if path.is_dir())):
        for file in sorted(each.iterdir()):
            image = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
            if image is not None:
                yield cv2.resize(image, (_SIDE_PX, _SIDE_PX), interpolation=cv2.INTER_AREA), number


def _idx(array: np.ndarray) -> bytes:
    content = array.astype(np.uint8)
    return struct.pack(f">HBB{content.ndim}I", 0, 8, content.ndim, *content.shape) + content.tobytes()


def _spec(wanted: Comparison, data: Path, side: str, rate: float, seed: int) -> TrainSpec:
    content: dict[str, Any] = {
        "kind": "train",
        "version": 1,
        "backend": wanted.backend,
        "network": "convnet",
        "data": str(data),
        "epochs": wanted.epochs,
        "batch_size": wanted.batch_size,
        "learning_rate": rate,
        "schedule": {"policy": "cosine"},
        "seed": seed,
        "validation": {"every_epochs": wanted.epochs},
        "checkpoints": {"every_epochs": 0, "keep_best": None},
        "sample_predictions": False,
        "monitors": [],
        "loading": {"workers": 1},
    }
    if side == SIDES[1]:
        content["pretrained"] = f"weights:{WEIGHTS}"
    spec = parse_spec(content, source="the comparison")
    assert isinstance(spec, TrainSpec)
    return spec


def _line(accuracies: Sequence[float]) -> str:
    listed = ", ".join(f"{each:.2%}" for each in accuracies)
    return f"mean {statistics.mean(accuracies):.2%} ({listed})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
