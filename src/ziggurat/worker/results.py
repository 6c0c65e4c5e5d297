"""Result files of evaluation and prediction jobs: one array entry per sample, written atomically at the end.

A folder of results has ``summary.json``, ``keys.txt`` (what names each sample, one a line) and, of a network that
classifies, arrays of N samples in the order of the source (``.npy``, no pickle):

- ``rows`` (N) int32: row in the split, or place in the list; those that could not be read are missing
- ``labels`` (N) int32: class number, -1 where it is not known; ``label_scores`` (N) float32: what the network gave for
  the label, NaN where it is not known
- ``predicted`` (N) int32 and ``scores`` (N) float32: the class with the highest probability, and that probability
- ``top_classes`` (N, k) int32 and ``top_scores`` (N, k) float32: the k best classes, best first
- ``class_scores`` (N, classes) float32, class by class (Fortran order): all probabilities, where they are not too many
- ``key_offsets`` (N + 1) int64: byte at which each line of ``keys.txt`` begins, and the length of the file
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.atomic import storage_errors, sync_path
from ziggurat.errors import DataError
from ziggurat.layout import ResultFiles

__all__ = ["NAMED_FILES", "SampleResults", "write_results"]

NAMED_FILES: Final = 1000
"""How many of the unreadable files of a job are named; all are counted."""
_VERSION: Final = 1
_MOST_CLASSES: Final = 1000
_MOST_SCORES: Final = 20_000_000
"""More probabilities than these are not kept, only the best of each sample."""


class SampleResults:
    """Takes what a classifier says batch by batch.

    Args:
        samples: how many there are at most.
        classes: of the network.
        top: how many of the best classes of a sample are kept.
    """

    def __init__(self, samples: int, classes: int, top: int) -> None:
        self.count = 0
        self.classes = classes
        top = min(top, classes)
        self._arrays: dict[str, np.ndarray] = {
            "rows": np.zeros(samples, np.int32),
            "labels": np.zeros(samples, np.int32),
            "label_scores": np.zeros(samples, np.float32),
            "predicted": np.zeros(samples, np.int32),
            "scores": np.zeros(samples, np.float32),
            "top_classes": np.zeros((samples, top), np.int32),
            "top_scores": np.zeros((samples, top), np.float32),
        }
        if classes <= _MOST_CLASSES and samples * classes <= _MOST_SCORES:
            self._arrays["class_scores"] = np.zeros((samples, classes), np.float32, order="F")
        self._lines: list[bytes] = []

    def add(self, rows: Sequence[int], keys: Sequence[str], labels: np.ndarray, probabilities: np.ndarray) -> None:
        """Take a batch.

        Args:
            rows: of the samples.
            keys: what names them.
            labels: (N) class numbers, -1 where they are not known.
            probabilities: (N, classes).

        Raises:
            DataError: where the network has another number of classes than its data.
        """
        if probabilities.ndim != 2 or probabilities.shape[1] != self.classes:
            raise DataError(
                "A network that classifies gives a probability for each class of its data.",
                received=f"shape {probabilities.shape} for {self.classes} classes",
            )
        found = np.asarray(probabilities, np.float32)
        place = slice(self.count, self.count + len(found))
        best = np.argsort(-found, axis=1, kind="stable")[:, : self._arrays["top_classes"].shape[1]]
        known = np.take_along_axis(found, np.maximum(labels, 0)[:, None], axis=1)[:, 0]
        values = {
            "rows": rows,
            "labels": labels,
            "label_scores": np.where(labels >= 0, known, np.float32("nan")),
            "predicted": best[:, 0],
            "scores": np.take_along_axis(found, best[:, :1], axis=1)[:, 0],
            "top_classes": best,
            "top_scores": np.take_along_axis(found, best, axis=1),
            "class_scores": found,
        }
        for name, array in self._arrays.items():
            array[place] = values[name]
        self._lines += [key.replace("\n", "\\n").encode("utf-8", "surrogateescape") + b"\n" for key in keys]
        self.count += len(found)

    @property
    def accuracy(self) -> float | None:
        """Share of the labeled samples that are predicted correctly; None where no label is known."""
        labels, predicted = (self._arrays[name][: self.count] for name in ("labels", "predicted"))
        known = labels >= 0
        return float((predicted[known] == labels[known]).mean()) if known.any() else None

    def write(self, folder: Path, summary: Mapping[str, Any]) -> None:
        """Write the folder of results, whole or not at all.

        Args:
            folder: what it becomes; what stands there is replaced.
            summary: JSON values.

        Raises:
            StorageError: where it cannot be written.
        """
        arrays = {name: array[: self.count] for name, array in self._arrays.items()}
        arrays["key_offsets"] = np.cumsum([0, *map(len, self._lines)], dtype=np.int64)
        keys = b"".join(self._lines)
        digest = hashlib.sha256(arrays["rows"].tobytes() + arrays["labels"].tobytes() + keys).hexdigest()
        write_results(folder, {**summary, "samples_digest": digest}, arrays, keys)


def write_results(
    folder: Path, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None, keys: bytes = b""
) -> None:
    """Write a folder of results, whole or not at all; of a network that does not classify, the summary alone."""
    partial = folder.with_name(f".{folder.name}.partial")
    files = ResultFiles(partial)
    with storage_errors(folder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, array in (arrays or {}).items():
            np.save(files.array(name), array, allow_pickle=False)
        files.keys.write_bytes(keys)
        text = json.dumps({"version": _VERSION, **summary}, ensure_ascii=False, indent=2) + "\n"
        files.summary.write_text(text, encoding="utf-8", errors="surrogateescape")
        for path in partial.iterdir():
            sync_path(path)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(partial, folder)
        sync_path(folder.parent)
