"""Boxes in TensorFlow: non-maximum suppression, RoI align, and the detections of an output.

A box is left, top, right, bottom in px.
"""

from __future__ import annotations

from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import UsageError

__all__ = ["best_detections", "nms", "roi_align"]

_MOST_CANDIDATES: Final = 1000


def nms(boxes: Any, scores: Any, iou: float = 0.65, most: int | None = None) -> Any:
    """Return the numbers of the boxes that greedy non-maximum suppression keeps, best first.

    It is ``tf.image.non_max_suppression`` with boxes as Ziggurat has them. A box is dropped where it overlaps a kept
    one by more than ``iou``.

    Args:
        boxes: (K, 4) of one class.
        scores: (K).
        iou: the largest intersection over union of two kept boxes.
        most: how many numbers are returned, with -1 after the last one; None for all that are kept.

    Returns:
        int64, (kept) or (most).

    Raises:
        UsageError: where boxes and scores do not belong together.
    """
    boxes, scores = tf.convert_to_tensor(boxes), tf.convert_to_tensor(scores)
    if boxes.shape.rank != 2 or scores.shape.rank != 1 or not boxes.shape[-1:].is_compatible_with([4]):
        raise UsageError(
            "`digits.nms` takes boxes (K, 4) and scores (K).",
            received=f"shapes {boxes.shape} and {scores.shape}",
            advice="Give it the boxes of one image and class.",
        )
    turned = tf.gather(boxes, [1, 0, 3, 2], axis=1)
    length = tf.shape(boxes)[0] if most is None else most
    kept = tf.cast(tf.image.non_max_suppression(turned, scores, length, iou_threshold=iou), tf.int64)
    if most is None:
        return kept
    padded = tf.pad(kept, [[0, most - tf.shape(kept)[0]]], constant_values=-1)
    padded.set_shape([most])
    return padded


def roi_align(
    x: Any,
    boxes: Any,
    output_size: int | tuple[int, int],
    *,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 2,
    aligned: bool = True,
) -> Any:
    """Return the features of each box on a grid of one size: means of bilinear samples, and no rounding of sides.

    RoIAlign of He et al., "Mask R-CNN" (ICCV 2017, sec. 3), with the borders of torchvision's operation: a sample up to
    one px outside of the image has the value of its border, further out it is 0.

    Args:
        x: (N, H, W, C) features.
        boxes: (R, 5): number of the image in the batch, left, top, right, bottom.
        output_size: height and width of the grid, or one number for both.
        spatial_scale: px of the features for one px of the boxes.
        sampling_ratio: samples in a cell of the grid along each side.
        aligned: whether the middle of the first px is at 0.5, as in every image here; False for models that were
            trained with it at 0.

    Returns:
        (R, height, width, C).

    Raises:
        UsageError: where boxes have another shape.
    """
    x, boxes = tf.convert_to_tensor(x), tf.convert_to_tensor(boxes)
    if x.shape.rank != 4 or boxes.shape.rank != 2 or not boxes.shape[-1:].is_compatible_with([5]):
        raise UsageError(
            f"`digits.roi_align` got shapes {x.shape} and {boxes.shape}, not features (N, H, W, C) and "
            "boxes (R, 5): image, left, top, right, bottom.",
            advice="Put the number of its image before each box.",
        )
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    corners = boxes[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
    size = tf.shape(x)
    y = _axis(corners[:, 1], corners[:, 3], (height, sampling_ratio), size[1], aligned)
    x_axis = _axis(corners[:, 0], corners[:, 2], (width, sampling_ratio), size[2], aligned)
    image = tf.cast(boxes[:, 0], tf.int32)[:, None, None]
    parts = []
    for rows, row_share in y:
        for columns, column_share in x_axis:
            places = (image * size[1] + rows[:, :, None]) * size[2] + columns[:, None, :]
            values = tf.gather(tf.reshape(x, tf.stack([-1, size[3]])), places)
            parts.append(values * (row_share[:, :, None] * column_share[:, None, :])[..., None])
    shape = tf.stack([-1, height, sampling_ratio, width, sampling_ratio, size[3]])
    cells = tf.reduce_mean(tf.reshape(tf.add_n(parts), shape), axis=[2, 4])
    cells.set_shape([boxes.shape[0], height, width, x.shape[3]])
    return cells


def best_detections(output: Any, *, least_score: float, iou: float = 0.65, most: int = 100) -> Any:
    """Return what ``ziggurat.tasks.detection_boxes.best_detections`` returns, by operations that every format has.

    Args:
        output: (N, K, 4 + classes) float32; the number of classes is known.
        least_score: detections have at least this score, and more than 0.
        iou: the largest intersection over union of two detections of a class.
        most: detections of an image.

    Returns:
        (N, most, 6) float32: left, top, right, bottom, score, class.
    """
    rows = _candidates(output, least_score)
    rows = tf.pad(rows, [[0, 0], [0, tf.maximum(0, most - tf.shape(rows)[1])], [0, 0]])
    low, high, scores, classes = rows[..., :2], rows[..., 2:4], rows[..., 4], rows[..., 5]
    areas = (high[..., 0] - low[..., 0]) * (high[..., 1] - low[..., 1])
    numbers = tf.range(tf.shape(rows)[1])[None]
    found = []
    for _ in range(most):  # without a loop: each format has these operations, and loops are what they differ in
        best = tf.argmax(scores, axis=1, output_type=tf.int32)[:, None]
        one = tf.gather(rows, best, axis=1, batch_dims=1)
        found.append(one * tf.cast(tf.gather(scores, best, axis=1, batch_dims=1) > 0, tf.float32)[..., None])
        sides = tf.maximum(tf.minimum(high, one[..., 2:4]) - tf.maximum(low, one[..., :2]), 0.0)
        area = (one[..., 2] - one[..., 0]) * (one[..., 3] - one[..., 1])
        is_near = sides[..., 0] * sides[..., 1] * (1 + iou) > (areas + area) * iou
        is_near = tf.logical_or(tf.logical_and(is_near, tf.equal(classes, one[..., 5])), tf.equal(numbers, best))
        scores = scores * (1.0 - tf.cast(is_near, tf.float32))
    return tf.concat(found, axis=1)


def _candidates(output: Any, least_score: float) -> Any:
    """Return the best pairs of box and class of each image, by falling score, (N, at most 1,000, 6)."""
    boxes, scores = output[..., :4], output[..., 4:]
    classes = scores.shape[-1]
    is_finite = tf.reduce_all(tf.abs(boxes) <= tf.float32.max, axis=-1)
    is_box = tf.logical_and(is_finite, tf.reduce_all(boxes[..., 2:] >= boxes[..., :2], axis=-1))
    is_found = tf.logical_and(scores >= least_score, is_box[..., None])
    scores = tf.where(is_found, scores, tf.zeros_like(scores))
    boxes = tf.where(tf.tile(is_box[..., None], [1, 1, 4]), boxes, tf.zeros_like(boxes))
    rows = output.shape[1]
    length = tf.minimum(_MOST_CANDIDATES, tf.shape(output)[1] * classes)
    length = length if rows is None else min(_MOST_CANDIDATES, rows * classes)
    flat = tf.reshape(scores, [-1, tf.shape(output)[1] * classes if rows is None else rows * classes])
    best, places = tf.math.top_k(flat, length)
    chosen = tf.gather(boxes, places // classes, axis=1, batch_dims=1)
    numbers = tf.cast(places - places // classes * classes, tf.float32)
    return tf.concat([chosen, best[..., None], numbers[..., None]], axis=-1)


def _axis(start: Any, end: Any, cells: tuple[int, int], length: Any, aligned: bool) -> list[tuple[Any, Any]]:
    """Return the two px that each sample along an axis lies between, (R, samples) int32, and the share of each.

    Args:
        start: (R) sides of the boxes in px of the features.
        end: (R).
        cells: how many there are, and samples in each.
        length: of the features.
        aligned: whether a box may be smaller than one px.
    """
    count = cells[0] * cells[1]
    sides = end - start if aligned else tf.maximum(end - start, 1.0)
    steps = (tf.range(count, dtype=start.dtype) + 0.5) / count
    place = start[:, None] + sides[:, None] * steps
    last = tf.cast(length - 1, place.dtype)
    is_inside = tf.cast(tf.logical_and(place >= -1.0, place <= last + 1), place.dtype)
    place = tf.clip_by_value(place, 0.0, last)
    first = tf.floor(place)
    share = place - first
    second = tf.minimum(first + 1, last)
    return [
        (tf.cast(first, tf.int32), (1 - share) * is_inside),
        (tf.cast(second, tf.int32), share * is_inside),
    ]
