"""What detections get wrong: curves over the confidence, confusion of classes, and what each kind of error costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ziggurat.tasks.detection_matching import MATCH_IOU, SHOWN_SCORE, Matching, Overlaps, best_matches, match

__all__ = [
    "BACKGROUND",
    "BOTH",
    "CLASSIFICATION",
    "CONFIDENCES",
    "DUPLICATE",
    "ERRORS",
    "LOCALIZATION",
    "MISSED_OBJECT",
    "ErrorTypes",
    "OperatingPoint",
    "assignment",
    "average_precisions",
    "best_points",
    "confidence_figures",
    "confidence_table",
    "confusion",
    "error_costs",
    "error_counts",
    "error_types",
    "is_missed",
    "precision_at_recalls",
]

ERRORS: Final = ("", "classification", "localization", "both", "duplicate", "background", "missed")
"""Names of the kinds of errors, by number; 0 is no error."""

CLASSIFICATION: Final = 1
LOCALIZATION: Final = 2
BOTH: Final = 3
DUPLICATE: Final = 4
BACKGROUND: Final = 5
MISSED_OBJECT: Final = 6

CONFIDENCES: Final = np.round(np.arange(0.05, 0.96, 0.05), 2)
"""At which precision and recall are told."""

_RECALLS: Final = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class ErrorTypes:
    """Kind of error of each detection.

    Args:
        kind: (D) int8, a number of ``ERRORS``; 0 for a detection that is right or does not count.
        target: (D) place of the object that the detection meant, where its class or its place is wrong; -1 elsewhere.
    """

    kind: np.ndarray
    target: np.ndarray


@dataclass(frozen=True)
class OperatingPoint:
    """What detections are worth at one confidence.

    Args:
        confidence: the least score of the detections that count.
        precision: share of them that is right.
        recall: share of the objects that they found.
        f1: harmonic mean of both.
    """

    confidence: float
    precision: float
    recall: float
    f1: float


def error_types(overlaps: Overlaps, matching: Matching, iou: float = MATCH_IOU) -> ErrorTypes:
    """Return the kind of error of each wrong detection, after Bolya et al., "TIDE" (ECCV 2020).

    The first of these that holds, where IoU is the largest with an object: localization, 0.1 up to ``iou`` with one of
    its class; classification, ``iou`` or more with one of another class; duplicate, ``iou`` or more with one of its
    class, which a detection of a larger score found; both, 0.1 or more; else background.

    Args:
        overlaps: of the boxes.
        matching: of them, with the same ``iou``.
        iou: the least overlap of a detection and its object.
    """
    count = len(overlaps.detections)
    is_counted = overlaps.is_object[overlaps.pair_target]
    is_own = overlaps.classes[overlaps.pair_detection] == overlaps.target_classes[overlaps.pair_target]
    own, own_iou = _nearest(overlaps, is_counted & is_own)
    other, other_iou = _nearest(overlaps, is_counted & ~is_own)
    rules = (
        (LOCALIZATION, (own_iou > 0) & (own_iou < iou)),
        (CLASSIFICATION, other_iou >= iou),
        (DUPLICATE, own_iou >= iou),
        (BOTH, other_iou > 0),
    )
    kind = np.select([is_so for _, is_so in rules], [number for number, _ in rules], BACKGROUND)
    kind = np.where(matching.is_false, kind, 0).astype(np.int8)
    target = np.full(count, -1)
    for number, meant in ((LOCALIZATION, own), (CLASSIFICATION, other)):
        target[kind == number] = meant[kind == number]
    return ErrorTypes(kind, target)


def error_counts(
    overlaps: Overlaps, matching: Matching, types: ErrorTypes, confidence: float = SHOWN_SCORE
) -> Mapping[str, int]:
    """Return how often each kind of error is made.

    An object is missed where no detection found it, nor meant it with a wrong class or place.

    Args:
        overlaps: of the boxes.
        matching: of them.
        types: of the detections.
        confidence: detections with smaller scores are left out.
    """
    is_shown = overlaps.scores >= confidence
    counts = np.bincount(types.kind[is_shown], minlength=len(ERRORS))
    counts[MISSED_OBJECT] = np.count_nonzero(is_missed(overlaps, matching, types, is_shown))
    return {name: int(counts[number]) for number, name in enumerate(ERRORS) if name}


def error_costs(overlaps: Overlaps, matching: Matching, types: ErrorTypes, classes: int) -> Mapping[str, float]:
    """Return by how much the mean average precision would be higher without each kind of error.

    As in TIDE: of the detections that meant an object that none found, the one with the largest score becomes right;
    all others with this error go, and so do duplicates, those on the background, and those with both errors. Missed
    objects are no longer asked for; a class that has no others keeps its average precision of 0.

    Args:
        overlaps: of the boxes.
        matching: of them.
        types: of the detections.
        classes: how many there are.
    """
    objects = overlaps.objects(classes)
    kept, right, own = ~matching.is_ignored, matching.is_true, overlaps.classes

    def precision(is_kept: np.ndarray, is_true: np.ndarray, kinds: np.ndarray, asked: np.ndarray) -> float:
        values = average_precisions(overlaps.scores[is_kept], kinds[is_kept], is_true[is_kept], asked)
        return float(values[objects > 0].mean())

    before = precision(kept, right, own, objects)
    costs = {}
    for number, name in enumerate(ERRORS[1:MISSED_OBJECT], start=1):
        is_wrong = types.kind == number
        fixed = _fixed(overlaps, matching, types, number)
        kinds = own.copy()
        kinds[fixed] = overlaps.target_classes[types.target[fixed]]
        costs[name] = precision(kept & (~is_wrong | fixed), right | fixed, kinds, objects) - before
    missed = overlaps.target_classes[is_missed(overlaps, matching, types, kept)]
    asked = objects - np.bincount(missed, minlength=classes)
    return {**costs, ERRORS[MISSED_OBJECT]: precision(kept, right, own, asked) - before}


def confusion(overlaps: Overlaps, classes: int, iou: float = MATCH_IOU, confidence: float = SHOWN_SCORE) -> np.ndarray:
    """Return how often an object of a class is found as which, (classes + 1, classes + 1) int64.

    A row for each class of objects, a column for each of detections; the last row are detections on the background, the
    last column are objects that were not found. First each detection finds an object of its class; of the others, each
    then takes what is left.

    Args:
        overlaps: of the boxes.
        classes: how many there are.
        iou: the least overlap of a detection and its object.
        confidence: detections with smaller scores are left out.
    """
    found, taken, is_free = assignment(overlaps, match(overlaps, iou), iou, confidence)
    kinds = np.append(overlaps.target_classes, classes)
    places = kinds[found[taken]] * (classes + 1) + overlaps.classes[taken]
    matrix = np.bincount(places, minlength=(classes + 1) ** 2).reshape(classes + 1, classes + 1)
    matrix[:classes, classes] = np.bincount(overlaps.target_classes[is_free], minlength=classes)
    return matrix


def assignment(
    overlaps: Overlaps, matching: Matching, iou: float, confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the object of each detection, of its class or, where one is left, of another one.

    Args:
        overlaps: of the boxes.
        matching: of them, with the same ``iou``.
        iou: the least overlap of a detection and its object.
        confidence: detections with smaller scores are left out.

    Returns:
        (D) place of the object, -1 for none; (D) bool, which detections count; (T) bool, which objects none has.
    """
    is_shown = overlaps.scores >= confidence
    found = np.where(is_shown, matching.target, -1)
    is_free = overlaps.is_object.copy()
    is_free[found[found >= 0]] = False
    detection, target = overlaps.pair_detection, overlaps.pair_target
    is_pair = (overlaps.pair_iou >= iou) & (is_shown & matching.is_false)[detection] & is_free[target]
    others = best_matches(detection[is_pair], target[is_pair], len(found), len(overlaps.targets))
    found = np.maximum(found, others)
    is_free[others[others >= 0]] = False
    return found, is_shown & ~matching.is_ignored, is_free


def confidence_figures(
    overlaps: Overlaps, matching: Matching, confidences: np.ndarray, number: int | None = None
) -> dict[str, np.ndarray]:
    """Return ``precision``, ``recall`` and ``f1`` at each confidence, of all detections and objects together.

    NaN where one is not defined: precision without detections, recall without objects.

    Args:
        overlaps: of the boxes.
        matching: of them.
        confidences: detections with smaller scores are left out; in any order.
        number: of a class; None for all.
    """
    counts = ~matching.is_ignored if number is None else ~matching.is_ignored & (overlaps.classes == number)
    objects = overlaps.is_object if number is None else overlaps.is_object & (overlaps.target_classes == number)
    order = np.argsort(overlaps.scores[counts], kind="stable")
    scores, is_true = overlaps.scores[counts][order], matching.is_true[counts][order]
    begin = np.searchsorted(scores, confidences, side="left")
    right = np.append(np.cumsum(is_true[::-1])[::-1], 0)[begin]
    taken, asked = len(scores) - begin, np.full(len(begin), int(objects.sum()))
    return {
        name: np.divide(part, whole, out=np.full(len(begin), np.nan), where=whole > 0)
        for name, part, whole in (
            ("precision", right, taken),
            ("recall", right, asked),
            ("f1", 2 * right, taken + asked),
        )
    }


def confidence_table(
    overlaps: Overlaps, matching: Matching, confidences: np.ndarray = CONFIDENCES
) -> list[dict[str, float | None]]:
    """Return ``confidence``, ``precision``, ``recall`` and ``f1`` of all classes, a row for each confidence."""
    found = {"confidence": confidences, **confidence_figures(overlaps, matching, confidences)}
    columns = {name: [None if np.isnan(each) else round(float(each), 4) for each in found[name]] for name in found}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def best_points(overlaps: Overlaps, matching: Matching, classes: int) -> list[OperatingPoint | None]:
    """Return the confidence with the best F1, of equally good ones the largest: over all classes, then for each class.

    None where no detection is right.

    Args:
        overlaps: of the boxes.
        matching: of them.
        classes: how many there are.
    """
    counts = ~matching.is_ignored
    scores, kinds, is_true = overlaps.scores[counts], overlaps.classes[counts], matching.is_true[counts]
    objects = overlaps.objects(classes)
    order = np.argsort(-scores, kind="stable")
    points = [_best_point(scores[order], is_true[order], int(objects.sum()))]
    order = order[np.argsort(kinds[order], kind="stable")]
    ends = np.cumsum(np.bincount(kinds, minlength=classes))[:-1]
    for own, right, asked in zip(np.split(scores[order], ends), np.split(is_true[order], ends), objects, strict=True):
        points.append(_best_point(own, right, int(asked)))
    return points


def precision_at_recalls(is_true: np.ndarray, objects: int) -> np.ndarray:
    """Return the precision at the recalls 0, 0.01, … 1, (101) float64: the best one at that recall or a larger one.

    It is COCO's interpolation; 0 where a recall is not reached.

    Args:
        is_true: (D) bool, which detections are right, by falling score.
        objects: how many there are to find.
    """
    if not objects or not len(is_true):
        return np.zeros(len(_RECALLS))
    right = np.cumsum(is_true)
    precision = right / (np.arange(1, len(right) + 1) + np.spacing(1))
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    return np.append(precision, 0)[np.searchsorted(right / objects, _RECALLS, side="left")]


def average_precisions(scores: np.ndarray, classes: np.ndarray, is_true: np.ndarray, objects: np.ndarray) -> np.ndarray:
    """Return the average precision of each class, (classes) float64; 0 where there is no object.

    Args:
        scores: (D) of detections; of equal ones the first comes first.
        classes: (D) of detections.
        is_true: (D) bool, which are right.
        objects: (classes) how many objects there are of each class.
    """
    order = np.lexsort((-scores, classes))
    ends = np.cumsum(np.bincount(classes, minlength=len(objects)))
    parts = np.split(is_true[order], ends[:-1])
    return np.array([precision_at_recalls(own, int(n)).mean() for own, n in zip(parts, objects, strict=True)])


def _best_point(scores: np.ndarray, is_true: np.ndarray, objects: int) -> OperatingPoint | None:
    """Return the best point of detections by falling score; equal scores count together."""
    right = np.cumsum(is_true)
    if not right.size or not right[-1]:
        return None
    ends = np.flatnonzero(np.diff(scores, append=-1))
    f1 = 2 * right[ends] / (ends + 1 + objects)
    best = ends[f1.argmax()]
    found = float(right[best])
    return OperatingPoint(float(scores[best]), found / float(best + 1), found / objects, float(f1.max()))


def _nearest(overlaps: Overlaps, is_pair: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the object of some pairs that each detection overlaps the most, -1 for none, and by how much."""
    places = np.flatnonzero(is_pair)
    detection, first = np.unique(overlaps.pair_detection[places], return_index=True)
    target, iou = np.full(len(overlaps.detections), -1), np.zeros(len(overlaps.detections))
    target[detection] = overlaps.pair_target[places[first]]
    iou[detection] = overlaps.pair_iou[places[first]]
    return target, iou


def is_missed(overlaps: Overlaps, matching: Matching, types: ErrorTypes, is_shown: np.ndarray) -> np.ndarray:
    """Return which objects no detection found or meant, (T) bool."""
    is_left = overlaps.is_object.copy()
    for target in (matching.target, types.target):
        is_left[target[is_shown & (target >= 0)]] = False
    return is_left


def _fixed(overlaps: Overlaps, matching: Matching, types: ErrorTypes, number: int) -> np.ndarray:
    """Return which detections with an error become right without it: of each object not found, the best, (D) bool."""
    is_fixed = np.zeros(len(types.kind), bool)
    is_found = np.zeros(len(overlaps.targets), bool)
    is_found[matching.target[matching.is_true]] = True
    meant = np.flatnonzero((types.kind == number) & (types.target >= 0))
    meant = meant[~is_found[types.target[meant]]]
    _, first = np.unique(types.target[meant], return_index=True)  # of an image, the best detection comes first
    is_fixed[meant[first]] = True
    return is_fixed
