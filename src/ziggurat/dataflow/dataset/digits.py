"""The handwritten digits that scikit-learn includes: a real dataset that needs no download.

E. Alpaydin, C. Kaynak, "Optical recognition of handwritten digits", UCI machine learning repository, 1998.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ziggurat.dataflow.dataset.array_set import ArraySet
from ziggurat.dataflow.dataset.files import require_split
from ziggurat.errors import MissingDependencyError, UsageError

__all__ = ["SklearnDigits"]

_SPLITS = ("train", "val", "test")
_SHARES = (0.7, 0.85)
"""Where, in each class, the training part and the validation part end."""
_SPLIT_SEED = 20110
_FIXED_POINT = 1 << 10


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
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise MissingDependencyError("scikit-learn", extra="samples", purpose="`SklearnDigits`") from error
        digits: Any = load_digits()
        chosen = _rows_of_split(digits.target, self.split)
        levels = np.rint(digits.images[chosen]).astype(np.int64)  # from 0 to 16
        images = (levels * 255 + 8) // 16
        if self.size_px != 8:
            images = _enlarged(images, self.size_px)
        return images.astype(np.uint8)[..., None], digits.target[chosen].astype(np.int64)

    def _label(self, label: Any) -> int:
        return int(label)


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
