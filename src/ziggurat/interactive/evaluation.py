"""Evaluation of a run on a split: metrics, confusion matrix, and the table of the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import numpy as np

from ziggurat.entities.best_checkpoint import metric_text, metric_title
from ziggurat.formatting import plural
from ziggurat.interactive.frames import frame
from ziggurat.interactive.markup import block, facts, table
from ziggurat.interactive.metrics import figure_text, figure_title, main_metrics

__all__ = ["Evaluation"]

_COUNTS: Final = ("step", "epoch", "samples", "skipped", "test_openings", "openings", "count", "threshold")
_CLASS_COUNTS: Final = ("samples", "predicted", "objects", "pixels", "number", "count", "positives")
_MOST_CLASSES: Final = 30
_SPLITS: Final = {"val": "validation", "train": "training", "test": "test"}


class Evaluation:
    """Result of an evaluation.

    Args:
        name: name of the run.
        data: answer of the evaluation, JSON values.

    Attributes:
        data: the whole answer.
    """

    def __init__(self, name: str, data: Mapping[str, Any]) -> None:
        self._name = name
        self.data = dict(data)

    @property
    def split(self) -> str:
        """``train``, ``val`` or ``test``."""
        return str(self.data["split"])

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self.data["samples"])

    @property
    def metrics(self) -> dict[str, float]:
        """Metric → value: the loss (``cost``), then those of the task, such as ``accuracy`` or ``map``."""
        known = {**self.data["scalars"], **self.data.get("metrics", {}), **self.data}
        return {name: float(value) for name, value in known.items() if _is_number(value) and name not in _COUNTS}

    @property
    def accuracy(self) -> float | None:
        """Share of the samples with the right class, from 0 to 1; None for a network that does not classify."""
        return self.metrics.get("accuracy")

    @property
    def classes(self) -> list[dict[str, Any]]:
        """Row for each class, such as its samples, precision and recall; empty if there are no classes."""
        known = {**self.data.get("metrics", {}), **self.data}
        found = known.get("classes") or next((rows for rows in known.values() if _is_table(rows)), [])
        return found if _is_table(found) else []

    @property
    def confusion(self) -> np.ndarray | None:
        """Confusion matrix (K, K) int64, row: actual class, column: predicted class; None if there is none."""
        matrix = self.data.get("confusion")
        return None if matrix is None else np.asarray(matrix, np.int64)

    def __repr__(self) -> str:
        figures = [
            f"{metric_title(tag).removeprefix('training ')} {metric_text(tag, value)}" for tag, value in self._main()
        ]
        split = _SPLITS.get(self.split, self.split)
        return (
            f"Evaluation({', '.join([repr(self._name), f'{split} split', plural(self.samples, 'sample'), *figures])})"
        )

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each class, or without classes one row with the metrics.

        Raises:
            MissingDependencyError: if pandas is not installed.
        """
        return frame(self.classes or [self.metrics])

    def _main(self) -> list[tuple[str, float]]:
        return list(reversed(main_metrics(self.metrics)))

    def _repr_html_(self) -> str:
        pairs = [(figure_title(name), figure_text(name, value)) for name, value in self.metrics.items()]
        skipped = plural(self.data.get("skipped") or 0, "unreadable file") if self.data.get("skipped") else ""
        title = f"{self._name}: {_SPLITS.get(self.split, self.split)} split, {plural(self.samples, 'sample')}"
        return block(
            title,
            facts([*pairs, ("", skipped), ("Checkpoint", str(self.data.get("checkpoint", "")))]),
            f'<p class="zr-soft">{escape(str(self.data.get("baselines") or ""))}</p>',
            f'<div class="zr-row">{self._confusion_html()}{self._classes_html()}</div>',
        )

    def _classes_html(self) -> str:
        rows = self.classes[:_MOST_CLASSES]
        if not rows:
            return ""
        columns = [name for name, value in rows[0].items() if not isinstance(value, list | dict)]
        cells = [[_cell(name, row.get(name)) for name in columns] for row in rows]
        more = len(self.classes) - len(rows)
        rest = f'<p class="zr-soft">{more} more classes are in <code>classes</code>.</p>' if more else ""
        return f"<div>{table(cells, [figure_title(name) for name in columns])}{rest}</div>"

    def _confusion_html(self) -> str:
        matrix = self.confusion
        names = [str(row.get("class", number)) for number, row in enumerate(self.classes)]
        if matrix is None or not 0 < len(matrix) <= _MOST_CLASSES or len(names) != len(matrix):
            return ""
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        rows = []
        for row, name in enumerate(names):
            cells = "".join(_matrix_cell(matrix, row, column) for column in range(len(names)))
            rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
        caption = "Confusion matrix. Rows: actual; columns: predicted."
        body = "".join(rows)
        return (
            f"<table><caption>{caption}</caption><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def _matrix_cell(matrix: np.ndarray, row: int, column: int) -> str:
    count = int(matrix[row, column])
    share = count / max(1, int(matrix[row].sum()))
    color = "59,130,196" if row == column else "208,68,122"
    shade = f' style="background:rgba({color},{0.12 + 0.45 * share:.2f})"' if count else ""
    return f"<td{shade}>{count or ''}</td>"


def _cell(name: str, value: Any) -> str:
    if not _is_number(value):
        return "–" if value is None else str(value)
    return str(value) if name in _CLASS_COUNTS else figure_text(name, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and bool(value)
        and not isinstance(value, str)
        and all(isinstance(row, Mapping) for row in value)
    )
