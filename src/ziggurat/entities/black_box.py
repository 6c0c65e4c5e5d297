"""Record of the last batches before a loss was not finite, as ``BlackBox`` writes it into the folder of a job."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["ArrayFacts", "LastBatch", "LastStep", "read_last_batches"]

_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, kw_only=True)
class ArrayFacts:
    """Facts on an array of a batch.

    Args:
        shape: of the array; its first axis counts the samples.
        dtype: its type, such as ``float32``.
        finite: whether all its numbers are finite; None for what has no numbers.
        least: its least finite number; None for none.
        largest: its largest finite number; None for none.
    """

    shape: tuple[int, ...]
    dtype: str
    finite: bool | None = None
    least: float | None = None
    largest: float | None = None


@dataclass(frozen=True, kw_only=True)
class LastStep:
    """One of the last steps.

    Args:
        step: ``global_step``.
        epoch: from 1.
        values: value of the step by name, such as ``cost``; may be NaN or infinite.
        arrays: facts on the arrays of its batch by name: ``batch/0`` is the input, ``batch/1`` the target. Empty for
            jobs of earlier releases.
    """

    step: int
    epoch: int
    values: Mapping[str, float]
    arrays: Mapping[str, ArrayFacts] = field(default_factory=dict[str, ArrayFacts])


@dataclass(frozen=True, kw_only=True)
class LastBatch:
    """What the training of a job read and computed in its last steps; empty for a job without such a record.

    Args:
        steps: the oldest first.
        split: of the samples of the last batch.
        rows: row of each of its samples in the split, from 0; empty if they are not known.
        inputs: kind of its data, such as ``image-classification``; empty if unknown.
        classes: number of classes if the target of a sample is one class number, else None.
    """

    steps: tuple[LastStep, ...] = ()
    split: str = ""
    rows: tuple[int, ...] = ()
    inputs: str = ""
    classes: int | None = None


def read_last_batches(folder: Path) -> LastBatch:
    """Return the record in a folder; empty if there is none, or it is damaged."""
    try:
        content = json.loads((folder / "black_box.json").read_text(encoding="utf-8"))
        about = content.get("batch") or {}
        return LastBatch(
            steps=tuple(_step(each) for each in content["steps"]),
            split=str(about.get("split", "")),
            rows=tuple(int(row) for row in about.get("rows") or ()),
            inputs=str(about.get("inputs", "")),
            classes=None if about.get("classes") is None else int(about["classes"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return LastBatch()


def _step(content: Mapping[str, Any]) -> LastStep:
    values, arrays = content["values"].items(), content.get("arrays", {}).items()
    return LastStep(
        step=int(content["step"]),
        epoch=int(content["epoch"]),
        values={name: _NUMBERS[value] if value in _NUMBERS else float(value) for name, value in values},
        arrays={name: _array(each) for name, each in arrays},
    )


def _array(content: Mapping[str, Any]) -> ArrayFacts:
    numbers = {name: None if content.get(name) is None else float(content[name]) for name in ("least", "largest")}
    return ArrayFacts(**{**content, **numbers, "shape": tuple(content["shape"])})
