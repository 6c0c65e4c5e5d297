"""Class-size limits: small classes are excluded, large ones are subsampled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ziggurat.datasets.samples import Problem
from ziggurat.datasets.splitting.rule import SplitRule

__all__ = ["LEFT_OUT", "OPEN", "limit_classes"]

LEFT_OUT: Final = -1
OPEN: Final = -2
"""Stands for a sample that has no split yet."""


def limit_classes(
    splits: np.ndarray,
    classes: np.ndarray,
    rule: SplitRule,
    random: np.random.Generator,
    class_names: Sequence[str] = (),
) -> tuple[list[Problem], list[str]]:
    """Set samples to ``LEFT_OUT`` where their class is too small or too large; return problems and notes.

    Args:
        splits: (N,) int8 what is decided already; changed here.
        classes: (N,) numbers of classes, -1 for none.
        rule: has the limits.
        random: chooses.
        class_names: by number.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    numbers, counts = np.unique(classes[(classes >= 0) & (splits != LEFT_OUT)], return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        name = str(class_names[number]) if number < len(class_names) else str(number)
        if count < rule.min_per_class:
            splits[classes == number] = LEFT_OUT
            reason = f"Class {name} has {count} samples; {rule.min_per_class} are asked for. All of it is left out."
            problems.append(Problem(key=name, kind="small-class", reason=reason, left_out=True))
        elif rule.max_per_class is not None and count > rule.max_per_class:
            free = np.flatnonzero((classes == number) & ((splits == OPEN) | (splits == 0)))
            leave = min(count - rule.max_per_class, len(free))
            splits[random.permutation(free)[:leave]] = LEFT_OUT
            notes.append(f"{leave} of {count} samples of class {name} are left out by `max_per_class`.")
    return problems, notes
