"""Creation of versions: by changes, by joining datasets, and by appending to one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.samples import SPLITS
from ziggurat.datasets.versions.classes import (
    DROPPED,
    ClassEdit,
    checked_label,
    drop_classes,
    has_one_class,
    keep_classes,
    merge_classes,
    name_classes,
    rename_class,
)
from ziggurat.datasets.versions.draft import (
    LEFT_OUT,
    Change,
    CorrectObjects,
    Draft,
    DropClass,
    Exclude,
    KeepClasses,
    MergeClasses,
    Move,
    NameClasses,
    Relabel,
    RenameClass,
    Resplit,
)
from ziggurat.datasets.versions.joining import Duplicates, Survey, joined
from ziggurat.datasets.versions.writing import write_version
from ziggurat.entities.names import check_name
from ziggurat.errors import DataError, UnknownNameError, UsageError
from ziggurat.formatting import plural
from ziggurat.records.manifest import Manifest

__all__ = ["append", "make_version", "merge_datasets"]

_LONGEST: Final = 80


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


def apply_change(draft: Draft, change: Change) -> None:
    """Apply one change.

    Raises:
        UsageError: where it is no change, or a wrong one.
        UnknownNameError: where it names a split or a class that is not there.
        DataError: where it names samples that are not there, or the kind of the dataset does not go with it.
    """
    apply = _APPLIERS.get(type(change))
    if apply is None:
        raise UsageError(
            f"{change!r} is no change that a version is made by.",
            advice=f"There are: {', '.join(each.__name__ for each in _APPLIERS)}.",
        )
    draft.sentences.append(apply(draft, change))


def _relabel(draft: Draft, change: Relabel) -> str:
    numbers = draft.numbers(change.split, change.samples)
    label = checked_label(draft.schema, change.label)
    draft.labels.update(dict.fromkeys(numbers.tolist(), label))
    shown = draft.schema.class_names[label] if has_one_class(draft.schema) and label is not None else label
    return f"Gave {_samples(numbers)} of {change.split} the label {_short(shown)}."


def _correct_objects(draft: Draft, change: CorrectObjects) -> str:
    if draft.schema.kind != "detection":
        raise DataError("Objects are corrected in datasets of kind detection.", received=f"kind {draft.schema.kind}")
    numbers = draft.numbers(change.split, list(change.labels))
    for number, label in zip(numbers.tolist(), change.labels.values(), strict=True):
        draft.labels[number] = checked_label(draft.schema, [dict(each) for each in label])
    summary = f": {change.summary}" if change.summary else ""
    return f"Corrected the boxes of {_samples(numbers)} of {change.split}{summary}."


def _exclude(draft: Draft, change: Exclude) -> str:
    reason = change.reason or "Somebody left it out."
    count = draft.leave_out(draft.numbers(change.split, change.samples), "excluded", reason)
    because = f": {_short(change.reason).rstrip('.')}" if change.reason else ""
    return f"Left out {_samples(count)} of {change.split}{because}."


def _move(draft: Draft, change: Move) -> str:
    if change.to not in SPLITS:
        raise UnknownNameError("split", change.to, SPLITS)
    numbers = draft.numbers(change.split, change.samples)
    numbers = np.unique(numbers[draft.splits[numbers] != LEFT_OUT])
    draft.splits[numbers] = SPLITS.index(change.to)
    return f"Moved {_samples(numbers)} from {change.split} to {change.to}."


def _resplit(draft: Draft, change: Resplit) -> str:
    splits = np.asarray(change.splits)
    if splits.shape != draft.splits.shape or splits.dtype.kind not in "iu":
        raise DataError(
            f"A new division says the split of each of the {len(draft.splits)} samples.",
            received=f"an array {splits.shape} of {splits.dtype}",
        )
    if len(splits) and not (splits.min() >= LEFT_OUT and splits.max() < len(SPLITS)):
        rule = "A split is 0 (train), 1 (val) or 2 (test), or -1 to leave a sample out."
        raise DataError(rule, received=f"{splits.min()} to {splits.max()}")
    draft.leave_out(np.flatnonzero(splits == LEFT_OUT), "excluded", "A new division into splits left it out.")
    still = draft.splits != LEFT_OUT
    draft.splits[still] = splits[still]
    counts = {name: int(np.count_nonzero(draft.splits == place)) for place, name in enumerate(SPLITS)}
    return f"Divided the samples anew: {', '.join(f'{name} {count}' for name, count in counts.items() if count)}."


def _rename_class(draft: Draft, change: RenameClass) -> str:
    _renumber(draft, rename_class(draft.schema, change.name, change.new_name))
    return f"Renamed class {change.name} to {change.new_name}."


def _name_classes(draft: Draft, change: NameClasses) -> str:
    before = draft.schema
    edit = name_classes(before, change.names, change.colours)
    if edit.schema == before:
        raise UsageError("Nothing would change.", advice="Give a class another name or color.")
    _renumber(draft, edit)
    pairs = zip(before.class_names, edit.schema.class_names, strict=False)
    renamed = [f"{old} to {new}" for old, new in pairs if old != new]
    if not before.class_names:
        return f"Named the classes {_short(', '.join(change.names))}."
    return f"Renamed {_short(', '.join(renamed))}." if renamed else "Gave classes other colors."


def _merge_classes(draft: Draft, change: MergeClasses) -> str:
    _renumber(draft, merge_classes(draft.schema, change.names, change.into))
    return f"Made one class {change.into} of {_short(', '.join(change.names))}."


def _drop_class(draft: Draft, change: DropClass) -> str:
    _renumber(draft, drop_classes(draft.schema, [change.name]))
    return f"Left out class {change.name}."


def _keep_classes(draft: Draft, change: KeepClasses) -> str:
    _renumber(draft, keep_classes(draft.schema, change.names))
    return f"Kept only the classes {_short(', '.join(change.names))}."


def _renumber(draft: Draft, edit: ClassEdit) -> None:
    names = draft.schema.class_names
    draft.renumber(edit.schema, edit.numbers)
    if not has_one_class(draft.schema) or DROPPED not in edit.numbers:
        return
    for origin in draft.origins:
        classes = origin.dataset.catalogue.column("class")
        gone = np.zeros(len(origin), bool)
        inside = (classes >= 0) & (classes < len(origin.classes))
        gone[inside] = origin.classes[classes[inside]] == DROPPED
        numbers = origin.first + np.flatnonzero(gone)
        draft.leave_out(numbers[~np.isin(numbers, list(draft.labels))], "excluded", _reason(names, edit))
    relabelled = [number for number, label in draft.labels.items() if label == DROPPED]
    draft.leave_out(np.array(relabelled, np.int64), "excluded", _reason(names, edit))
    for number in relabelled:
        del draft.labels[number]


def _reason(names: Sequence[str], edit: ClassEdit) -> str:
    dropped = [name for name, number in zip(names, edit.numbers, strict=True) if number == DROPPED]
    return f"Its class was left out ({_short(', '.join(dropped))})."


def _samples(chosen: np.ndarray | int) -> str:
    return plural(chosen if isinstance(chosen, int) else len(chosen), "sample")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_APPLIERS: Final[Mapping[type, Callable[[Draft, Any], str]]] = {
    Relabel: _relabel,
    CorrectObjects: _correct_objects,
    Exclude: _exclude,
    Move: _move,
    Resplit: _resplit,
    RenameClass: _rename_class,
    NameClasses: _name_classes,
    MergeClasses: _merge_classes,
    DropClass: _drop_class,
    KeepClasses: _keep_classes,
}
