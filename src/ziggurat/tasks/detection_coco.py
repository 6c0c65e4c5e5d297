"""Average precision and recall of detection as COCO defines them, by the library faster-coco-eval."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ["SIZES", "CocoValues", "coco_values"]

SIZES: Final = ("all", "small", "medium", "large")
"""Of objects by the area of their boxes: all, up to 32² px, up to 96² px, and larger."""

_MOST: Final = (1, 10, 100)


@dataclass(frozen=True)
class CocoValues:
    """Values over ten thresholds of IoU, 0.50 to 0.95.

    Args:
        precision: (10, 101, classes, 4 sizes, 3) at the recalls 0, 0.01, … 1 with 1, 10 and 100 detections of a class
            in an image at most; -1 where there is no object.
        confidence: like ``precision``: the score of the detection at which a recall is reached; 0 where it is not.
        recall: (10, classes, 4 sizes, 3), the largest that is reached; -1 where there is no object.
    """

    precision: np.ndarray
    confidence: np.ndarray
    recall: np.ndarray

    def average_precision(self, iou: float | None = None, size: str = "all", number: int | None = None) -> float | None:
        """Return AP, the mean of precision over recalls, thresholds, and the classes that have objects.

        Args:
            iou: a threshold, 0.5 to 0.95; None for the mean of all.
            size: of the objects that count, see ``SIZES``.
            number: of a class; None for all.

        Returns:
            None where there is no object.
        """
        part = self.precision[..., SIZES.index(size), -1]
        part = part if iou is None else part[[_threshold(iou)]]
        return _mean(part if number is None else part[..., number])

    def average_recall(self, size: str = "all", most: int = 100) -> float | None:
        """Return AR, the mean over thresholds and classes of the largest recall; None where there is no object.

        Args:
            size: of the objects that count.
            most: detections of a class in an image, 1, 10 or 100.
        """
        return _mean(self.recall[:, :, SIZES.index(size), _MOST.index(most)])


def coco_values(
    detections: np.ndarray, detection_images: np.ndarray, targets: np.ndarray, target_images: np.ndarray, classes: int
) -> CocoValues:
    """Return precision and recall at all thresholds.

    A crowd or ignored object counts as COCO's crowd: what lies in it is neither right nor wrong. One without a class is
    a crowd of every class. The area of an object is that of its box.

    Args:
        detections: (D, 6) left, top, right, bottom in px, score, class; of an image best first.
        detection_images: (D) number of the image of each.
        targets: (T, 6) left, top, right, bottom in px, class (-1 for none), state (0 object, 1 crowd, 2 ignored).
        target_images: (T) number of the image of each.
        classes: how many there are.
    """
    from faster_coco_eval import COCO, COCOeval_faster

    images = int(max(detection_images.max(initial=-1), target_images.max(initial=-1))) + 1
    targets, target_images = _of_every_class(targets, target_images, classes)
    objects = _annotations(targets[:, :4], target_images, targets[:, 4])
    for annotation, is_ignored in zip(objects, (targets[:, 5] > 0).tolist(), strict=True):
        annotation["iscrowd"] = int(is_ignored)
    found = _annotations(detections[:, :4], detection_images, detections[:, 5])
    for annotation, score in zip(found, detections[:, 4].tolist(), strict=True):
        annotation["score"] = score
    evaluation = COCOeval_faster(_set(COCO(), objects, images, classes), _set(COCO(), found, images, classes), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    return CocoValues(*(np.asarray(evaluation.eval[name]) for name in ("precision", "scores", "recall")))


def _of_every_class(targets: np.ndarray, images: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return targets and their images, with what is ignored without a class repeated for every class."""
    has_class = targets[:, 4] >= 0
    repeated = np.repeat(targets[~has_class], classes, axis=0)
    repeated[:, 4] = np.tile(np.arange(classes), len(repeated) // max(classes, 1))
    return (
        np.concatenate([targets[has_class], repeated]),
        np.concatenate([images[has_class], np.repeat(images[~has_class], classes)]),
    )


def _annotations(boxes: np.ndarray, images: np.ndarray, classes: np.ndarray) -> list[dict[str, Any]]:
    sides = boxes[:, 2:] - boxes[:, :2]
    return [
        {"id": number, "image_id": image, "category_id": kind, "bbox": box, "area": area, "iscrowd": 0}
        for number, image, kind, box, area in zip(
            itertools.count(1),
            images.tolist(),
            classes.astype(int).tolist(),
            np.concatenate([boxes[:, :2], sides], axis=1).tolist(),
            (sides[:, 0] * sides[:, 1]).tolist(),
            strict=False,
        )
    ]


def _set(coco: Any, annotations: list[dict[str, Any]], images: int, classes: int) -> Any:
    """Fill an empty ``COCO``."""
    coco.dataset = {
        "images": [{"id": number} for number in range(images)],
        "categories": [{"id": number} for number in range(classes)],
        "annotations": annotations,
    }
    coco.createIndex()
    return coco


def _threshold(iou: float) -> int:
    return round((iou - 0.5) / 0.05)


def _mean(values: np.ndarray) -> float | None:
    known = values[values > -1]
    return float(np.mean(known)) if known.size else None
