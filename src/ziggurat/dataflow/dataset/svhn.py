"""The cropped digits of SVHN; reading them needs SciPy.

Y. Netzer et al., "Reading digits in natural images with unsupervised feature learning", NIPS workshop, 2011.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.dataflow.dataset.array_set import ArraySet
from ziggurat.dataflow.dataset.files import find_files, require_split, set_folder
from ziggurat.errors import DataError, MissingDependencyError

__all__ = ["SVHNDigit"]

_SPLITS = ("train", "test", "extra")
_SOURCE = "http://ufldl.stanford.edu/housenumbers"


class SVHNDigit(ArraySet):
    """House numbers, a digit an image: datapoints ``[image, label]``, (32, 32, 3) uint8 RGB and int from 0 to 9.

    Args:
        name: "train" (73,257), "test" (26,032) or "extra" (531,131).
        data_dir: folder with ``train_32x32.mat`` and so on.
        shuffle: a new random order in every pass; None shuffles all but the test set.

    Raises:
        DataError: where the file is missing or damaged.
        MissingDependencyError: where SciPy is not installed.
    """

    def __init__(self, name: str, data_dir: str | os.PathLike[str] | None = None, shuffle: bool | None = None) -> None:
        require_split("SVHNDigit", name, _SPLITS)
        self.split = name
        self._path = _path(name, data_dir)
        super().__init__(shuffle=name != "test" if shuffle is None else shuffle)

    @staticmethod
    def get_per_pixel_mean(
        names: Sequence[str] = _SPLITS, data_dir: str | os.PathLike[str] | None = None
    ) -> np.ndarray:
        """Return the mean image of the given splits, (32, 32, 3) float64 RGB, from 0 to 255."""
        total, count = np.zeros((32, 32, 3)), 0
        for name in names:
            require_split("SVHNDigit", name, _SPLITS)
            images = _read(_path(name, data_dir))[0]
            total += images.sum(axis=0, dtype=np.int64)
            count += len(images)
        return total / count

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        return _read(self._path)

    def _label(self, label: Any) -> int:
        return int(label)


def _path(name: str, folder: str | os.PathLike[str] | None) -> Path:
    where = set_folder("SVHNDigit", folder, "svhn", "svhn_data")
    return find_files("SVHNDigit", where, [[f"{name}_32x32.mat"]], source=_SOURCE)[0]


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise MissingDependencyError("scipy", extra="samples", purpose="the `.mat` files of SVHN") from error
    try:
        arrays = loadmat(path)
        images, labels = np.asarray(arrays["X"]), np.asarray(arrays["y"]).reshape(-1)
        if images.dtype != np.uint8 or images.shape != (32, 32, 3, len(labels)):
            raise ValueError(f"images of shape {images.shape}, {images.dtype}, for {len(labels)} labels")
    except Exception as error:  # what SciPy raises for damaged files is not limited
        raise DataError(
            "A file of SVHN holds images `X` (32, 32, 3, N) and labels `y`.",
            received=f"`{path}`: {error}",
            advice=f"Get it anew from {_SOURCE}.",
        ) from error
    # The digit 0 has label 10 in the files.
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), labels.astype(np.int64) % 10
