"""Metrics of object detection: average precision and recall as COCO defines them, curves, confusion, error types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from ziggurat.errors import UsageError
from ziggurat.tasks.classification_metrics import MOST_CONFUSION_CLASSES
from ziggurat.tasks.detection_arrays import CROWD
from ziggurat.tasks.detection_boxes import (
    DETECTION_LENGTH,
    best_detections,
    original_detections,
    original_targets,
)
from ziggurat.tasks.detection_coco import SIZES, CocoValues, coco_values
from ziggurat.tasks.detection_errors import (
    ERRORS,
    best_points,
    confidence_table,
    confusion,
    error_costs,
    error_counts,
    error_types,
)
from ziggurat.tasks.detection_matching import MATCH_IOU, Overlaps, list_overlaps, match
from ziggurat.tasks.metric import Metric

__all__ = ["LEAST_SCORE", "DetectionMetric"]

LEAST_SCORE: Final = 0.001
"""Detections with smaller scores are not measured."""

_ARRAYS: Final = ("detections", "detection_counts", "targets", "target_counts")


class DetectionMetric(Metric):
    """Mean average precision, recall, curves, confusion and kinds of errors of detections.

    It reads the output ``output``, (N, K, 4 + classes), and the target ``y``, (N, 1, M + 1, 16); see
    ``ziggurat.tasks.detection_arrays``. Boxes are compared in px of the original images, after non-maximum suppression.
    Average precision is that of Lin et al., "Microsoft COCO: Common Objects in Context" (ECCV 2014). The state holds 24
    bytes for each detection and each object: the ranks of all scores decide.

    Args:
        class_names: by class number.
    """

    def __init__(self, class_names: Sequence[str]) -> None:
        self._names = list(class_names)
        self._parts: dict[str, list[np.ndarray]] = {name: [] for name in _ARRAYS}

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch.

        Raises:
            UsageError: where the output is not of these classes.
        """
        output, y = np.asarray(outputs["output"]), np.asarray(targets["y"])
        if output.shape[-1] != 4 + len(self._names):
            raise UsageError(
                f"The output has rows of {output.shape[-1]} numbers, not a box and a score for each of "
                f"{len(self._names)} classes.",
                advice="Let the network have as many classes as the dataset.",
            )
        detections = original_detections(best_detections(output, least_score=LEAST_SCORE), y)
        objects = original_targets(y)
        is_found = detections[..., 4] > 0
        is_target = (objects[..., 4] >= 0) | (objects[..., 5] > 0)
        added = (detections[is_found], is_found.sum(axis=1), objects[is_target], is_target.sum(axis=1))
        for name, values in zip(_ARRAYS, added, strict=True):
            self._parts[name].append(values)

    def compute(self) -> dict[str, Any]:
        """Return the values.

        Returns:
            ``map``, the mean average precision over ten thresholds of IoU, 0.50 to 0.95, and the classes that have
            objects; ``ap50`` and ``ap75`` at one threshold; ``map_small``, ``map_medium`` and ``map_large`` of objects
            up to 32² px, up to 96² px, and larger, None where there is none; ``recall``, the average recall with 100
            detections an image. Tables: ``classes`` (``class``, ``ap``, ``ap50``, None where there is no object, and
            ``objects``); ``curves`` at an IoU of 0.5: ``recall``, 101 values, and ``classes`` (``class``,
            ``precision`` and ``confidence`` at each recall; without those that have no object); ``confusion`` at an
            IoU of 0.5 and a confidence of 0.3 (row: object, column: detection; the last row and column are the
            background), up to 1,000 classes; ``errors`` (``error``, ``count`` at this confidence, and ``cost``, by how
            much ``ap50`` would be higher without it); ``best_f1`` (``class``, ``confidence`` with the best F1,
            ``precision``, ``recall``, ``f1``: over all classes, and for each class that is found). ``counts``:
            ``images``, ``objects``, ``crowds``, ``ignored``, ``detections``. Only ``counts`` where there is no object;
            empty before the first image.
        """
        arrays = self.state()
        images = len(arrays["target_counts"])
        if not images:
            return {}
        detections, detection_images, targets, target_images = _sorted(arrays)
        state = targets[:, 5]
        counts = {
            "images": images,
            "objects": int((state == 0).sum()),
            "crowds": int((state == CROWD).sum()),
            "ignored": int((state > CROWD).sum()),
            "detections": len(detections),
        }
        if not counts["objects"]:
            return {"counts": counts}
        values = coco_values(detections, detection_images, targets, target_images, len(self._names))
        slots = np.zeros(len(detections), np.int64), np.zeros(len(targets), np.int64)  # no one asks for them here
        overlaps = list_overlaps((detections, detection_images, slots[0]), (targets, target_images, slots[1]), images)
        return {
            **_figures(values),
            "classes": self._classes(values, overlaps.objects(len(self._names))),
            "curves": self._curves(values),
            **self._tables(overlaps),
            "counts": counts,
        }

    def state(self) -> dict[str, np.ndarray]:
        """Return detections (D, 6) and objects (T, 6) of all images, and how many each image has."""
        empty = {
            "detections": np.zeros((0, DETECTION_LENGTH), np.float32),
            "detection_counts": np.zeros(0, np.int64),
            "targets": np.zeros((0, 6), np.float32),
            "target_counts": np.zeros(0, np.int64),
        }
        return {name: np.concatenate([empty[name], *parts]) for name, parts in self._parts.items()}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the images of another metric.

        Raises:
            UsageError: if it is of other classes.
        """
        largest = max(state["detections"][:, 5].max(initial=-1), state["targets"][:, 4].max(initial=-1))
        if largest >= len(self._names):
            raise UsageError(
                "Only metrics with the same classes can be merged.",
                received=f"class {int(largest)} for {len(self._names)} classes",
            )
        for name in _ARRAYS:
            self._parts[name].append(np.asarray(state[name]))

    def _classes(self, values: CocoValues, objects: np.ndarray) -> list[dict[str, Any]]:
        return [
            {
                "class": name,
                "ap": values.average_precision(number=number),
                "ap50": values.average_precision(MATCH_IOU, number=number),
                "objects": int(objects[number]),
            }
            for number, name in enumerate(self._names)
        ]

    def _curves(self, values: CocoValues) -> dict[str, Any]:
        precision, confidence = (np.round(each[0, :, :, 0, -1], 4).T for each in (values.precision, values.confidence))
        return {
            "recall": np.round(np.linspace(0, 1, precision.shape[1]), 2).tolist(),
            "classes": [
                {"class": name, "precision": precision[number].tolist(), "confidence": confidence[number].tolist()}
                for number, name in enumerate(self._names)
                if precision[number, 0] >= 0
            ],
        }

    def _tables(self, overlaps: Overlaps) -> dict[str, Any]:
        classes = len(self._names)
        matching = match(overlaps)
        types = error_types(overlaps, matching)
        counts, costs = error_counts(overlaps, matching, types), error_costs(overlaps, matching, types, classes)
        points = zip(["all classes", *self._names], best_points(overlaps, matching, classes), strict=True)
        is_small = classes <= MOST_CONFUSION_CLASSES
        return {
            **({"confusion": confusion(overlaps, classes).tolist()} if is_small else {}),
            "errors": [{"error": name, "count": counts[name], "cost": costs[name]} for name in ERRORS if name],
            "best_f1": [{"class": name, **asdict(point)} for name, point in points if point],
            "by_confidence": confidence_table(overlaps, matching),
        }


def _figures(values: CocoValues) -> dict[str, float | None]:
    return {
        "map": values.average_precision(),
        "ap50": values.average_precision(0.5),
        "ap75": values.average_precision(0.75),
        **{f"map_{size}": values.average_precision(size=size) for size in SIZES[1:]},
        "recall": values.average_recall(),
    }


def _sorted(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return detections and their images, targets and their images, float64, images in an order of their content.

    Of equal scores in two images, that of the first image comes first. So that merged parts have the values of one
    pass, the order of images must not depend on the order of batches.
    """
    parts = [
        np.split(arrays[name], np.cumsum(arrays[f"{one}_counts"])[:-1])
        for name, one in (("detections", "detection"), ("targets", "target"))
    ]
    contents = [(target.tobytes(), detection.tobytes()) for detection, target in zip(*parts, strict=True)]
    order = np.array(sorted(range(len(contents)), key=contents.__getitem__))
    found: list[np.ndarray] = []
    for own, one in zip(parts, ("detection", "target"), strict=True):
        found.append(np.concatenate([own[place] for place in order]).astype(np.float64))
        found.append(np.repeat(np.arange(len(order)), arrays[f"{one}_counts"][order]))
    detections, detection_images, targets, target_images = found
    # Exact again: the hundredths of a px that float32 cannot hold.
    targets[:, :4] = np.round(targets[:, :4], 2)
    return detections, detection_images, targets, target_images
