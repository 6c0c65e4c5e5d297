"""Sample as an importer describes it, before its content is read; problems of a source; and names of splits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "COUNTED_FROM_ONE",
    "DAY_OPEN",
    "LEAKING",
    "MASK_VALUES",
    "SPLITS",
    "SPLIT_NAMES",
    "TOLD",
    "Problem",
    "Sample",
    "split_in",
    "split_of",
]

SPLITS: Final = ("train", "val", "test")
"""The splits that a dataset may have, in order."""

LEAKING: Final = "leaking-column"
"""Kind of the problem of a column that determines the target."""

DAY_OPEN: Final = "day-or-month"
"""Kind of the problem of dates that are read with the month first, and may have the day first."""

COUNTED_FROM_ONE: Final = "counted-from-one"
"""Kind of the problem of class numbers that are taken as counted from 1."""

MASK_VALUES: Final = "mask-values"
"""Kind of the problem of values in masks that are not the numbers from 0 up."""

TOLD: Final = (LEAKING, DAY_OPEN, COUNTED_FROM_ONE, MASK_VALUES, "encoding")
"""Kinds of problems that a preview and a creation warn of, although nothing is lost."""

SPLIT_NAMES: Final = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "testing": "test",
}
"""Name of a folder or a list, in lower case → the split that it stands for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One sample of a source.

    Args:
        key: its name in the source, the same in every scan and unique; a file's path below the source, with ``/``.
        parts: where its parts are, in the order of the schema: an address that the importer's reader understands (for
            most, the path of a file below the source), or the content itself as bytes (a text in UTF-8; a row of a
            table as a JSON list).
        label: in the form that the kind of the dataset says, see ``ziggurat.records.schema``.
        split: ``train``, ``val`` or ``test`` where the source says so; else empty.
        group: what must not be torn apart by a split, such as a patient; empty if not given.
        time: when it was taken, in seconds since 1970; None if not given.
        size_bytes: of the first part's file; None where that is unknown.
    """

    key: str
    parts: tuple[str | bytes, ...]
    label: Any = None
    split: str = ""
    group: str = ""
    time: float | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something in a source, or in a sample of it, that is not as it should be.

    Args:
        key: the sample's, or a file's name.
        kind: one word for all of its like: ``unreadable``, ``no-label``, ``bad-line``, ``zero-size-box``,
            ``box-outside``, ``unknown-class``, ``no-picture``, ``missing-value``, ``duplicate-key``, ``small-class``, …
        reason: one sentence.
        left_out: whether the sample is not in the dataset because of it.
        objects: how many objects stand in the source and not in the dataset because of it.
        names: how many names of classes, splits or columns do.
        why: why they do not, for all of its like, as the end of a sentence: "their category is not in `categories`";
            empty for what ``ziggurat.datasets.creation.losses`` says of the kind.
        class_name: of the sample or the objects that were lost; empty where it is unknown.
        split: of the sample that was left out, where the source says it.
    """

    key: str
    kind: str
    reason: str
    left_out: bool = False
    objects: int = 0
    names: int = 0
    why: str = ""
    class_name: str = ""
    split: str = ""


def split_of(path: str) -> str:
    """Return the split that the first folder of a path stands for; empty where it stands for none.

    >>> split_of("Validation/cat/1.jpg")
    'val'
    """
    return SPLIT_NAMES.get(path.partition("/")[0].lower(), "")


def split_in(path: str) -> str:
    """Return the split that the last word of a path with such a meaning stands for; empty where none has one.

    >>> split_in("coco_val.record-00000-of-00010")
    'val'
    """
    splits = (SPLIT_NAMES.get(word.lower(), "") for word in reversed(re.findall("[a-zA-Z]+", path)))
    return next(filter(None, splits), "")
