"""Creation of versions: by changes, by joining datasets, and by appending to one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.versions.applying import apply_change
from ziggurat.datasets.versions.changes import Change
from ziggurat.datasets.versions.joining import joined
from ziggurat.datasets.versions.survey import Duplicates, Survey
from ziggurat.datasets.versions.writing import write_version
from ziggurat.entities.names import check_name
from ziggurat.records.manifest import Manifest

__all__ = ["append", "make_version", "merge_datasets"]


def make_version(
    parent: Dataset | Sequence[Dataset],
    changes: Sequence[Change] | Change,
    folder: str | os.PathLike[str],
    *,
    name: str = "",
    duplicates: Duplicates = "keep",
) -> Manifest:
    """Make a new dataset of one or several, with changes; those stay as they are.

    The new folder shares their files of records and can do without them: each may be deleted.

    Args:
        parent: one dataset, or several that become one, see ``merge_datasets``.
        changes: applied one after the other.
        folder: to make; the folders above are made too.
        name: what people call it; empty: the parent's name.
        duplicates: of several: ``leave-out`` leaves samples out that an earlier dataset has too, by the content of
            their first part; ``keep`` only lists them.

    Returns:
        manifest: of the new dataset.

    Raises:
        UsageError: where a change is wrong, or leaves nothing.
        UnknownNameError: where it names a split or class that is not there.
        DataError: where it names samples that are not there, or datasets do not fit.
        StorageError: where something stands at ``folder``, or the disk is full or refuses; nothing stays behind.
    """
    datasets = [parent] if isinstance(parent, Dataset) else list(parent)
    draft = joined(datasets)
    survey = None
    if len(datasets) > 1:
        draft.sentences.append(f"Joined {' and '.join(dataset.name for dataset in datasets)}.")
        survey = Survey(draft, duplicates)
        survey.apply()
    for change in changes if isinstance(changes, Sequence) else [changes]:
        apply_change(draft, change)
    check_name(name, "The name of a dataset")
    return write_version(draft, Path(folder), name or datasets[0].name, survey)


def merge_datasets(
    datasets: Sequence[Dataset],
    folder: str | os.PathLike[str],
    *,
    name: str = "",
    duplicates: Duplicates = "keep",
) -> Manifest:
    """Make one dataset of several: split by split, one after the other.

    Their kinds are the same. Classes are the same where their names are; those of the first keep their numbers. Where
    keys of one name samples of an earlier too, all its keys get its name as a prefix, and its records are written anew
    for that. Samples with the content of one in an earlier dataset are listed as problems of the kind ``duplicate``.

    Args:
        datasets: at least one.
        folder: to make.
        name: what people call it; empty: the name of the first.
        duplicates: ``keep``, or ``leave-out`` for those samples.

    Returns:
        manifest: of the new dataset.

    Raises:
        DataError: where they do not fit; the message says why and what to do.
        StorageError: as ``make_version``.
    """
    return make_version(datasets, (), folder, name=name, duplicates=duplicates)


def append(
    dataset: Dataset,
    other: Dataset,
    folder: str | os.PathLike[str],
    *,
    name: str = "",
    duplicates: Duplicates = "keep",
) -> Manifest:
    """Make a version of a dataset that has the samples of another behind its own; see ``merge_datasets``."""
    return make_version([dataset, other], (), folder, name=name, duplicates=duplicates)
