"""Digits other than MNIST: the handwritten ones that scikit-learn includes, and the cropped house numbers of SVHN.

The first need no download; reading the second needs SciPy. E. Alpaydin, C. Kaynak, "Optical recognition of handwritten
digits", UCI machine learning repository, 1998; Y. Netzer et al., "Reading digits in natural images with unsupervised
feature learning", NIPS workshop, 2011.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.dataset.files import find_files, require_split, set_folder
from ziggurat.dataflow.indexed import ArraySet
from ziggurat.errors import DataError, MissingDependencyError, UsageError

__all__ = ["SVHNDigit", "SklearnDigits"]

_SPLITS = ("train", "val", "test")
_SHARES = (0.7, 0.85)
"""Where, in each class, the training part and the validation part end."""
_SPLIT_SEED = 20110
_FIXED_POINT = 1 << 10

_SVHN_SPLITS = ("train", "test", "extra")
_SVHN_SOURCE = "http://ufldl.stanford.edu/housenumbers"


_SKLEARN_FILE: Final = ("datasets", "data", "digits.csv.gz")


class SklearnDigits(ArraySet):
    """Handwritten digits: datapoints ``[image, label]``, (size, size, 1) uint8 from 0 to 255, and int.

    The split is fixed: in each class 70 % are for training, 15 % for validation and 15 % for testing, drawn once with a
    fixed seed.

    Args:
        split: "train", "val" or "test".
        shuffle: a new random order in every pass; None shuffles the training set only.
        size: 8, as they are, or 28, resized bilinearly in integers, so that every machine has the same pixels.

    Raises:
        MissingDependencyError: where scikit-learn is not installed.
    """

    def __init__(self, split: str = "train", shuffle: bool | None = None, *, size: int = 8) -> None:
        require_split("SklearnDigits", split, _SPLITS)
        if size not in (8, 28):
            raise UsageError("The digits have 8 x 8 or 28 x 28 pixels.", received=size)
        self.split = split
        self.size_px = size
        super().__init__(shuffle=split == "train" if shuffle is None else shuffle)

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        levels, labels = _sklearn_digits()
        chosen = _rows_of_split(labels, self.split)
        images = (levels[chosen] * 255 + 8) // 16
        if self.size_px != 8:
            images = _enlarged(images, self.size_px)
        return images.astype(np.uint8)[..., None], labels[chosen]

    def _label(self, label: Any) -> int:
        return int(label)


def _sklearn_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return levels (N, 8, 8) from 0 to 16, and labels.

    They are read from the file that scikit-learn brings: importing scikit-learn takes a second.
    """
    found = find_spec("sklearn")
    for place in () if found is None else found.submodule_search_locations or ():
        file = Path(place, *_SKLEARN_FILE)
        if file.is_file():
            with gzip.open(file, "rt", encoding="ascii") as lines:
                rows = np.loadtxt(lines, delimiter=",")
            break
    else:
        raise MissingDependencyError("scikit-learn", extra="samples", purpose="`SklearnDigits`")
    whole = np.rint(rows).astype(np.int64)
    return whole[:, :-1].reshape(-1, 8, 8), whole[:, -1]


def _rows_of_split(labels: np.ndarray, split: str) -> np.ndarray:
    """Return the rows of a split in the order of the file."""
    random = np.random.RandomState(_SPLIT_SEED)
    number = _SPLITS.index(split)
    chosen = []
    for label in range(10):
        rows = random.permutation(np.flatnonzero(labels == label))
        ends = [0, *(int(len(rows) * share) for share in _SHARES), len(rows)]
        chosen.append(rows[ends[number] : ends[number + 1]])
    return np.sort(np.concatenate(chosen))


def _enlarged(images: np.ndarray, size: int) -> np.ndarray:
    """Resize (N, H, H) integers to (N, size, size) bilinearly, pixel centers on pixel centers."""
    weights = _bilinear_weights(images.shape[1], size)
    sums = np.einsum("ih,nhw,jw->nij", weights, images, weights)
    return (sums + _FIXED_POINT**2 // 2) // _FIXED_POINT**2


def _bilinear_weights(old: int, new: int) -> np.ndarray:
    """Return (new, old) integers that sum to ``_FIXED_POINT`` in each row."""
    weights = np.zeros((new, old), np.int64)
    for row in range(new):
        numerator = (2 * row + 1) * old - new  # of the place in the old image, over 2 * new
        left, rest = divmod(numerator, 2 * new)
        share = rest * _FIXED_POINT // (2 * new)
        weights[row, min(max(left, 0), old - 1)] += _FIXED_POINT - share
        weights[row, min(max(left + 1, 0), old - 1)] += share
    return weights


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
        require_split("SVHNDigit", name, _SVHN_SPLITS)
        self.split = name
        self._path = _svhn_path(name, data_dir)
        super().__init__(shuffle=name != "test" if shuffle is None else shuffle)

    @staticmethod
    def get_per_pixel_mean(
        names: Sequence[str] = _SVHN_SPLITS, data_dir: str | os.PathLike[str] | None = None
    ) -> np.ndarray:
        """Return the mean image of the given splits, (32, 32, 3) float64 RGB, from 0 to 255."""
        total, count = np.zeros((32, 32, 3)), 0
        for name in names:
            require_split("SVHNDigit", name, _SVHN_SPLITS)
            images = _read_svhn(_svhn_path(name, data_dir))[0]
            total += images.sum(axis=0, dtype=np.int64)
            count += len(images)
        return total / count

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        return _read_svhn(self._path)

    def _label(self, label: Any) -> int:
        return int(label)


def _svhn_path(name: str, folder: str | os.PathLike[str] | None) -> Path:
    where = set_folder("SVHNDigit", folder, "svhn", "svhn_data")
    return find_files("SVHNDigit", where, [[f"{name}_32x32.mat"]], source=_SVHN_SOURCE)[0]


def _read_svhn(path: Path) -> tuple[np.ndarray, np.ndarray]:
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
            advice=f"Get it anew from {_SVHN_SOURCE}.",
        ) from error
    # The digit 0 has label 10 in the files.
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), labels.astype(np.int64) % 10
