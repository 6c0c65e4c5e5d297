"""``tensorflow.examples.tutorials.mnist``: MNIST as TensorFlow 1's tutorials read it, from idx files."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.dataflow.dataset.files import find_files
from ziggurat.dataflow.dataset.mnist import read_idx
from ziggurat.errors import DataError, UsageError

__all__ = ["DataSet", "Datasets", "dense_to_one_hot", "mnist_module", "read_data_sets", "tutorials_module"]

_FILES: Final = (
    ("train-images-idx3-ubyte.gz", "train-images-idx3-ubyte", "train-images.idx3-ubyte"),
    ("train-labels-idx1-ubyte.gz", "train-labels-idx1-ubyte", "train-labels.idx1-ubyte"),
    ("t10k-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"),
    ("t10k-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"),
)
_FAKE_PIXELS: Final = 784


class Datasets(NamedTuple):
    """The three splits."""

    train: DataSet
    validation: DataSet
    test: DataSet


class DataSet:
    """Images and labels, in batches.

    Args:
        images: (N, H, W, 1) uint8.
        labels: (N) uint8, or (N, classes) float64.
        fake_data: give made-up batches of ones instead.
        one_hot: whether made-up labels are (classes) as well.
        dtype: ``float32`` for values from 0 to 1, ``uint8`` for bytes.
        reshape: give images as (N, H·W).
        seed: of the order; NumPy's own generator, which ``np.random.seed`` seeds, if not given.
    """

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = np.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        if len(images) != len(labels):
            raise DataError(f"There are {len(images)} images and {len(labels)} labels.")
        self._random: Any = np.random if seed is None else np.random.RandomState(seed)
        self._fake, self._one_hot = fake_data, one_hot
        flat = images.reshape(len(images), math.prod(images.shape[1:])) if reshape else images
        self._images = flat.astype(np.float32) / np.float32(255) if _is_float(dtype) else flat
        self._labels = labels
        self._order = np.arange(len(images))
        self._place = 0
        self._epochs = 0

    @property
    def images(self) -> np.ndarray:
        """All images, in the order of the files."""
        return self._images

    @property
    def labels(self) -> np.ndarray:
        """All labels, in the order of the files."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """Number of images."""
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        """How many times all images have been given."""
        return self._epochs

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[np.ndarray | list[Any], np.ndarray | list[Any]]:
        """Return the next images and labels; a batch over the end of an epoch takes the rest from the next one.

        Args:
            batch_size: how many.
            fake_data: give ones instead.
            shuffle: whether each epoch has an order of its own.

        Raises:
            UsageError: where there are fewer images than that.
        """
        if fake_data or self._fake:
            label: Any = [1] + [0] * 9 if self._one_hot else 0
            return [[1] * _FAKE_PIXELS for _ in range(batch_size)], [label for _ in range(batch_size)]
        if batch_size > self.num_examples:
            raise UsageError(f"`batch_size` is {batch_size}, and the split has {self.num_examples} images.")
        if self._place == 0 and self._epochs == 0:
            self._begin_epoch(shuffle)
        rows = self._order[self._place : self._place + batch_size]
        self._place += len(rows)
        if len(rows) < batch_size:
            self._epochs += 1
            self._begin_epoch(shuffle)
            self._place = batch_size - len(rows)
            rows = np.concatenate([rows, self._order[: self._place]])
        return self._images[rows], self._labels[rows]

    def _begin_epoch(self, shuffle: bool) -> None:
        self._place = 0
        self._order = self._random.permutation(self.num_examples) if shuffle else np.arange(self.num_examples)


def read_data_sets(
    train_dir: str | os.PathLike[str],
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    **source: str,
) -> Datasets:
    """Return MNIST from four idx files, compressed by gzip or not. Nothing is downloaded.

    Args:
        train_dir: folder with the files.
        fake_data: give made-up batches; no file is read.
        one_hot: labels as (10) float64 instead of a number.
        dtype: ``float32`` for values from 0 to 1, ``uint8`` for bytes.
        reshape: images as (784) instead of (28, 28, 1).
        validation_size: how many of the first training images are for validation.
        seed: of the order of batches.
        source: ``source_url``, which is taken and not used.

    Raises:
        DataError: where a file is missing or damaged; the message names them.
        UsageError: where ``validation_size`` is more than there are, or there are other arguments.
    """
    if unknown := source.keys() - {"source_url"}:
        raise UsageError(f"`read_data_sets` has no argument {', '.join(sorted(unknown))}.")
    options = {"fake_data": fake_data, "one_hot": one_hot, "dtype": dtype, "reshape": reshape, "seed": seed}
    if fake_data:
        nothing = DataSet(np.zeros((0, 28, 28, 1), np.uint8), np.zeros(0, np.uint8), **options)
        return Datasets(nothing, nothing, nothing)
    paths = find_files("read_data_sets", Path(train_dir), _FILES, source="MNIST's distributors; nothing is downloaded")
    images, labels = _arrays(paths[0], paths[1], one_hot)
    test_images, test_labels = _arrays(paths[2], paths[3], one_hot)
    if not 0 <= validation_size <= len(images):
        raise UsageError(
            f"`validation_size` is {validation_size}, not 0 to {len(images)}, the number of training images."
        )
    return Datasets(
        train=DataSet(images[validation_size:], labels[validation_size:], **options),
        validation=DataSet(images[:validation_size], labels[:validation_size], **options),
        test=DataSet(test_images, test_labels, **options),
    )


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """Return (N, ``num_classes``) float64 of zeros and ones for (N) whole numbers."""
    return np.eye(num_classes)[np.asarray(labels_dense).ravel()]


def _arrays(images: Path, labels: Path, one_hot: bool) -> tuple[np.ndarray, np.ndarray]:
    pixels, classes = read_idx(images, dimensions=3), read_idx(labels, dimensions=1)
    return pixels[..., None], dense_to_one_hot(classes, 10) if one_hot else classes


def _is_float(dtype: Any) -> bool:
    return np.dtype(getattr(dtype, "as_numpy_dtype", dtype)) == np.float32


def mnist_module(path: str) -> StandInModule:
    """Return a module with the reader's public names.

    Args:
        path: its name, as the script writes it.
    """
    names = {
        "DataSet": DataSet,
        "Datasets": Datasets,
        "dense_to_one_hot": dense_to_one_hot,
        "read_data_sets": read_data_sets,
    }
    return StandInModule(path, names=names)


def tutorials_module() -> StandInModule:
    """Return ``tensorflow.examples``: the reader of MNIST, and nothing else."""
    path = "tf.examples.tutorials.mnist"
    mnist = StandInModule(path, names={"input_data": mnist_module(f"{path}.input_data")})
    tutorials = StandInModule("tf.examples.tutorials", names={"mnist": mnist})
    return StandInModule("tf.examples", names={"tutorials": tutorials})
