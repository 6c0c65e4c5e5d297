"""Curves of a training: values by name, as a table of pandas, as charts in a notebook, and by matplotlib."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from ziggurat.entities.best_checkpoint import metric_text, metric_title
from ziggurat.errors import MissingDependencyError, UnknownNameError
from ziggurat.formatting import as_heading
from ziggurat.interactive.frames import frame
from ziggurat.interactive.home import CurvePoints
from ziggurat.interactive.markup import Line, block, line_chart
from ziggurat.interactive.metrics import base_of, grouped_tags, is_validation

__all__ = ["Curves"]

_MOST_CHARTS = 6


class Curves(Mapping[str, CurvePoints]):
    """Curves of a training, by tag, such as ``curves["validation_accuracy"].values``.

    Args:
        name: name of the run.
        points: tag → points.
    """

    def __init__(self, name: str, points: Mapping[str, CurvePoints]) -> None:
        self._name = name
        self._points = dict(sorted(points.items()))

    def __getitem__(self, tag: str) -> CurvePoints:
        """Return the points of a curve.

        Raises:
            UnknownNameError: if there is no such curve; it is a ``KeyError`` for ``in`` and ``get``.
        """
        if tag not in self._points:
            raise UnknownCurveError("curve", tag, self._points)
        return self._points[tag]

    def __iter__(self) -> Iterator[str]:
        return iter(self._points)

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        tags = ", ".join(tag for group in grouped_tags(self._points) for tag in group)
        return f"Curves({self._name!r}: {tags or 'none yet'})"

    def to_pandas(self) -> Any:
        """Return a DataFrame: a row for each step at which anything was recorded, a column for each curve.

        Raises:
            MissingDependencyError: if pandas is not installed.
        """
        rows: dict[float, dict[str, Any]] = {}
        for tag, curve in self._points.items():
            for step, value, epoch in zip(curve.steps, curve.values, curve.epochs):
                rows.setdefault(step, {"step": step, "epoch": epoch})[tag] = value
        return frame([rows[step] for step in sorted(rows)], ["step", "epoch", *self._points]).set_index("step")

    def plot(self) -> Any:
        """Draw a chart for each metric with matplotlib; the loss comes first.

        Returns:
            A matplotlib ``Figure``; in a notebook it is shown.

        Raises:
            MissingDependencyError: if matplotlib is not installed.
        """
        try:
            from matplotlib import pyplot
        except ModuleNotFoundError:
            raise MissingDependencyError("matplotlib", extra="", purpose="a plot") from None
        groups = grouped_tags(self._points)
        figure, axes = pyplot.subplots(
            1, max(1, len(groups)), figsize=(4 * max(1, len(groups)), 3), squeeze=False, layout="constrained"
        )
        for tags, place in zip(groups, axes[0]):
            for tag in tags:
                place.plot(self._points[tag].steps, self._points[tag].values, label=_label(tag))
            place.set_title(_title(tags))
            place.set_xlabel("step")
            place.legend()
        return figure

    def _repr_html_(self) -> str:
        return block(f"Curves of {self._name}", self.charts() or "<p>None yet.</p>")

    def charts(self) -> str:
        """Return a chart for each metric, as HTML; the loss comes first."""
        drawn = [self._chart(group) for group in grouped_tags(self._points)[:_MOST_CHARTS]]
        return f'<div class="zr-row">{"".join(drawn)}</div>' if drawn else ""

    def _chart(self, tags: list[str]) -> str:
        labels = {tag: _label(tag) for tag in tags}
        lines = [
            Line(
                label=labels[tag],
                xs=self._points[tag].steps,
                ys=self._points[tag].values,
                color=int(is_validation(tag)),
            )
            for tag in tags
        ]
        last = {labels[tag]: metric_text(tag, self._points[tag].values[-1]) for tag in tags}
        return line_chart(_title(tags), lines, last, format_value=functools.partial(metric_text, tags[0]))


def _label(tag: str) -> str:
    return "validation" if is_validation(tag) else "training"


def _title(tags: list[str]) -> str:
    """Return the title of the chart of a metric, by its tags."""
    return as_heading(metric_title(base_of(tags[0])).removeprefix("training "))


class UnknownCurveError(UnknownNameError, KeyError):
    """A curve that a training does not have."""

    def __str__(self) -> str:
        return self._text()  # a KeyError shows its argument in quotes
