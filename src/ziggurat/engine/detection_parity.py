"""Detections of an export beside those of the network, box by box.

A network for boxes gives boxes and scores at every place; its export gives what is left of them after non-maximum
suppression. Two boxes with nearly the same score may change places, and one at the limit of the overlap may be kept
here and dropped there: detections are compared with their partner, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError
from ziggurat.tasks.base import TaskContext
from ziggurat.tasks.detection_boxes import best_detections
from ziggurat.tasks.detection_metrics import LEAST_SCORE

__all__ = ["DETECTIONS", "DetectionDifferences", "DetectionRule", "detection_rule"]

DETECTIONS: Final = "detections"
"""Output of an export with non-maximum suppression inside: (N, most, 6), left, top, right, bottom, score, class."""

_PARTNER: Final = 1e-3
"""Largest difference of partners, as a share of the largest coordinate, and of the scores."""


@dataclass(frozen=True)
class DetectionRule:
    """What an export does with the boxes and scores of a network.

    Args:
        output: their name.
        classes: how many there are.
        iou: largest intersection over union of two detections of a class.
        most: detections of an image.
        least_score: what is kept. Programs that use the export ask for more.
    """

    output: str
    classes: int
    iou: float
    most: int
    least_score: float = LEAST_SCORE

    def detections(self, output: np.ndarray) -> np.ndarray:
        """Return the detections, (N, most, 6), of boxes and scores (N, K, 4 + classes)."""
        return best_detections(output, least_score=self.least_score, iou=self.iou, most=self.most)

    def as_output(self, detections: np.ndarray) -> np.ndarray:
        """Return detections (N, most, 6) as boxes and scores (N, most, 4 + classes), as metrics take them."""
        scores = (np.arange(self.classes) == detections[..., 5:]) * detections[..., 4:5]
        return np.concatenate([detections[..., :4], scores], axis=-1).astype(np.float32)


def detection_rule(context: TaskContext | None) -> DetectionRule | None:
    """Return what an export does with boxes; None where the task of a job learns none."""
    how: Mapping[str, Any] = {} if context is None else context.task.postprocessing(context)
    if how.get("form") != "boxes":
        return None
    return DetectionRule(how["output"], len(how["names"]), float(how["iou"]), int(how["most"]))


class DetectionDifferences:
    """The largest differences of partners over many batches, and how many detections have no partner.

    Args:
        rule: of the task.

    Attributes:
        boxes: detections of the network.
        apart: detections of the network that the export does not have, and the other way round.
        largest: largest absolute difference, of px and of scores.
        relative: the same, px as a share of the largest coordinate.
    """

    def __init__(self, rule: DetectionRule) -> None:
        self._rule = rule
        self.boxes = 0
        self.apart = 0
        self.largest = 0.0
        self.relative = 0.0

    def add(self, before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> None:
        """Compare a batch.

        Raises:
            DataError: where the export gives something else.
        """
        expected, found = self._rule.detections(before[self._rule.output]), after[DETECTIONS]
        if found.shape != expected.shape:
            raise DataError(f"The export gives detections of shape {found.shape} instead of {expected.shape}.")
        extent = max(1.0, float(np.abs(expected[..., :4]).max(initial=0)))
        for one, other in zip(expected, found, strict=True):
            self._add(one[one[:, 4] > 0], other[other[:, 4] > 0], extent)

    def _add(self, expected: np.ndarray, found: np.ndarray, extent: float) -> None:
        """Compare an image; partners are those that are nearest to each other."""
        self.boxes += len(expected)
        if not len(expected) or not len(found):
            self.apart += len(expected) + len(found)
            return
        differences = np.abs(expected[:, None, :5] - found[None, :, :5])
        shares = np.maximum(differences[..., :4].max(axis=-1) / extent, differences[..., 4])
        shares = np.where((expected[:, None, 5] == found[None, :, 5]) & np.isfinite(shares), shares, np.inf)
        nearest = shares.argmin(axis=1)
        rows = np.arange(len(expected))
        are_partners = (shares.argmin(axis=0)[nearest] == rows) & (shares[rows, nearest] <= _PARTNER)
        count = int(are_partners.sum())
        self.apart += len(expected) + len(found) - 2 * count
        if count:
            pairs = rows[are_partners], nearest[are_partners]
            self.largest = max(self.largest, float(differences[pairs].max()))
            self.relative = max(self.relative, float(shares[pairs].max()))
