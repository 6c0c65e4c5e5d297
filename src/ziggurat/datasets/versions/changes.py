"""Changes that make a new version of a dataset, as plain values.

Changes are applied in order. Rows and keys always refer to the samples of the source datasets, so excluding row 3
does not shift row 4. When several datasets are joined, the rows of a split continue from one dataset to the next, and
keys are those of the joined dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "Change",
    "DropClass",
    "Exclude",
    "KeepClasses",
    "MergeClasses",
    "Move",
    "Relabel",
    "RenameClass",
    "Resplit",
    "Samples",
]

Samples = Sequence[int] | Sequence[str] | np.ndarray
"""Rows of a split, from 0, or keys."""


@dataclass(frozen=True)
class Relabel:
    """Give samples another label.

    Args:
        split: that they are in.
        samples: their rows or keys.
        label: in the form that the kind says (``ziggurat.records.schema``); a class also by its name.
    """

    split: str
    samples: Samples
    label: Any


@dataclass(frozen=True)
class Exclude:
    """Leave samples out.

    Args:
        split: that they are in.
        samples: their rows or keys.
        reason: one sentence; the catalog lists it under the kind ``excluded``.
    """

    split: str
    samples: Samples
    reason: str = ""


@dataclass(frozen=True)
class Move:
    """Move samples to another split.

    Args:
        split: that they are in.
        samples: their rows or keys.
        to: ``train``, ``val`` or ``test``.
    """

    split: str
    samples: Samples
    to: str


@dataclass(frozen=True, eq=False)
class Resplit:
    """Divide the samples anew.

    Args:
        splits: (N,) place in ``ziggurat.datasets.samples.SPLITS`` of every sample in the order of the catalog, -1
            for one that is left out, as ``ziggurat.datasets.splitting`` assigns them.
    """

    splits: np.ndarray


@dataclass(frozen=True)
class RenameClass:
    """Give a class another name.

    Args:
        name: as it is.
        new_name: as it shall be; no other class has it.
    """

    name: str
    new_name: str


@dataclass(frozen=True)
class MergeClasses:
    """Make one class of several.

    Args:
        names: of the classes.
        into: name of the class that they become: one of all the classes there are, or a new one.
    """

    names: Sequence[str]
    into: str


@dataclass(frozen=True)
class DropClass:
    """Leave a class out: its samples, or in a detection set its objects.

    Args:
        name: of the class.
    """

    name: str


@dataclass(frozen=True)
class KeepClasses:
    """Leave all other classes out.

    Args:
        names: of the classes that stay; their order does not change.
    """

    names: Sequence[str]


Change = Relabel | Exclude | Move | Resplit | RenameClass | MergeClasses | DropClass | KeepClasses
"""Anything that makes a new version."""
