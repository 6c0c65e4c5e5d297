"""Predictions for a few validation samples, the same samples after each validation.

The ``kind`` of a file, which is the name of the task, decides on labels and predictions: class numbers for a
classification, boxes, small masks, or values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ziggurat.entities.json_lines import read_lines
from ziggurat.entities.sample_content import SampleContent, content_from_json

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
"""Kind whose predictions have ``class`` (number) and ``score`` (in [0, 1]); the ``label`` is a class number."""

MOST_SAMPLES: Final = 9
"""Maximum number of samples."""

MOST_RECORDS: Final = 400
"""Maximum number of validations with predictions; beyond it, every second one is removed."""


@dataclass(frozen=True, kw_only=True)
class ShownSample:
    """A sample that has predictions.

    Args:
        number: from 0, in the order of the predictions.
        split: of the sample.
        row: in the split, from 0.
        key: of the sample, such as the path of its file.
        label: true value; for a classification a class number.
        content: what was given, where it is no image; None where it is one.
    """

    number: int
    split: str
    row: int
    key: str
    label: Any
    content: SampleContent | None = None


@dataclass(frozen=True, kw_only=True)
class SamplePredictions:
    """The sample predictions of a job; empty for a job without any.

    Args:
        kind: of the predictions; empty if there are none.
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
    """Return the predictions in the file of a job: empty if the file is missing; damaged lines are skipped."""
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
            content=content_from_json(each.get("content")),
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
    """Return at most ``most`` records: every second one is removed, repeatedly, but never the first or the newest."""
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
