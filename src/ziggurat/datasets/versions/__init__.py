"""Dataset versions: a dataset is immutable, and every change makes a new one that shares its records."""

from ziggurat.datasets.versions.classes import checked_label, label_fault
from ziggurat.datasets.versions.draft import (
    Change,
    CorrectObjects,
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
from ziggurat.datasets.versions.history import Differences, VersionNote, differences, history
from ziggurat.datasets.versions.make import append, make_version, merge_datasets
from ziggurat.datasets.versions.matching import Matching, SplitSamples, match_samples, split_samples

__all__ = [
    "Change",
    "CorrectObjects",
    "Differences",
    "DropClass",
    "Exclude",
    "KeepClasses",
    "Matching",
    "MergeClasses",
    "Move",
    "NameClasses",
    "Relabel",
    "RenameClass",
    "Resplit",
    "SplitSamples",
    "VersionNote",
    "append",
    "checked_label",
    "differences",
    "history",
    "label_fault",
    "make_version",
    "match_samples",
    "merge_datasets",
    "split_samples",
]
