"""Images of an evaluation of object detection, chosen by what was found and missed, at any IoU and confidence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.tasks.detection_charts import ERROR_TITLES
from ziggurat.tasks.detection_errors import (
    ERRORS,
    MISSED_OBJECT,
    assignment,
    confidence_table,
    error_types,
    is_missed,
    precision_at_recalls,
)
from ziggurat.tasks.detection_matching import (
    MATCH_IOU,
    SHOWN_SCORE,
    Matching,
    Overlaps,
    find_overlaps,
    image_counts,
    match,
    scores_of,
)
from ziggurat.tasks.sample_choice import SampleChoice, SampleField

__all__ = [
    "SHOWN_FROM",
    "DetectionSamples",
    "Events",
    "ObjectChanges",
    "detection_fields",
    "numbers_of",
    "object_changes",
]

SHOWN_FROM: Final = 0.05
"""Detections with smaller scores are never shown."""

ANY_ERROR: Final = "any"
_AREAS: Final = {"small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, np.inf)}
"""Name of a size → least area in px², and the least of the next one, as COCO has them."""

_NUMBER_NAMES: Final = ("iou", "confidence")
_STEP: Final = 0.01
_CONFIDENCES: Final = np.round(np.arange(SHOWN_FROM, 0.955, _STEP), 2)
_KEPT: Final = 8
_MOST_CHOICES: Final = 1000


def detection_fields(class_names: Sequence[str]) -> list[SampleField]:
    """Return the fields that images are chosen by."""
    classes = [(str(number), name) for number, name in enumerate(class_names[:_MOST_CHOICES])]
    background = (str(len(class_names)), "background")
    kinds = [("", "all images"), (ANY_ERROR, "any error"), *((name, ERROR_TITLES[name]) for name in ERRORS if name)]
    return [
        SampleField("errors", "Errors", kinds),
        SampleField("actual", "Actual class", [("", "any"), *classes, background]),
        SampleField("found", "Predicted class", [("", "any"), *classes, (background[0], "none (missed)")]),
        SampleField("size", "Size", [("", "any"), *((name, name) for name in _AREAS)]),
        SampleField(
            "iou", "IoU", low=0.1, high=0.95, default=f"{MATCH_IOU:g}", is_of_report=True, offered=("0.5", "0.75")
        ),
        SampleField(
            "confidence",
            "Confidence",
            low=SHOWN_FROM,
            high=0.95,
            step=_STEP,
            default=f"{SHOWN_SCORE:g}",
            is_of_report=True,
        ),
    ]


@dataclass(frozen=True)
class Events:
    """What was found and missed, one entry for each detection that counts and each object that none found.

    Args:
        image: (E) number of the image.
        actual: (E) class of the object; the number of classes for background.
        found: (E) class of the detection; the number of classes for an object that was not found.
        kind: (E) a number of ``ERRORS``; 0 for what is right, -1 for an object that a wrong detection meant.
        area: (E) px² of the object, else of the detection.
    """

    image: np.ndarray
    actual: np.ndarray
    found: np.ndarray
    kind: np.ndarray
    area: np.ndarray


class DetectionSamples:
    """What is computed once of the images of an evaluation, and what each IoU and confidence adds.

    Args:
        detections: (N, K, 6), see ``find_overlaps``.
        targets: (N, M, 6).
        classes: how many there are.
    """

    def __init__(self, detections: np.ndarray, targets: np.ndarray, classes: int) -> None:
        shown = np.where(detections[..., 4:5] >= SHOWN_FROM, detections, 0.0)
        self.overlaps: Overlaps = find_overlaps(shown, np.asarray(targets))
        self.classes = classes
        self._kept: dict[Hashable, Any] = {}

    def matching(self, iou: float) -> Matching:
        """Return which detection found which object."""
        return self._known(iou, lambda: match(self.overlaps, iou))

    def events(self, iou: float, confidence: float) -> Events:
        """Return what was found and missed."""
        return self._known((iou, confidence), lambda: self._find_events(iou, confidence))

    def _known(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what is kept of the last few questions; any thread may ask."""
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            found = self._kept[key] = make()
        return found

    def choose(self, asked: Mapping[str, str]) -> SampleChoice:
        """Return the images that fields leave, and F1 of each at the IoU and confidence that were asked for.

        Args:
            asked: name of each of ``detection_fields`` → value.
        """
        iou, confidence = numbers_of(asked)
        scores = scores_of(image_counts(self.overlaps, self.matching(iou), confidence))
        chosen = {name: asked[name] for name in ("errors", "actual", "found", "size") if asked.get(name)}
        if not chosen:
            return SampleChoice(np.ones(len(scores), bool), scores)
        events = self.events(iou, confidence)
        is_kept = np.ones(len(events.image), bool)
        if "errors" in chosen:
            name = chosen["errors"]
            is_kept &= events.kind > 0 if name == ANY_ERROR else events.kind == ERRORS.index(name)
        for name, values in (("actual", events.actual), ("found", events.found)):
            if name in chosen:
                is_kept &= values == int(chosen[name])
        if "size" in chosen:
            low, high = _AREAS[chosen["size"]]
            is_kept &= (events.area >= low) & (events.area < high)
        images = np.zeros(len(scores), bool)
        images[events.image[is_kept]] = True
        return SampleChoice(images, scores)

    def figures(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return the parts of ``DetectionMetric.compute`` that can be had at once, at another IoU and confidence.

        Returns:
            ``precision``, ``recall`` and ``f1``; ``correct`` and ``false`` detections, and ``missed`` objects;
            ``confusion``, ``errors`` (without their costs) and ``by_confidence``; ``points``, recall and precision of
            each class at the confidence; and ``precisions`` of each class at the recalls 0, 0.01, … 1, of the
            detections that are shown, where the IoU is not that of the metrics.
        """
        iou, confidence = numbers_of(asked)
        matching, events = self.matching(iou), self.events(iou, confidence)
        at = confidence_table(self.overlaps, matching, np.array([confidence]))[0]
        side = self.classes + 1
        matrix = np.bincount(events.actual * side + events.found, minlength=side * side).reshape(side, side)
        counts = np.bincount(events.kind[events.kind > 0], minlength=len(ERRORS))
        is_shown = self.overlaps.scores >= confidence
        correct = int((matching.is_true & is_shown).sum())
        found = {
            **{name: at[name] for name in ("precision", "recall", "f1")},
            "correct": correct,
            "false": int((matching.is_false & is_shown).sum()),
            "missed": int(self.overlaps.is_object.sum()) - correct,
            "confusion": matrix.tolist(),
            "errors": [{"error": name, "count": int(counts[number])} for number, name in enumerate(ERRORS) if name],
            "by_confidence": self._known(
                ("by_confidence", iou), lambda: confidence_table(self.overlaps, matching, _CONFIDENCES)
            ),
            "points": self._points(matching, is_shown),
        }
        return found if iou == MATCH_IOU else {**found, "precisions": self._precisions(matching)}

    def _points(self, matching: Matching, is_shown: np.ndarray) -> list[list[float] | None]:
        """Return recall and precision of each class; None where one is not defined."""
        right, taken = (
            np.bincount(self.overlaps.classes[is_own & is_shown], minlength=self.classes)
            for is_own in (matching.is_true, ~matching.is_ignored)
        )
        objects = self.overlaps.objects(self.classes)
        return [
            [round(int(one) / int(asked), 4), round(int(one) / int(every), 4)] if asked and every else None
            for one, every, asked in zip(right, taken, objects, strict=True)
        ]

    def _precisions(self, matching: Matching) -> list[list[float]]:
        """Return the precision of each class at the recalls 0, 0.01, … 1, of the detections that are shown."""
        order = np.argsort(-self.overlaps.scores, kind="stable")
        order = order[~matching.is_ignored[order]]
        own, right, objects = self.overlaps.classes[order], matching.is_true[order], self.overlaps.objects(self.classes)
        return [
            precision_at_recalls(right[own == number], int(objects[number])).round(4).tolist()
            for number in range(self.classes)
        ]

    def _find_events(self, iou: float, confidence: float) -> Events:
        overlaps, matching = self.overlaps, self.matching(iou)
        types = error_types(overlaps, matching, iou)
        found, taken, is_free = assignment(overlaps, matching, iou, confidence)
        target_area, area = (_areas(rows) for rows in (overlaps.targets, overlaps.detections))
        own = found[taken]
        kinds = np.append(overlaps.target_classes, self.classes)
        is_shown = overlaps.scores >= confidence
        missed_kind = np.where(is_missed(overlaps, matching, types, is_shown)[is_free], MISSED_OBJECT, -1)
        return Events(
            image=np.concatenate([overlaps.detection_image[taken], overlaps.target_image[is_free]]),
            actual=np.concatenate([kinds[own], overlaps.target_classes[is_free]]),
            found=np.concatenate([overlaps.classes[taken], np.full(int(is_free.sum()), self.classes)]),
            kind=np.concatenate([types.kind[taken], missed_kind]),
            area=np.concatenate(
                [np.where(own >= 0, np.append(target_area, 0)[own], area[taken]), target_area[is_free]]
            ),
        )


@dataclass(frozen=True)
class ObjectChanges:
    """Objects found anew and lost, and wrong detections of the same images, from a first run to a second one.

    Args:
        fixed: objects that only the second found.
        broken: objects that only the first found.
        still_missed: objects that neither found.
        wrong_before: detections of the first that found no object.
        wrong_after: the same of the second.
    """

    fixed: int
    broken: int
    still_missed: int
    wrong_before: int
    wrong_after: int


def object_changes(
    first: DetectionSamples,
    second: DetectionSamples,
    images: tuple[np.ndarray, np.ndarray],
    asked: Mapping[str, str],
) -> ObjectChanges | None:
    """Return the changes of images that both runs saw; None where their objects are not the same.

    Args:
        first: of a run.
        second: of another one.
        images: numbers of the same images in the first and in the second, each rising.
        asked: name → value of ``iou`` and ``confidence``.
    """
    iou, confidence = numbers_of(asked)
    sides = []
    for samples, chosen in zip((first, second), images, strict=True):
        overlaps, matching = samples.overlaps, samples.matching(iou)
        is_shown = overlaps.scores >= confidence
        is_chosen = np.isin(overlaps.target_image, chosen) & overlaps.is_object
        is_found = np.zeros(len(overlaps.targets), bool)
        is_found[matching.target[matching.is_true & is_shown]] = True
        wrong = matching.is_false & is_shown & np.isin(overlaps.detection_image, chosen)
        sides.append((overlaps.targets[is_chosen], is_found[is_chosen], int(wrong.sum())))
    (objects, before, wrong_before), (others, after, wrong_after) = sides
    if objects.shape != others.shape or not np.array_equal(objects, others):
        return None
    return ObjectChanges(
        fixed=int((~before & after).sum()),
        broken=int((before & ~after).sum()),
        still_missed=int((~before & ~after).sum()),
        wrong_before=wrong_before,
        wrong_after=wrong_after,
    )


def numbers_of(asked: Mapping[str, str]) -> tuple[float, float]:
    """Return the IoU and the confidence that were asked for, else the usual ones."""
    usual = dict(zip(_NUMBER_NAMES, (MATCH_IOU, SHOWN_SCORE), strict=True))
    iou, confidence = (float(asked.get(name) or usual[name]) for name in _NUMBER_NAMES)
    return iou, confidence


def _areas(rows: np.ndarray) -> np.ndarray:
    return (rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1])
