"""Changes to a dataset: each one creates a new version and keeps the old one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.catalog import SampleFilter
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.hashing import stored_hashes
from ziggurat.datasets.splitting import SplitRule, assign_splits
from ziggurat.datasets.versions import (
    Change,
    Differences,
    DropClass,
    Exclude,
    KeepClasses,
    MergeClasses,
    Move,
    NameClasses,
    Relabel,
    RenameClass,
    Resplit,
    VersionNote,
    append,
    differences,
    history,
    make_version,
    merge_datasets,
)
from ziggurat.errors import UsageError
from ziggurat.records.manifest import Manifest

__all__ = [
    "ClassChanges",
    "add",
    "change_classes",
    "correct",
    "exclude",
    "merge",
    "move",
    "relabel",
    "split_anew",
    "versions",
    "what_differs",
]

_DUPLICATES: Final[Mapping[bool, Any]] = {True: "leave-out", False: "keep"}

ClassChanges = Mapping[str, Any]
"""``rename``: pairs of names; ``merge``: pairs of names and the name that they become; ``drop`` and ``keep``: names;
``names``: of all classes, by number, and ``colours``: (R, G, B) of each."""


def relabel(folder: Path, samples: Sequence[str], label: Any, target: Path, name: str = "") -> Manifest:
    """Make a version in which samples have another label.

    Args:
        folder: of the dataset.
        samples: as ``SPLIT/ROW`` or by key.
        label: in the form that the kind says; a text is the name of a class, where one has it, else JSON.
        target: folder to be made.
        name: of the new version.
    """
    return _changed(folder, target, name, lambda dataset: _relabels(dataset, samples, label))


def exclude(
    folder: Path, samples: Sequence[str], target: Path, *, problem: str = "", reason: str = "", name: str = ""
) -> Manifest:
    """Make a version without some samples.

    Args:
        folder: of the dataset.
        samples: as ``SPLIT/ROW`` or by key.
        target: folder to be made.
        problem: kind of problem; all samples that have it are left out as well.
        reason: one sentence.
        name: of the new version.
    """
    return _changed(folder, target, name, lambda dataset: _exclusions(dataset, samples, problem, reason))


def correct(
    folder: Path,
    labels: Mapping[str, Any],
    excluded: Sequence[str],
    target: Path,
    *,
    reason: str = "",
    name: str = "",
) -> Manifest:
    """Make one version of many corrections.

    Args:
        folder: of the dataset.
        labels: sample, as ``SPLIT/ROW`` or by key → its label, as ``relabel`` takes it.
        excluded: samples to leave out.
        target: folder to be made.
        reason: why they are left out, one sentence.
        name: of the new version.
    """
    if not labels and not excluded:
        raise UsageError("A correction names at least one sample.", received="none")
    return _changed(folder, target, name, lambda dataset: _corrections(dataset, labels, excluded, reason))


def move(folder: Path, samples: Sequence[str], to: str, target: Path, name: str = "") -> Manifest:
    """Make a version in which samples, as ``SPLIT/ROW`` or by key, are in the split ``to``."""
    return _changed(folder, target, name, lambda dataset: _by_split(dataset, samples, Move, to))


def change_classes(folder: Path, changes: ClassChanges, target: Path, name: str = "") -> Manifest:
    """Make a version with other classes."""
    made: list[Change] = [RenameClass(old, new) for old, new in changes.get("rename", ())]
    if changes.get("names"):
        colours = [tuple(color) for color in changes.get("colours") or ()]
        made.append(NameClasses(tuple(changes["names"]), colours))
    made += [MergeClasses(tuple(names), into) for names, into in changes.get("merge", ())]
    made += [DropClass(each) for each in changes.get("drop", ())]
    if changes.get("keep"):
        made.append(KeepClasses(tuple(changes["keep"])))
    if not made:
        raise UsageError("A change of classes renames, names, merges, drops or keeps some.", received="none of these")
    return _changed(folder, target, name, lambda _dataset: made)


def split_anew(folder: Path, rule: Mapping[str, Any], target: Path, name: str = "") -> tuple[Manifest, list[str]]:
    """Make a version that is divided anew; return it, and what a person should know of the splits.

    Args:
        folder: of the dataset.
        rule: values of ``ziggurat.datasets.splitting.SplitRule``.
        target: folder to be made.
        name: of the new version.
    """
    chosen = SplitRule(**rule)
    with Dataset(folder) as dataset:
        catalogue = dataset.catalogue
        hashes = stored_hashes(dataset, compute=chosen.method == "cluster")
        found = assign_splits(catalogue, chosen, hashes, class_names=dataset.schema.class_names)
        return make_version(dataset, Resplit(found.splits), target, name=name), found.warnings


def merge(folders: Sequence[Path], target: Path, *, name: str = "", leave_out_duplicates: bool = False) -> Manifest:
    """Make one dataset of several; classes are matched by their names."""
    with ExitStack() as stack:
        datasets = [stack.enter_context(Dataset(folder)) for folder in folders]
        return merge_datasets(datasets, target, name=name, duplicates=_DUPLICATES[leave_out_duplicates])


def add(folder: Path, other: Path, target: Path, *, name: str = "", leave_out_duplicates: bool = False) -> Manifest:
    """Make a version with the samples of another dataset added."""
    with Dataset(folder) as dataset, Dataset(other) as added:
        return append(dataset, added, target, name=name, duplicates=_DUPLICATES[leave_out_duplicates])


def versions(folder: Path) -> list[VersionNote]:
    """Return a version and all that it came from, newest first."""
    return history(folder)


def what_differs(folder: Path, other: Path) -> Differences:
    """Return what differs between two datasets, by key."""
    with Dataset(folder) as one, Dataset(other) as two:
        return differences(one, two)


def _changed(folder: Path, target: Path, name: str, changes: Any) -> Manifest:
    with Dataset(folder) as dataset:
        return make_version(dataset, changes(dataset), target, name=name)


def _by_split(dataset: Dataset, samples: Sequence[str], change: type, *values: Any) -> list[Change]:
    return [change(split, rows, *values) for split, rows in _rows(dataset, samples).items()]


def _relabels(dataset: Dataset, samples: Sequence[str], label: Any) -> list[Change]:
    if isinstance(label, str) and label not in dataset.schema.class_names:  # the class `5` need not be number 5
        with suppress(ValueError, RecursionError):
            label = json.loads(label)
    return _by_split(dataset, samples, Relabel, label)


def _corrections(dataset: Dataset, labels: Mapping[str, Any], excluded: Sequence[str], reason: str) -> list[Change]:
    by_label: dict[str, tuple[Any, list[str]]] = {}
    for sample, label in labels.items():
        by_label.setdefault(json.dumps(label), (label, []))[1].append(sample)
    # Rows change when samples are left out: labels come first.
    changes = [each for label, samples in by_label.values() for each in _relabels(dataset, samples, label)]
    return changes + (_exclusions(dataset, excluded, "", reason) if excluded else [])


def _exclusions(dataset: Dataset, samples: Sequence[str], problem: str, reason: str) -> list[Change]:
    rows = _rows(dataset, samples)
    if problem:
        for entry in dataset.catalogue.walk(SampleFilter(problem=problem)):
            rows.setdefault(entry.split, []).append(entry.row or 0)
    if not rows:
        raise UsageError(
            "An exclusion names samples, or a kind of problem that some have.",
            received=f"problem {problem}, which no sample has" if problem else "neither",
            advice="`ziggurat dataset explore` shows samples, `ziggurat dataset show` the kinds of problems.",
        )
    why = reason or (f"It has the problem {problem}." if problem else "")
    return [Exclude(split, sorted(set(chosen)), why) for split, chosen in rows.items()]


def _rows(dataset: Dataset, samples: Iterable[str]) -> dict[str, list[int]]:
    """Return split → rows of samples that are named as ``SPLIT/ROW`` or by key."""
    found: dict[str, list[int]] = {}
    for name in samples:
        split, _, row = name.partition("/")
        if split in dataset.splits and row.isdigit() and int(row) < dataset.size(split):
            found.setdefault(split, []).append(int(row))
            continue
        entry = dataset.catalogue.find(name)
        if entry is None or entry.row is None:
            raise UsageError(
                "A sample is named as SPLIT/ROW or by its key.",
                received=f"`{name}`{_rows_of(dataset, split)}",
                advice="`ziggurat dataset explore DATASET --text …` finds samples by a part of their key.",
            )
        found.setdefault(entry.split, []).append(entry.row)
    return found


def _rows_of(dataset: Dataset, split: str) -> str:
    if split not in dataset.splits:
        return f"; the splits are {', '.join(dataset.splits)}"
    return f"; {split} has the rows 0 to {dataset.size(split) - 1}"
