"""Boxes of object detection in NumPy: overlap, non-maximum suppression, and px of the input and of the original image.

A box is left, top, right, bottom in px; its right and bottom sides are the first positions outside of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ziggurat.errors import UsageError
from ziggurat.tasks.detection_arrays import ORIGINAL_SIZE, PLACE, ROW_LENGTH, SCALE, STATE, targets_of

__all__ = [
    "DETECTION_LENGTH",
    "best_detections",
    "clip",
    "iou",
    "nms",
    "original_detections",
    "original_targets",
    "to_input",
    "to_original",
]

DETECTION_LENGTH: Final = 6
"""Columns of a detection: left, top, right, bottom, score, class."""

_MOST_CANDIDATES: Final = 1000
_DECIMALS: Final = 2
"""Of px of annotations: what COCO's files have. Boxes of whole px come back whole from the float32 of the targets."""


def iou(a: np.ndarray, b: np.ndarray, is_crowd: np.ndarray | None = None) -> np.ndarray:
    """Return the intersection over union of all pairs, (…, A, B); 0 where both boxes are empty.

    Args:
        a: (…, A, 4) boxes.
        b: (…, B, 4) boxes.
        is_crowd: (…, B) bool; for a crowd it is the share of ``a`` that lies in it, as COCO's evaluation counts.
    """
    low = np.maximum(a[..., :, None, :2], b[..., None, :, :2])
    sides = np.minimum(a[..., :, None, 2:4], b[..., None, :, 2:4])
    sides -= low
    np.maximum(sides, 0, out=sides)
    shared = sides[..., 0] * sides[..., 1]
    area_a, area_b = _areas(a)[..., :, None], _areas(b)[..., None, :]
    union = area_a + area_b - shared
    if is_crowd is not None:
        union = np.where(is_crowd[..., None, :], area_a, union)
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def clip(boxes: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return boxes (…, K, 4) without what lies outside of the image.

    Args:
        boxes: (…, K, 4) px.
        size: (…, 2) height and width of the image in px.
    """
    height, width = size[..., None, 0], size[..., None, 1]
    most = np.stack([width, height, width, height], axis=-1)
    return np.clip(boxes, 0, most)


def to_original(boxes: np.ndarray, header: np.ndarray) -> np.ndarray:
    """Return boxes in px of the original image, float64.

    Args:
        boxes: (…, K, 4) in px of the input.
        header: (…, 16) header rows of the targets, see ``ziggurat.tasks.detection_arrays``.
    """
    scale, place = _scale_and_place(header)
    return (boxes - place) / scale


def to_input(boxes: np.ndarray, header: np.ndarray) -> np.ndarray:
    """Return boxes in px of the input, float64: the inverse of ``to_original``.

    Args:
        boxes: (…, K, 4) in px of the original image.
        header: (…, 16) header rows of the targets.
    """
    scale, place = _scale_and_place(header)
    return boxes * scale + place


def nms(boxes: np.ndarray, scores: np.ndarray, iou: float) -> np.ndarray:
    """Return the numbers of the boxes that greedy non-maximum suppression keeps, best first, int64.

    Of equal scores the first box comes first. A box is dropped where it overlaps a kept one by more than ``iou``.

    Args:
        boxes: (K, 4) of one class.
        scores: (K).
        iou: the largest intersection over union of two kept boxes.
    """
    order = np.argsort(-scores, kind="stable")
    classes = np.zeros((1, len(order)), np.int64)
    kept = _keep(np.ascontiguousarray(boxes[order].T)[:, None], classes, classes == 0, iou, len(order))
    return order[kept[0]]


def best_detections(output: np.ndarray, *, least_score: float, iou: float = 0.65, most: int = 100) -> np.ndarray:
    """Return the detections of a batch after non-maximum suppression of each class, (N, most, 6) float32.

    A row is left, top, right, bottom in px of the input, score, class; best first, of equal scores the one that the
    network gives first. Padding is zeros. A box may be found as several classes. At most 1,000 pairs of box and class
    of an image are candidates. Boxes that are not finite or whose sides are turned around are no detections.

    Args:
        output: (N, K, 4 + classes): boxes and scores, see ``ziggurat.tasks.detection_arrays``.
        least_score: detections have at least this score, and more than 0.
        iou: the largest intersection over union of two detections of a class.
        most: detections of an image.

    Raises:
        UsageError: where the output has another shape.
    """
    output = np.asarray(output, np.float32)
    if output.ndim != 3 or output.shape[2] < 5:
        raise UsageError(
            f"The output of the network has shape {output.shape}; a detection network gives boxes and "
            "the scores of each class.",
            advice="Return (N, K, 4 + classes): left, top, right, bottom in px of the input, and scores from 0 to 1.",
        )
    candidates = [_candidates(each, least_score) for each in output]
    length = max((len(each) for each in candidates), default=0)
    rows = np.zeros((len(output), length, DETECTION_LENGTH), np.float32)
    for own, found in zip(rows, candidates, strict=True):
        own[: len(found)] = found
    is_there = rows[..., 4] > 0
    sides = np.ascontiguousarray(np.moveaxis(rows[..., :4], -1, 0))
    kept = _keep(sides, rows[..., 5], is_there, iou, most)
    detections = np.zeros((len(output), most, DETECTION_LENGTH), np.float32)
    for own, places, found in zip(detections, kept, rows, strict=True):
        own[: len(places)] = found[places]
    return detections


def original_detections(detections: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return detections moved into px of the original images and clipped to them, (N, most, 6) float32.

    Args:
        detections: (N, most, 6) of ``best_detections``.
        y: (N, 1, M + 1, 16) targets, of which the header rows are read.
    """
    header = y[:, 0, 0]
    boxes = clip(to_original(detections[..., :4], header), header[:, ORIGINAL_SIZE])
    moved = np.concatenate([boxes, detections[..., 4:]], axis=-1).astype(np.float32)
    return np.where(detections[..., 4:5] > 0, moved, np.float32(0))


def original_targets(y: np.ndarray) -> np.ndarray:
    """Return the objects of a batch in px of the original images, (N, M, 6) float32.

    A row is left, top, right, bottom, class, and state: 0 an object, 1 a crowd, 2 ignored. Padding is of class -1 and
    state 0; an ignored object without a class is of class -1 and state 2. Boxes are rounded to hundredths of a px.

    Args:
        y: (N, 1, M + 1, 16) targets.
    """
    targets = targets_of(y)
    boxes = np.round(to_original(targets.boxes, y[:, 0, 0]), _DECIMALS)
    state = np.where(targets.is_ignored, np.where(y[:, 0, 1:, STATE] == 1, 1, 2), 0)
    rows = np.concatenate([boxes, targets.classes[..., None], state[..., None]], axis=-1).astype(np.float32)
    padding = np.array([0, 0, 0, 0, -1, 0], np.float32)
    return np.where((targets.is_object | targets.is_ignored)[..., None], rows, padding)


def _scale_and_place(header: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scale and place of x, y, x, y, each (…, 1, 4) float64."""
    if header.shape[-1:] != (ROW_LENGTH,):
        raise UsageError(f"A header row has shape {header.shape}, not 16 numbers.")
    header = header[..., None, :].astype(np.float64)
    return tuple(np.concatenate([each[..., ::-1]] * 2, axis=-1) for each in (header[..., SCALE], header[..., PLACE]))  # type: ignore[return-value]


def _areas(boxes: np.ndarray) -> np.ndarray:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def _candidates(output: np.ndarray, least_score: float) -> np.ndarray:
    """Return the best pairs of box and class of an image, sorted, (at most 1,000, 6)."""
    boxes, scores = output[:, :4], output[:, 4:]
    is_box = np.isfinite(boxes).all(axis=1) & (boxes[:, 2] >= boxes[:, 0]) & (boxes[:, 3] >= boxes[:, 1])
    is_found = scores >= least_score if least_score > 0 else scores > 0
    places = np.flatnonzero(is_found & is_box[:, None])
    values = scores.ravel()[places]
    if len(values) > _MOST_CANDIDATES:
        # By value, not by place: which of equal scores a partition takes is not defined.
        is_found = values >= np.partition(values, -_MOST_CANDIDATES)[-_MOST_CANDIDATES]
        places, values = places[is_found], values[is_found]
    order = np.argsort(-values, kind="stable")[:_MOST_CANDIDATES]
    rows, classes = np.divmod(places[order], scores.shape[1])
    return np.column_stack([boxes[rows], values[order], classes])


def _keep(sides: np.ndarray, classes: np.ndarray, is_there: np.ndarray, iou: float, most: int) -> list[np.ndarray]:
    """Return for each image the places of the boxes that are kept, rising; all images in one loop.

    Args:
        sides: (4, N, K) left, top, right, bottom, of each image by falling score.
        classes: (N, K).
        is_there: (N, K) bool, False in padding.
        iou: the largest overlap of two kept boxes of a class.
        most: boxes of an image that are kept at most.
    """
    images, length = is_there.shape
    left, top, right, bottom = sides
    areas = (right - left) * (bottom - top)
    is_open, is_kept = is_there.copy(), np.zeros_like(is_there)
    every = np.arange(images)
    for _ in range(min(most, length)):
        best = is_open.argmax(axis=1)
        is_found = is_open[every, best]
        if not is_found.any():
            break
        is_kept[every[is_found], best[is_found]] = True
        one = (every, best)
        width = np.minimum(right, right[one][:, None])
        width -= np.maximum(left, left[one][:, None])
        height = np.minimum(bottom, bottom[one][:, None])
        height -= np.maximum(top, top[one][:, None])
        np.maximum(width, 0, out=width)
        np.maximum(height, 0, out=height)
        width *= height
        # shared > iou * (area + area - shared), without a division
        is_near = width * (1 + iou) > (areas + areas[one][:, None]) * iou
        is_near &= classes == classes[one][:, None]
        is_open &= ~is_near
        is_open[one] = False
    return [np.flatnonzero(each) for each in is_kept]
