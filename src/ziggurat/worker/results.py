"""Result files of evaluation and prediction jobs: one array entry per sample, written atomically at the end.

A folder of results has ``summary.json``, ``keys.txt`` (what names each sample, one a line) and arrays of N samples in
the order of the source (``.npy``, no pickle):

- ``rows`` (N) int32: row in the split, or place in the list; those that could not be read are missing
- ``key_offsets`` (N + 1) int64: byte at which each line of ``keys.txt`` begins, and the length of the file

The task adds its own (``ziggurat.tasks.base.Task.result_arrays``). Of a network that classifies:

- ``labels`` (N) int32: class number, -1 where it is not known; ``label_scores`` (N) float32: what the network gave for
  the label, NaN where it is not known
- ``predicted`` (N) int32 and ``scores`` (N) float32: the class with the highest probability, and that probability
- ``top_classes`` (N, k) int32 and ``top_scores`` (N, k) float32: the k best classes, best first
- ``decided`` (N) int32: class number by the operating point that was obeyed, -1 for undecided; missing without one
- ``class_scores`` (N, classes) float32, class by class (Fortran order): all probabilities, where they are not too many
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
from ziggurat.layout import ResultFiles
from ziggurat.tasks.base import TaskContext

__all__ = ["NAMED_FILES", "SampleResults", "write_results"]

NAMED_FILES: Final = 1000
"""How many of the unreadable files of a job are named; all are counted."""
_VERSION: Final = 1


class SampleResults:
    """Collects the results of each sample batch by batch.

    Args:
        context: of the job whose network it is.
        samples: how many there are at most.
        top: how many of the best classes of a sample are kept.
    """

    def __init__(self, context: TaskContext, samples: int, top: int) -> None:
        self.count = 0
        self._context = context
        self._arrays = {
            "rows": np.zeros(samples, np.int32),
            **context.task.result_arrays(context, samples, top),
        }
        self._lines: list[bytes] = []

    def add(
        self,
        rows: Sequence[int],
        keys: Sequence[str],
        outputs: Mapping[str, np.ndarray],
        targets: Mapping[str, np.ndarray],
    ) -> None:
        """Take a batch.

        Args:
            rows: of the samples.
            keys: what names them.
            outputs: name → (N, …), what the network gave.
            targets: ``x`` and ``y``, as ``ziggurat.tasks.base.Task.results`` takes them.

        Raises:
            DataError: where the outputs are not what the task needs.
        """
        values: dict[str, Any] = {**self._context.task.results(self._context, outputs, targets), "rows": rows}
        place = slice(self.count, self.count + len(rows))
        for name, array in self._arrays.items():
            found = values[name]
            array[place] = found if array.ndim == 1 else found[:, : array.shape[1]]  # the best of many classes
        self._lines += [key.replace("\n", "\\n").encode("utf-8", "surrogateescape") + b"\n" for key in keys]
        self.count += len(rows)

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
        labels = arrays["labels"].tobytes() if "labels" in arrays else b""
        digest = hashlib.sha256(arrays["rows"].tobytes() + labels + keys).hexdigest()
        write_results(folder, {**summary, "samples_digest": digest}, arrays, keys)


def write_results(
    folder: Path,
    summary: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray] | None = None,
    keys: bytes = b"",
    *,
    links: Mapping[str, Path] | None = None,
) -> None:
    """Write a folder of results, whole or not at all; of a network that does not classify, the summary alone.

    Args:
        folder: what it becomes; what stands there is replaced.
        summary: JSON values.
        arrays: name → array.
        keys: what names each sample, one a line.
        links: name → array file on the same disk, which takes no further space; it is copied from another disk.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    files = ResultFiles(partial)
    with storage_errors(folder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, array in (arrays or {}).items():
            np.save(files.array(name), array, allow_pickle=False)
        for name, file in (links or {}).items():
            try:
                os.link(file, files.array(name))
            except OSError:
                shutil.copyfile(file, files.array(name))
        files.keys.write_bytes(keys)
        text = json.dumps({"version": _VERSION, **summary}, ensure_ascii=False, indent=2) + "\n"
        files.summary.write_text(text, encoding="utf-8", errors="surrogateescape")
        for path in partial.iterdir():
            sync_path(path)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(partial, folder)
        sync_path(folder.parent)
