"""Per-class plots: precision-recall curve and ROC curve (true over false positive rate)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CurvesPicture", "curves_picture"]

_SIDE: Final = 200
_LEFT: Final = 34
_TOP: Final = 8
_TABLE_ROWS: Final = 21


@dataclass(frozen=True, kw_only=True)
class CurvesPicture:
    """Numbers of the two images.

    Args:
        precision: points of an SVG polyline, precision over recall.
        rates: points of an SVG polyline, true over false positive rate.
        precision_mark: place of the threshold on the first curve; None where there is none.
        rates_mark: place of the threshold on the second curve; None where there is none.
        table: threshold, precision, recall and false positive rate, thinned out.
    """

    precision: str
    rates: str
    precision_mark: tuple[float, float] | None
    rates_mark: tuple[float, float] | None
    table: Sequence[tuple[float, float, float, float]]


def curves_picture(curves: Mapping[str, Any], threshold: float) -> CurvesPicture:
    """Return the images of a class.

    Args:
        curves: as ``Evaluations.curves`` gives them.
        threshold: that is marked; 0 for none.
    """
    recall, precision = curves["recall"], curves["precision"]
    false, true = curves["false_positive"], curves["true_positive"]
    marked = _marked(curves["thresholds"], threshold)
    rows = list(zip(curves["thresholds"], precision, recall, false, strict=True))
    return CurvesPicture(
        precision=_points(recall, precision),
        rates=_points([0.0, *false], [0.0, *true]),
        precision_mark=None if marked is None else _place(recall[marked], precision[marked]),
        rates_mark=None if marked is None else _place(false[marked], true[marked]),
        table=[rows[place] for place in _thinned(len(rows))],
    )


def _marked(thresholds: Sequence[float], threshold: float) -> int | None:
    """Return the place of the last point that a threshold leaves; thresholds fall."""
    left = [place for place, value in enumerate(thresholds) if value >= threshold]
    return left[-1] if left and threshold > 0 else None


def _points(across: Sequence[float], up: Sequence[float]) -> str:
    places = (_place(x, y) for x, y in zip(across, up, strict=True))
    return " ".join(f"{x},{y}" for x, y in places)


def _place(across: float, up: float) -> tuple[float, float]:
    return round(_LEFT + _SIDE * across, 1), round(_TOP + _SIDE * (1 - up), 1)


def _thinned(count: int) -> list[int]:
    return sorted({round(row * (count - 1) / (_TABLE_ROWS - 1)) for row in range(_TABLE_ROWS)}) if count else []
