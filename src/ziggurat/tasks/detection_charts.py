"""Charts of an evaluation of object detection: curves, errors, confusion with the background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.formatting import as_percent
from ziggurat.tasks.detection_matching import MATCH_IOU, SHOWN_SCORE
from ziggurat.tasks.report import ReportChart

__all__ = ["ERROR_TITLES", "detection_charts"]

ERROR_TITLES: Final = {
    "classification": "wrong class",
    "localization": "wrong place",
    "both": "wrong class and place",
    "duplicate": "duplicate",
    "background": "nothing there",
    "missed": "missed object",
}
"""Name of a kind of error → what people call it."""

_NAMED_CURVES: Final = 4
_MOST_CURVES: Final = 40
_BACKGROUND: Final = "background"


def detection_charts(
    metrics: Mapping[str, Any], iou: float = MATCH_IOU, confidence: float = SHOWN_SCORE
) -> list[ReportChart]:
    """Return the charts.

    Args:
        metrics: that ``DetectionMetric.compute`` gave; what an older evaluation has not is left out. ``points``, where
            it is there, is the recall and precision of each class at the confidence, None where one is not defined.
        iou: of ``by_confidence``, ``errors`` and ``confusion``.
        confidence: of ``errors``, ``confusion`` and ``points``.
    """
    classes = metrics.get("classes")
    made = (
        _confusion(metrics.get("confusion"), classes, iou),
        _precision_and_recall(metrics.get("curves"), classes, metrics.get("points"), iou),
        _by_confidence(metrics.get("by_confidence"), iou, confidence),
        _errors(metrics.get("errors"), iou),
    )
    return [chart for chart in made if chart is not None]


def _precision_and_recall(
    curves: Mapping[str, Any] | None,
    classes: Sequence[Mapping[str, Any]] | None,
    points: Sequence[Sequence[float] | None] | None,
    iou: float,
) -> ReportChart | None:
    """Return a line of each class; of many, the three with the smallest average precision stand out."""
    if not curves or not curves["classes"]:
        return None
    known = {str(each["class"]): (number, each) for number, each in enumerate(classes or ())}
    areas = {name: each.get("ap50") for name, (_, each) in known.items()} if iou == MATCH_IOU else {}
    shown = curves["classes"][:_MOST_CURVES]
    worst = sorted(shown, key=lambda each: areas.get(each["class"]) or 0.0)[: _NAMED_CURVES - 1]
    lines = []
    for each in shown:
        number, area = known.get(each["class"], (None, {}))[0], areas.get(each["class"])
        is_context = len(shown) > _NAMED_CURVES and each not in worst
        lines.append(
            {
                "name": each["class"],
                "note": "" if area is None else f"AP50 {as_percent(area)}",
                "points": _reached(curves["recall"], each["precision"]),
                "dot": points[number] if points and number is not None and not is_context else None,
                "is_context": is_context,
            }
        )
    few = f" The first {len(shown)} of {len(curves['classes'])} classes." if len(shown) < len(curves["classes"]) else ""
    data = {"kind": "lines", "x": "Recall", "y": "Precision", "percent": True, "lines": lines}
    note = f"Boxes that overlap by an IoU of {iou:.2f} or more; AP50 is the area below a line at 0.50.{few}"
    return ReportChart("precision-recall", "Precision and recall", data, note)


def _reached(recall: Sequence[float], precision: Sequence[float]) -> list[list[float]]:
    """Return the points up to the largest recall that is reached; all of them for a class that is never found."""
    count = next((place for place, value in enumerate(precision) if not value), len(precision)) or len(precision)
    return [list(pair) for pair in zip(recall[:count], precision[:count], strict=True)]


def _by_confidence(rows: Sequence[Mapping[str, Any]] | None, iou: float, confidence: float) -> ReportChart | None:
    if not rows:
        return None
    lines = [
        {
            "name": title,
            "note": "",
            "points": [[each["confidence"], each[name]] for each in rows if each[name] is not None],
            "dot": None,
            "is_context": False,
        }
        for name, title in (("precision", "Precision"), ("recall", "Recall"), ("f1", "F1"))
    ]
    best = max(reversed(rows), key=lambda each: each["f1"] or 0.0)
    data = {
        "kind": "lines",
        "x": "Confidence",
        "y": "All classes",
        "percent": False,
        "lines": lines,
        "at": confidence,
        "best": [best["confidence"], best["f1"]] if best["f1"] else None,
        "best_text": f"Highest F1 {as_percent(best['f1'])} at {best['confidence']:.2f}" if best["f1"] else "",
    }
    note = f"Boxes below the confidence are left out. At an IoU of {iou:.2f}."
    return ReportChart("by-confidence", "By confidence", data, note)


def _errors(rows: Sequence[Mapping[str, Any]] | None, iou: float) -> ReportChart | None:
    """Return how often each kind of error is made, and what it costs where that is known."""
    if not rows:
        return None
    ranked = sorted(rows, key=lambda each: -each["count"])
    data = {
        "kind": "list",
        "titles": ["Kind", "Boxes", "AP50 lost"],
        "rows": [
            [ERROR_TITLES.get(str(each["error"]), each["error"]), each["count"], each.get("cost")] for each in ranked
        ],
        "samples": [{"errors": str(each["error"])} if each["count"] else None for each in ranked],
    }
    note = (
        f"Wrong place: the right class, but an IoU of 0.10 to {iou:.2f}. Nothing there: no object near. Missed: no box "
        "near the object. AP50 lost: how much higher it would be without this kind, at any confidence."
    )
    return ReportChart("errors", "Kinds of errors", data, note)


def _confusion(
    matrix: Sequence[Sequence[int]] | None, classes: Sequence[Mapping[str, Any]] | None, iou: float
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
        "is_hatched": True,
        "samples": {"actual": "{row_number}", "found": "{column_number}"},
    }
    note = (
        f"Hatched: no partner at an IoU of {iou:.2f}. Last column: objects that were missed; last row: boxes where "
        "nothing is. A cell chooses the images below."
    )
    return ReportChart("confusion", "Confusion", data, note)
