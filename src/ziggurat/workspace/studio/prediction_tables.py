"""Tables of the predictions of a job for programs and spreadsheets: CSV and JSON, written part by part."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np

from ziggurat.workspace.studio.predictions import Predictions

__all__ = ["TABLE_TYPES", "TableFormat", "prediction_table"]

TableFormat = Literal["csv", "json"]

TABLE_TYPES: Final[dict[str, str]] = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
"""Format → media type."""

_AT_ONCE: Final = 1000

_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a cell that spreadsheets compute begins with."""


def prediction_table(predictions: Predictions, table_format: TableFormat) -> Iterator[bytes]:
    """Yield the table part by part.

    CSV has a line for each sample: split, row, key, the names and numbers of label and predicted class, the score,
    class and score of each of the best, and the decision where an operating point was obeyed; of a network that does
    not classify, split, row, key, score, and a column for each number that its task keeps. A text that a spreadsheet
    would take for a formula gets an apostrophe in front.
    JSON is a list of the samples as ``Predictions.samples`` has them; NaN is the text ``NaN`` there.

    Args:
        predictions: of the job.
        table_format: ``csv`` or ``json``.
    """
    parts = (
        predictions.samples(np.arange(start, min(start + _AT_ONCE, len(predictions))))
        for start in range(0, len(predictions), _AT_ONCE)
    )
    return _csv(predictions, parts) if table_format == "csv" else _json(parts)


def _csv(predictions: Predictions, parts: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    if not predictions.is_classifier:
        yield from _task_csv(predictions, parts)
        return
    names = predictions.class_names
    best = range(1, 1 + predictions.top)
    titles = ["split", "row", "key", "label", "label_name", "predicted", "predicted_name", "score"]
    titles += [title for number in best for title in (f"top_{number}_name", f"top_{number}_score")]
    yield _lines([[*titles, "decision"] if predictions.decided is not None else titles])
    for samples in parts:
        yield _lines([_cells(sample, names) for sample in samples])


def _task_csv(predictions: Predictions, parts: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    """Yield the table of a task without classes; an array of several numbers has a column for each."""
    widths = {name: math.prod(array.shape[1:]) for name, array in predictions.task_arrays.items() if array.ndim > 1}
    names = [name for name in predictions.task_arrays if name != predictions.task.ranked_by]
    columns = [
        [f"{name}_{number + 1}" for number in range(widths[name])] if name in widths else [name] for name in names
    ]
    yield _lines([["split", "row", "key", "score", *(title for each in columns for title in each)]])
    for samples in parts:
        yield _lines([_task_cells(sample) for sample in samples])


def _task_cells(sample: dict[str, Any]) -> list[Any]:
    values = [cell for value in sample["values"].values() for cell in np.ravel(value).tolist()]
    score = "" if sample["score"] is None else sample["score"]
    return [sample["split"], sample["row"], _harmless(sample["key"]), score, *values]


def _cells(sample: dict[str, Any], names: list[str]) -> list[Any]:
    label = sample["label"]
    cells = [
        sample["split"],
        sample["row"],
        _harmless(sample["key"]),
        "" if label is None else label,
        "" if label is None else _harmless(names[label]),
        sample["predicted"],
        _harmless(names[sample["predicted"]]),
        sample["score"],
    ]
    cells += [cell for each in sample["top"] for cell in (_harmless(each["name"]), each["score"])]
    return [*cells, _harmless(sample["decision"]["class"] or "undecided")] if "decision" in sample else cells


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _lines(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _json(parts: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    yield b"["
    is_first = True
    for samples in parts:
        texts = (json.dumps(_sound(sample)) for sample in samples)
        yield (b"\n" if is_first else b",\n") + ",\n".join(texts).encode()
        is_first = False
    yield b"\n]\n"


def _sound(value: Any) -> Any:
    """Return JSON values: a number that JSON has no word for as its name."""
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN"
    if isinstance(value, dict):
        return {name: _sound(part) for name, part in value.items()}
    return [_sound(part) for part in value] if isinstance(value, list) else value
