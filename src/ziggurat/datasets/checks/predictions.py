"""External predictions for the samples of a dataset, read from a file: class probabilities by sample."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.errors import DataError

__all__ = ["Predictions", "read_predictions"]

_FORM = "Predictions are a probability for each class, in the order of the classes, and the `key` or `split` and `row`."


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Class probabilities of samples.

    Args:
        splits: (N,) names of splits.
        rows: (N,) int64 rows in them.
        probabilities: (N, C) float, a column for each class.
    """

    splits: tuple[str, ...]
    rows: np.ndarray
    probabilities: np.ndarray


def read_predictions(path: str | os.PathLike[str], dataset: Dataset) -> Predictions:
    """Return the predictions in a file.

    A ``.npz`` file has the arrays ``probabilities`` (N, C) and ``keys`` (N,), or ``splits`` (N,) and ``rows`` (N,). Any
    other file is CSV with a heading: ``key``, or ``split`` and ``row``, then a column for each class.

    Args:
        path: the file.
        dataset: that the predictions are of.

    Raises:
        DataError: where the file is not so, or a sample is not in the dataset.
    """
    path = Path(path)
    try:
        if path.suffix == ".npz":
            names, probabilities = _read_npz(path)
        else:
            names, probabilities = _read_csv(path)
    except (OSError, ValueError, KeyError, csv.Error) as error:
        raise DataError(_FORM, received=f"`{path}`: {error}") from None
    classes = len(dataset.schema.class_names)
    if probabilities.ndim != 2 or len(probabilities) != len(names) or (classes and probabilities.shape[1] != classes):
        raise DataError(
            _FORM, received=f"`{path}`: {len(names)} samples, {probabilities.shape} probabilities, {classes} classes"
        )
    if not np.isfinite(probabilities).all() or (probabilities < 0).any():
        raise DataError("Probabilities are from 0 to 1.", received=f"`{path}`, which has others")
    places = [_place(dataset, name, path) for name in names]
    return Predictions(
        splits=tuple(split for split, _ in places),
        rows=np.array([row for _, row in places], np.int64),
        probabilities=probabilities,
    )


def _read_npz(path: Path) -> tuple[list[tuple[str, ...]], np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        probabilities = np.asarray(arrays["probabilities"], np.float64)
        if "keys" in arrays:
            return [(str(key),) for key in arrays["keys"]], probabilities
        pairs = zip(arrays["splits"], arrays["rows"], strict=True)
        return [(str(split), str(int(row))) for split, row in pairs], probabilities


def _read_csv(path: Path) -> tuple[list[tuple[str, ...]], np.ndarray]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines: Iterator[list[str]] = csv.reader(file)
        heading = next(lines, [])
        width = 2 if heading[:2] == ["split", "row"] else 1
        if width == 1 and heading[:1] != ["key"]:
            raise ValueError(f"its heading starts with {heading[:2]}")
        names: list[tuple[str, ...]] = []
        values: list[np.ndarray] = []
        for line in lines:
            if line:
                names.append(tuple(line[:width]))
                values.append(np.array(line[width:], np.float64))
    return names, np.array(values).reshape(len(values), -1)


def _place(dataset: Dataset, name: tuple[str, ...], path: Path) -> tuple[str, int]:
    """Return split and row of a sample that is named by its key, or by both."""
    if len(name) == 1:
        entry = dataset.catalogue.find(name[0])
        if entry is not None and entry.row is not None:
            return entry.split, entry.row
    elif name[0] in dataset.splits and name[1].isdecimal() and int(name[1]) < dataset.size(name[0]):
        return name[0], int(name[1])
    raise DataError("Predictions are of samples of the dataset.", received=f"`{' '.join(name)}` in `{path}`")
