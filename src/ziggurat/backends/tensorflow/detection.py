"""Object detection in network files on TensorFlow: targets as tensors, anchor points, and the loss of a detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.batch_sums import share_of_batch
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tasks.detection_arrays import CLASS, COUNT, STATE

__all__ = ["Objects", "anchor_points", "boxes_of", "detection_loss", "generalized_iou"]

_EPSILON: Final = 1e-7


@dataclass(frozen=True)
class Objects:
    """The objects of a batch, padded to the same number.

    Args:
        boxes: (N, M, 4) float32 left, top, right, bottom in px of the input; zeros in padding.
        classes: (N, M) int64; 0 in padding and where there is no class.
        is_object: (N, M) bool, whether a row is an object to find.
        is_ignored: (N, M) bool, whether a row is a region that counts for nothing.
    """

    boxes: Any
    classes: Any
    is_object: Any
    is_ignored: Any


def boxes_of(y: Any) -> Objects:
    """Return the objects of a batch.

    Args:
        y: (N, 1, M + 1, 16) float32, the target of object detection as a network gets it.
    """
    rows = y[:, 0, 1:]
    is_there = tf.cast(tf.range(tf.shape(rows)[1]), y.dtype) < y[:, 0, :1, COUNT]
    is_ignored = is_there & ((rows[..., STATE] > 0) | (rows[..., CLASS] < 0))
    corners = tf.concat([rows[..., :2], rows[..., :2] + rows[..., 2:4]], axis=-1)
    there = tf.cast(is_there, y.dtype)
    return Objects(
        boxes=corners * there[..., None],
        classes=tf.cast(tf.maximum(rows[..., CLASS] * there, 0.0), tf.int64),
        is_object=is_there & ~is_ignored,
        is_ignored=is_ignored,
    )


def anchor_points(height: int, width: int, strides: Sequence[int] = (8, 16, 32)) -> tuple[np.ndarray, np.ndarray]:
    """Return the places that a detector predicts a box at: the centers of the cells of its feature maps.

    Args:
        height: of the input in px; feature maps are rounded up.
        width: likewise.
        strides: px of the input for one cell of each feature map.

    Returns:
        points: (K, 2) float32 x and y in px, feature map by feature map, row by row.
        sizes: (K, 1) float32 the stride of each.
    """
    points, sizes = [], []
    for stride in strides:
        y, x = np.mgrid[: -(-height // stride), : -(-width // stride)]
        points.append((np.stack([x.ravel(), y.ravel()], axis=1) + 0.5) * stride)
        sizes.append(np.full((x.size, 1), stride))
    return np.concatenate(points).astype(np.float32), np.concatenate(sizes).astype(np.float32)


def detection_loss(
    boxes: Any, logits: Any, y: Any, points: Any, *, candidates: int = 10, box_weight: float = 2.0
) -> Any:
    """Return the loss of a detector without anchor boxes: classes and boxes, for the rows that suit an object best.

    Of the points inside an object, those learn it whose ``score^0.5 * IoU^6`` is among the largest (Feng et al., "TOOD:
    task-aligned one-stage object detection", ICCV 2021). Scores learn how well they suit, by binary cross-entropy;
    boxes learn by the generalized IoU (Rezatofighi et al., CVPR 2019). The sum over a batch is divided by the sum of
    what the scores shall be, over all devices where there are several.

    Args:
        boxes: (N, K, 4) left, top, right, bottom in px of the input.
        logits: (N, K, classes).
        y: (N, 1, M + 1, 16), the target.
        points: (K, 2) x and y in px of the place that each row belongs to.
        candidates: rows that learn an object at most.
        box_weight: of the boxes in the sum.

    Returns:
        float32 scalar.
    """
    boxes, logits, y = (tf.cast(each, tf.float32) for each in (boxes, logits, y))
    objects = boxes_of(y)
    target, share = _assigned(
        objects, tf.stop_gradient(boxes), tf.sigmoid(tf.stop_gradient(logits)), points, candidates
    )
    target, share = tf.stop_gradient(target), tf.stop_gradient(share)
    classes = tf.gather(objects.classes, target, batch_dims=1)
    wanted = tf.one_hot(classes, tf.shape(logits)[2]) * share[..., None]
    is_free = ~tf.reduce_any(_inside(points, objects.boxes) & objects.is_ignored[..., None], axis=1)
    total = share_of_batch(tf.reduce_sum(share), at_least=1.0)
    entropy = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits), axis=2)
    class_loss = tf.reduce_sum(entropy * tf.cast((share > 0) | is_free, tf.float32)) / total
    # Rows without an object have a box of no size: their overlap is not defined, and their share is 0.
    is_learned = share > 0
    there = tf.cast(is_learned, tf.float32)[..., None]
    wanted_boxes = tf.gather(objects.boxes, target, batch_dims=1) * there + tf.stop_gradient(boxes) * (1.0 - there)
    overlap = tf.where(is_learned, generalized_iou(boxes, wanted_boxes), tf.zeros_like(share))
    box_loss = tf.reduce_sum((1.0 - overlap) * share) / total
    return tf.add(class_loss, box_weight * box_loss, name="detection_loss")


def generalized_iou(boxes: Any, others: Any) -> Any:
    """Return the generalized intersection over union of pairs of boxes, (…), from -1 to 1.

    Args:
        boxes: (…, 4) left, top, right, bottom.
        others: (…, 4).
    """
    inside, union = _overlap(boxes, others)
    low, high = tf.minimum(boxes[..., :2], others[..., :2]), tf.maximum(boxes[..., 2:], others[..., 2:])
    hull = tf.reduce_prod(high - low, axis=-1) + _EPSILON
    return inside / union - (hull - union) / hull


def _overlap(boxes: Any, others: Any) -> tuple[Any, Any]:
    """Return the areas of intersection and union of pairs of boxes."""
    low, high = tf.maximum(boxes[..., :2], others[..., :2]), tf.minimum(boxes[..., 2:], others[..., 2:])
    inside = tf.reduce_prod(tf.maximum(high - low, 0.0), axis=-1)
    areas = [tf.reduce_prod(tf.maximum(each[..., 2:] - each[..., :2], 0.0), axis=-1) for each in (boxes, others)]
    return inside, areas[0] + areas[1] - inside + _EPSILON


def _inside(points: Any, boxes: Any) -> Any:
    """Return whether points (K, 2) lie in boxes (N, M, 4): (N, M, K) bool."""
    low, high = boxes[:, :, None, :2], boxes[:, :, None, 2:]
    return tf.reduce_all((points > low) & (points < high), axis=-1)


def _assigned(objects: Objects, boxes: Any, scores: Any, points: Any, candidates: int) -> tuple[Any, Any]:
    """Return for each row the object that it learns, (N, K) int64, and how well it suits, (N, K); 0 for none."""
    inside, union = _overlap(objects.boxes[:, :, None], boxes[:, None])
    iou = inside / union
    of_class = tf.gather(tf.transpose(scores, [0, 2, 1]), objects.classes, batch_dims=1)
    suits = tf.sqrt(of_class) * iou**6
    # An object that is smaller than the distance of the points still has the points that are next to it: the first
    # point lies half a cell of the finest map from the corner of the image.
    middle = (objects.boxes[..., :2] + objects.boxes[..., 2:]) / 2
    half = tf.maximum((objects.boxes[..., 2:] - objects.boxes[..., :2]) / 2, points[0])
    around = tf.concat([middle - half, middle + half], axis=-1)
    may_learn = _inside(points, around) & objects.is_object[..., None]
    suits = tf.where(may_learn, suits, -tf.ones_like(suits))
    best = tf.nn.top_k(suits, tf.minimum(candidates, tf.shape(suits)[2])).values
    is_chosen = may_learn & (suits >= best[..., -1:])
    # A row learns one object: of several, the one that its box overlaps the most.
    target = tf.argmax(tf.where(is_chosen, iou, -tf.ones_like(iou)), axis=1)
    rows = tf.range(tf.shape(suits, out_type=tf.int64)[1])
    is_chosen &= tf.equal(rows[None, :, None], target[:, None])  # `==` compares the tensors themselves
    chosen = tf.cast(is_chosen, tf.float32)
    suits, overlap = suits * chosen, iou * chosen
    # The best row of an object shall have the score of its IoU, the others in proportion.
    best_suit = tf.maximum(tf.reduce_max(suits, axis=2, keepdims=True), 1e-30)
    share = suits / best_suit * tf.reduce_max(overlap, axis=2, keepdims=True)
    return target, tf.reduce_max(share, axis=1)
