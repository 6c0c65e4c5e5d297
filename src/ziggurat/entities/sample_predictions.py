"""Predictions for a few validation samples, the same after each validation, as a job keeps them.

The format is open: a record has a ``kind`` (``classification`` today), and what it holds of each sample is up to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ziggurat.entities.json_lines import read_lines

__all__ = [
    "CLASSIFICATION",
    "MOST_RECORDS",
    "MOST_SAMPLES",
    "SamplePredictions",
    "ShownSample",
    "read_sample_predictions",
    "thinned_records",
]

CLASSIFICATION: Final = "classification"
"""Kind whose predictions have ``class`` and ``score``, and whose samples have ``label``: class numbers, share."""

MOST_SAMPLES: Final = 9
"""Samples at most."""

MOST_RECORDS: Final = 400
"""Validations at most whose predictions are kept; of more, every second one goes."""


@dataclass(frozen=True, kw_only=True)
class ShownSample:
    """A sample of which predictions are kept.

    Args:
        number: from 0, in the order of the predictions.
        split: that it is in.
        row: in the split, from 0.
        key: that names it, such as the path of its file.
        label: its true value, as the kind has it: a class number.
    """

    number: int
    split: str
    row: int
    key: str
    label: Any


@dataclass(frozen=True, kw_only=True)
class SamplePredictions:
    """The predictions of a job; empty for one that keeps none.

    Args:
        kind: what is predicted; empty where there is nothing.
        class_names: by class number; empty for kinds without classes.
        samples: in the order of the predictions.
        records: after each validation, the oldest first: ``step``, ``epoch``, ``time`` and ``predictions``, one JSON
            object for each sample: for a classification ``class`` (number) and ``score`` (in [0, 1]).
    """

    kind: str = ""
    class_names: tuple[str, ...] = ()
    samples: tuple[ShownSample, ...] = ()
    records: tuple[Mapping[str, Any], ...] = field(default=())


def read_sample_predictions(path: Path) -> SamplePredictions:
    """Return what the file of a job holds; a missing one holds nothing, and damaged lines are skipped."""
    lines = read_lines(path)
    head = next((line for line in lines if isinstance(line.get("samples"), list)), None)
    if head is None:
        return SamplePredictions()
    samples = tuple(
        ShownSample(
            number=number,
            split=str(each.get("split", "")),
            row=each["row"] if isinstance(each.get("row"), int) else 0,
            key=str(each.get("key", "")),
            label=each.get("label"),
        )
        for number, each in enumerate(head["samples"])
        if isinstance(each, dict)
    )
    names = head.get("class_names")
    return SamplePredictions(
        kind=str(head.get("kind", "")),
        class_names=tuple(map(str, names)) if isinstance(names, list) else (),
        samples=samples,
        records=tuple(line for line in lines if _is_record(line, len(samples))),
    )


def thinned_records(records: Sequence[Mapping[str, Any]], most: int = MOST_RECORDS) -> list[Mapping[str, Any]]:
    """Return the records without every second one where there are too many; the first and the newest stay."""
    kept = list(records)
    while len(kept) > most:
        kept = [*kept[:-1:2], kept[-1]]
    return kept


def _is_record(line: Mapping[str, Any], samples: int) -> bool:
    predictions = line.get("predictions")
    return (
        isinstance(predictions, list)
        and len(predictions) == samples
        and all(isinstance(each, dict) for each in predictions)
        and isinstance(line.get("step"), int)
        and isinstance(line.get("epoch"), int | float)
    )
