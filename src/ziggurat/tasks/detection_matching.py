"""Matching of detections and objects: which detection found which object, at any overlap and any confidence.

``find_overlaps`` is the slow part, and depends on nothing but the boxes: keep what it returns. ``match`` takes a
threshold of the overlap. A matching holds at every confidence, because detections with smaller scores never take an
object away from one with a larger score: a confidence only leaves detections out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ziggurat.errors import UsageError
from ziggurat.tasks.detection_boxes import DETECTION_LENGTH

__all__ = [
    "FALSE",
    "IGNORED",
    "MATCH_IOU",
    "MISSED",
    "NEAR_IOU",
    "SHOWN_SCORE",
    "TRUE",
    "Matching",
    "Overlaps",
    "best_matches",
    "detection_outcomes",
    "find_overlaps",
    "image_counts",
    "image_scores",
    "list_overlaps",
    "match",
    "scores_of",
    "target_outcomes",
]

MATCH_IOU: Final = 0.5
"""The least overlap of a detection and the object that it found, where nothing else is said."""

SHOWN_SCORE: Final = 0.3
"""Detections with smaller scores are not shown, where nothing else is said."""

NEAR_IOU: Final = 0.1
"""Pairs that overlap less are not kept: such a detection lies on the background (Bolya et al. 2020)."""

TRUE: Final = 1
"""Outcome of a detection that found an object, and of an object that was found."""

FALSE: Final = 2
"""Outcome of a detection that found none."""

MISSED: Final = 2
"""Outcome of an object that was not found."""

IGNORED: Final = 3
"""Outcome of what does not count: a crowd or ignored object, and a detection in it."""

_BLOCK_PAIRS: Final = 1_000_000
"""Pairs that are compared at a time: some 100 MB."""


@dataclass(frozen=True)
class Overlaps:
    """Detections and objects, one after another, and the pairs of both that overlap.

    Args:
        images: how many there are.
        detections: (D, 6) float64, image by image, of an image best first: left, top, right, bottom, score, class.
        detection_image: (D) number of the image.
        detection_slot: (D) place in the image, as it came.
        targets: (T, 6) float64: left, top, right, bottom, class, state; image by image.
        target_image: (T) number of the image.
        target_slot: (T) place in the image, as it came.
        pair_detection: (P) place in ``detections``, rising.
        pair_target: (P) place in ``targets``; of a detection, the best overlap first.
        pair_iou: (P), at least 0.1; for what is ignored, the share of the detection that lies in it.
    """

    images: int
    detections: np.ndarray
    detection_image: np.ndarray
    detection_slot: np.ndarray
    targets: np.ndarray
    target_image: np.ndarray
    target_slot: np.ndarray
    pair_detection: np.ndarray
    pair_target: np.ndarray
    pair_iou: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """Return the score of each detection, (D)."""
        return self.detections[:, 4]

    @property
    def classes(self) -> np.ndarray:
        """Return the class of each detection, (D) int64."""
        return self.detections[:, 5].astype(np.int64)

    @property
    def target_classes(self) -> np.ndarray:
        """Return the class of each object, (T) int64; -1 for none."""
        return self.targets[:, 4].astype(np.int64)

    @property
    def is_object(self) -> np.ndarray:
        """Return which targets count, (T) bool."""
        return self.targets[:, 5] == 0

    def objects(self, classes: int) -> np.ndarray:
        """Return how many objects of each class count, (classes) int64."""
        return np.bincount(self.target_classes[self.is_object], minlength=classes)


@dataclass(frozen=True)
class Matching:
    """Which detection found which object.

    Args:
        target: (D) place of the object in ``Overlaps.targets``; -1 where a detection found none.
        is_ignored: (D) bool, True for a detection that found none and lies in what is ignored.
    """

    target: np.ndarray
    is_ignored: np.ndarray

    @property
    def is_true(self) -> np.ndarray:
        """Return which detections found an object, (D) bool."""
        return self.target >= 0

    @property
    def is_false(self) -> np.ndarray:
        """Return which detections are wrong, (D) bool."""
        return (self.target < 0) & ~self.is_ignored


def find_overlaps(detections: np.ndarray, targets: np.ndarray) -> Overlaps:
    """Return the overlaps of stored results.

    Args:
        detections: (N, K, 6) left, top, right, bottom, score, class; score 0 in padding.
        targets: (N, M, 6) left, top, right, bottom, class, state; class -1 and state 0 in padding.

    Raises:
        UsageError: where the shapes are others.
    """
    for name, rows in (("detections", detections), ("targets", targets)):
        if rows.ndim != 3 or rows.shape[2] != DETECTION_LENGTH or len(rows) != len(detections):
            raise UsageError(
                "Detections and targets are (N, rows, 6) of the same images.",
                received=f"`{name}` {rows.shape} for {len(detections)} images",
            )
    order = np.argsort(-detections[..., 4], axis=1, kind="stable")
    image, rank = np.nonzero(np.take_along_axis(detections[..., 4], order, axis=1) > 0)
    slot = order[image, rank]
    target_image, target_slot = np.nonzero((targets[..., 4] >= 0) | (targets[..., 5] > 0))
    return list_overlaps(
        (detections[image, slot], image, slot),
        (targets[target_image, target_slot], target_image, target_slot),
        len(targets),
    )


def list_overlaps(
    detections: tuple[np.ndarray, np.ndarray, np.ndarray],
    targets: tuple[np.ndarray, np.ndarray, np.ndarray],
    images: int,
) -> Overlaps:
    """Return the overlaps of detections and objects without padding.

    Args:
        detections: rows (D, 6), and image and slot of each, (D); image by image, of an image best first.
        targets: rows (T, 6), and image and slot of each, (T); image by image.
        images: how many there are.
    """
    rows, image, slot = detections
    rows, own = rows.astype(np.float64), targets[0].astype(np.float64)
    parts = [_near(rows, own, *pairs) for pairs in _pairs(image, targets[1], images)]
    pair_detection, pair_target, pair_iou = (
        np.concatenate([np.zeros(0, kind), *(part[column] for part in parts)])
        for column, kind in enumerate((np.int64, np.int64, np.float64))
    )
    # COCO's evaluation takes the last one of equally near objects.
    order = np.lexsort((-pair_target, -pair_iou, pair_detection))
    pairs = (pair_detection[order], pair_target[order], pair_iou[order])
    return Overlaps(images, rows, image, slot, own, *targets[1:], *pairs)


def match(overlaps: Overlaps, iou: float = MATCH_IOU) -> Matching:
    """Return which detection found which object, as COCO's evaluation decides.

    By falling score, each detection takes the object of its class that it overlaps the most and that none has taken.
    One that finds none and lies in what is ignored does not count.

    Args:
        overlaps: of the boxes.
        iou: the least overlap, from 0.1.
    """
    detection, target = overlaps.pair_detection, overlaps.pair_target
    classes = overlaps.target_classes[target]
    is_near = (overlaps.pair_iou >= iou) & ((classes == overlaps.classes[detection]) | (classes < 0))
    counts = overlaps.is_object[target]
    is_pair = is_near & counts
    found = best_matches(detection[is_pair], target[is_pair], len(overlaps.detections), len(overlaps.targets))
    is_ignored = np.zeros(len(found), bool)
    is_ignored[detection[is_near & ~counts]] = True
    return Matching(found, is_ignored & (found < 0))


def best_matches(detection: np.ndarray, target: np.ndarray, detections: int, targets: int) -> np.ndarray:
    """Return the object that each detection takes, (detections) int64; -1 for none.

    Each detection in turn takes the first of its objects that is free. This is the stable matching in which every
    object prefers the earlier detection, so all of them ask at once, again and again, until no one is sent away (Gale
    and Shapley, "College Admissions and the Stability of Marriage", 1962).

    Args:
        detection: (P) of each pair, rising.
        target: (P) of each pair; of a detection, the one that it prefers first.
        detections: how many there are.
        targets: how many there are.
    """
    found = np.full(detections, -1)
    place = np.flatnonzero(np.diff(detection, prepend=-1))
    end = np.append(place[1:], len(detection))
    while len(place):
        taker = np.full(targets, detections)
        np.minimum.at(taker, target[place], detection[place])
        is_away = taker[target[place]] != detection[place]
        if not is_away.any():
            break
        place = place + is_away
        is_left = place < end
        place, end = place[is_left], end[is_left]
    found[detection[place]] = target[place]
    return found


def image_counts(overlaps: Overlaps, matching: Matching, confidence: float = SHOWN_SCORE) -> np.ndarray:
    """Return how many detections of each image are right and wrong, and how many objects are missed, (N, 3) int64.

    Args:
        overlaps: of the boxes.
        matching: of them.
        confidence: detections with smaller scores are left out.
    """
    is_shown = overlaps.scores >= confidence
    true, false, objects = (
        np.bincount(image, minlength=overlaps.images)
        for image in (
            overlaps.detection_image[is_shown & matching.is_true],
            overlaps.detection_image[is_shown & matching.is_false],
            overlaps.target_image[overlaps.is_object],
        )
    )
    return np.stack([true, false, objects - true], axis=1)


def image_scores(detections: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return F1 of each image at an overlap of 0.5 and a confidence of 0.3, (N) float64; 1 where there is nothing.

    F1 = 2 TP / (2 TP + FP + FN); it is 0 where nothing is right, and 1 where nothing is there and nothing is found.

    Args:
        detections: (N, K, 6), see ``find_overlaps``.
        targets: (N, M, 6).
    """
    overlaps = find_overlaps(detections, targets)
    return scores_of(image_counts(overlaps, match(overlaps)))


def scores_of(counts: np.ndarray) -> np.ndarray:
    """Return F1 of each image, (N) float64, as ``image_scores`` has it.

    Args:
        counts: (N, 3) of ``image_counts``.
    """
    true, false, missed = counts.T
    whole = 2 * true + false + missed
    return np.where(whole > 0, 2 * true / np.maximum(whole, 1), 1.0)


def detection_outcomes(
    overlaps: Overlaps, matching: Matching, slots: int, confidence: float = SHOWN_SCORE
) -> np.ndarray:
    """Return the outcome of each detection, (N, slots) int8: ``TRUE``, ``FALSE``, ``IGNORED``, and 0 for one left out.

    Args:
        overlaps: of the boxes.
        matching: of them.
        slots: detections of an image with padding, K.
        confidence: detections with smaller scores are left out.
    """
    kind = np.where(matching.is_true, TRUE, np.where(matching.is_ignored, IGNORED, FALSE))
    outcomes = np.zeros((overlaps.images, slots), np.int8)
    outcomes[overlaps.detection_image, overlaps.detection_slot] = np.where(overlaps.scores >= confidence, kind, 0)
    return outcomes


def target_outcomes(overlaps: Overlaps, matching: Matching, slots: int, confidence: float = SHOWN_SCORE) -> np.ndarray:
    """Return the outcome of each object, (N, slots) int8: ``TRUE``, ``MISSED``, ``IGNORED``, and 0 in padding.

    Args:
        overlaps: of the boxes.
        matching: of them.
        slots: objects of an image with padding, M.
        confidence: detections with smaller scores are left out.
    """
    kind = np.where(overlaps.is_object, MISSED, IGNORED)
    kind[matching.target[matching.is_true & (overlaps.scores >= confidence)]] = TRUE
    outcomes = np.zeros((overlaps.images, slots), np.int8)
    outcomes[overlaps.target_image, overlaps.target_slot] = kind
    return outcomes


def _pairs(image: np.ndarray, target_image: np.ndarray, images: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the places of all detections and objects of the same image, in blocks."""
    per_image = np.bincount(target_image, minlength=images)
    first = np.cumsum(per_image) - per_image
    per_detection = per_image[image]
    last = np.cumsum(per_detection)
    begin = 0
    while begin < len(image):
        before = last[begin] - per_detection[begin]
        end = max(begin + 1, int(np.searchsorted(last, before + _BLOCK_PAIRS, side="right")))
        counts = per_detection[begin:end]
        detection = np.repeat(np.arange(begin, end), counts)
        # A number in the block, less the numbers before the detection's own, plus the image's first object.
        start = first[image[begin:end]] - (last[begin:end] - counts - before)
        yield detection, np.arange(len(detection)) + np.repeat(start, counts)
        begin = end


def _near(
    detections: np.ndarray, targets: np.ndarray, detection: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return those pairs that overlap by 0.1 or more, and by how much."""
    sides = [
        np.minimum(detections[detection, high], targets[target, high])
        - np.maximum(detections[detection, low], targets[target, low])
        for low, high in ((0, 2), (1, 3))
    ]
    is_near = (sides[0] > 0) & (sides[1] > 0)
    detection, target = detection[is_near], target[is_near]
    shared = sides[0][is_near] * sides[1][is_near]
    area, own = (
        ((rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1]))[place]
        for rows, place in ((detections, detection), (targets, target))
    )
    overlap = shared / np.where(targets[target, 5] > 0, area, area + own - shared)
    is_near = overlap >= NEAR_IOU
    return detection[is_near], target[is_near], overlap[is_near]
