"""Charts of an evaluation of object detection: curves, errors, confusion with the background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.formatting import as_percent
from ziggurat.tasks.detection_matching import MATCH_IOU, SHOWN_SCORE
from ziggurat.tasks.report import ReportChart

__all__ = ["detection_charts"]

_MOST_CURVES: Final = 10
_BACKGROUND: Final = "background"


def detection_charts(
    metrics: Mapping[str, Any], iou: float = MATCH_IOU, confidence: float = SHOWN_SCORE
) -> list[ReportChart]:
    """Return the charts.

    Args:
        metrics: that ``DetectionMetric.compute`` gave; what an older evaluation has not is left out.
        iou: of ``by_confidence``, ``errors`` and ``confusion``.
        confidence: of ``errors`` and ``confusion``.
    """
    at = f"At an IoU of {iou:g} and a confidence of {as_percent(confidence)}"
    made = (
        _precision_and_recall(metrics.get("curves")),
        _by_confidence(metrics.get("by_confidence"), iou),
        _errors(metrics.get("errors"), at),
        _confusion(metrics.get("confusion"), metrics.get("classes"), at),
    )
    return [chart for chart in made if chart is not None]


def _precision_and_recall(curves: Mapping[str, Any] | None) -> ReportChart | None:
    if not curves or not curves["classes"]:
        return None
    shown = curves["classes"][:_MOST_CURVES]
    groups = [
        {
            "name": each["class"],
            "points": [list(pair) for pair in zip(curves["recall"], each["precision"], strict=True)],
        }
        for each in shown
    ]
    few = f" The first {len(shown)} of {len(curves['classes'])} classes." if len(shown) < len(curves["classes"]) else ""
    data = {"kind": "scatter", "x": "Recall", "y": "Precision", "groups": groups}
    return ReportChart(
        "precision-recall", "Precision and recall", data, f"At an IoU of 0.5; AP50 is the area below.{few}"
    )


def _by_confidence(rows: Sequence[Mapping[str, Any]] | None, iou: float) -> ReportChart | None:
    if not rows:
        return None
    groups = [
        {
            "name": title,
            "points": [[each["confidence"], each[name]] for each in rows if each[name] is not None],
        }
        for name, title in (("precision", "Precision"), ("recall", "Recall"), ("f1", "F1"))
    ]
    data = {"kind": "scatter", "x": "Confidence from", "y": "Share", "groups": groups}
    note = f"All classes together at an IoU of {iou:g}: what a least confidence costs and gains."
    return ReportChart("by-confidence", "Choice of the confidence", data, note)


def _errors(rows: Sequence[Mapping[str, Any]] | None, at: str) -> ReportChart | None:
    """Return what each kind of error costs; how often it is made, where the costs are of another IoU."""
    if not rows:
        return None
    has_costs = "cost" in rows[0]
    data = {
        "kind": "bar",
        "names": [str(each["error"]) for each in rows],
        "series": [
            {
                "name": "Cost in AP50" if has_costs else "Errors",
                "values": [each["cost" if has_costs else "count"] for each in rows],
            }
        ],
        "x": "Kind of error",
        "y": "AP50 lost" if has_costs else "Errors",
        "across": True,
        "percent": has_costs,
        "samples": [{"errors": str(each["error"])} if each["count"] else None for each in rows],
    }
    counts = ", ".join(f"{each['error']} {each['count']:,}" for each in rows if each["count"])
    return ReportChart("errors", "Errors", data, f"{at}: {counts}. A bar opens its images." if counts else "")


def _confusion(
    matrix: Sequence[Sequence[int]] | None, classes: Sequence[Mapping[str, Any]] | None, at: str
) -> ReportChart | None:
    if not matrix or not classes:
        return None
    names = [*(str(each["class"]) for each in classes), _BACKGROUND]
    shares = [[value / max(1, sum(row)) for value in row] for row in matrix]
    data = {
        "kind": "heat",
        "rows": names,
        "columns": names,
        "values": [list(row) for row in matrix],
        "shares": shares,
        "x": "Predicted",
        "y": "Actual",
        "samples": {"actual": "{row_number}", "found": "{column_number}"},
    }
    note = f"{at}. Last column: missed objects; last row: detections of nothing. A cell opens its images."
    return ReportChart("confusion", "Confusion", data, note)
