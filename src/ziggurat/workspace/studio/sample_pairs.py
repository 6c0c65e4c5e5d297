"""Pairs of the samples of two evaluations: those of the same data row by row, those of two versions by content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.versions import SplitSamples, match_samples, split_samples
from ziggurat.errors import JobError
from ziggurat.records.manifest import MANIFEST_NAME
from ziggurat.workspace.studio.predictions import Predictions

__all__ = ["FolderOf", "SamplePairs", "pair_samples"]

FolderOf = Callable[[Predictions], Path]
"""Returns the folder of the data that an evaluation was made on."""


@dataclass(frozen=True, kw_only=True)
class SamplePairs:
    """Which results of two evaluations are of the same samples.

    Args:
        first: (M) places in the first results, rising.
        second: (M) places of the same samples in the second results.
        only_first: (K) places of samples that only the first evaluation has.
        only_second: (L) the same of the second one.
        unmatched: samples among these whose content the other one has as well, but not as often.
        label_changed: (M) whether the two datasets have another label; None where labels are not compared.
        is_joined: whether the samples were matched by content, as the data is not the same.
    """

    first: np.ndarray
    second: np.ndarray
    only_first: np.ndarray
    only_second: np.ndarray
    unmatched: int = 0
    label_changed: np.ndarray | None = None
    is_joined: bool = False

    def __len__(self) -> int:
        return len(self.first)


def pair_samples(first: Predictions, second: Predictions, folder_of: FolderOf) -> SamplePairs:
    """Return which results of two evaluations are of the same samples.

    Args:
        first: results of an evaluation.
        second: results of another one.
        folder_of: where their data is.

    Raises:
        JobError: where they have another task or split, or no sample is the same.
    """
    if (first.task_name, first.is_classifier) != (second.task_name, second.is_classifier):
        raise JobError(
            f"The tasks differ, {first.task_name} and {second.task_name}, and evaluations of the same "
            "task are compared."
        )
    if first.split != second.split:
        raise JobError(
            f"The splits differ, {first.split} and {second.split}, and evaluations of the same split are compared."
        )
    names = ("data", "samples_digest")
    if all(first.summary.get(name) == second.summary.get(name) for name in names):
        places, none = np.arange(len(first)), np.zeros(0, np.int64)
        return SamplePairs(first=places, second=places, only_first=none, only_second=none)
    return _joined(first, second, [folder_of(each) for each in (first, second)])


def _joined(first: Predictions, second: Predictions, folders: list[Path]) -> SamplePairs:
    if not (first.has_samples and second.has_samples):
        raise JobError(
            "Evaluations of different data are compared where something is known of each sample.",
            received="means over all samples alone",
        )
    ours, theirs = (_samples(found, folder) for found, folder in zip((first, second), folders, strict=True))
    found = match_samples(ours, theirs)
    if not len(found.first):
        raise JobError(
            f"None of the {len(first)} and {len(second)} samples have the same content, so evaluations "
            "of these datasets cannot be compared."
        )
    is_compared = ours.has_labels and theirs.has_labels
    return SamplePairs(
        first=found.first,
        second=found.second,
        only_first=found.only_first,
        only_second=found.only_second,
        unmatched=found.unmatched,
        label_changed=ours.labels[found.first] != theirs.labels[found.second] if is_compared else None,
        is_joined=True,
    )


def _samples(found: Predictions, folder: Path) -> SplitSamples:
    if not (folder / MANIFEST_NAME).is_file():
        raise JobError(
            f"The dataset {folder} is not there any more, so evaluations of different data cannot be compared.",
            advice="Compare evaluations of the same data, or create a dataset of each.",
        )
    with Dataset(folder) as dataset:
        return split_samples(dataset, found.split).of_rows(found.rows)
