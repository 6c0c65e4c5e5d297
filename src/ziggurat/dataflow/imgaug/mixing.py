"""Deterministic functions that mix the samples of a batch."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.images import IMAGE_TYPES, Array, ImageError
from ziggurat.dataflow.imgaug.labels import LabelError

__all__ = ["check_batch", "cut_mix", "mix_up", "soft_labels"]


def mix_up(images: Array, labels: Array, share: float, order: Array) -> tuple[Array, Array]:
    """Return ``share`` of each image and label plus ``1 - share`` of those at ``order``.

    Args:
        images: (N, ...).
        labels: (N, K).
        share: from 0 to 1.
        order: (N,) numbers of the images that are mixed in.
    """
    flat = np.ascontiguousarray(images).reshape(len(images), -1)
    mixed = flat[order]
    cv2.addWeighted(flat, share, mixed, 1.0 - share, 0.0, dst=mixed)
    return mixed.reshape(images.shape), _mean(labels, share, order)


def cut_mix(images: Array, labels: Array, box: tuple[int, int, int, int], order: Array) -> tuple[Array, Array]:
    """Return images whose rectangle ``box`` comes from those at ``order``, and labels mixed by the areas.

    Args:
        images: (N, H, W, ...).
        labels: (N, K).
        box: (y0, x0, y1, x1) in pixels.
        order: (N,) numbers of the images that the rectangles come from.
    """
    y0, x0, y1, x1 = box
    mixed = images.copy()
    mixed[:, y0:y1, x0:x1] = images[order, y0:y1, x0:x1]
    share = 1.0 - (y1 - y0) * (x1 - x0) / (images.shape[1] * images.shape[2])
    return mixed, _mean(labels, share, order)


def soft_labels(labels: Any, samples: int, classes: int | None) -> Array:
    """Return labels as probabilities, (N, K) ``float32``.

    Args:
        labels: class numbers (N,), or probabilities (N, K).
        samples: N.
        classes: K; needed for class numbers.

    Raises:
        LabelError: where they are neither.
    """
    array = np.asarray(labels)
    if array.ndim == 2 and len(array) == samples and array.dtype.kind in "fiu":
        return array.astype(np.float32, copy=False)
    numbers = array.shape == (samples,) and array.dtype.kind in "iu"
    if not numbers or classes is None or array.min() < 0 or array.max() >= classes:
        raise LabelError(
            "Labels of a mixed batch are probabilities (N, K), or class numbers (N,) below `num_classes`.",
            received=f"{array.dtype} {array.shape} for {samples} images, with num_classes={classes}",
            advice="Give `num_classes`, and check `label_index`.",
        )
    return np.eye(classes, dtype=np.float32)[array]


def check_batch(images: Any) -> Array:
    """Return ``images`` where they are a batch: (N, H, W, C) or (N, H, W).

    Raises:
        ImageError: where they are not.
    """
    if (
        not isinstance(images, np.ndarray)
        or images.ndim < 3
        or images.size == 0
        or images.dtype.name not in IMAGE_TYPES
    ):
        shape = f"{images.dtype} {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
        raise ImageError(
            f"A batch that is mixed has images (N, H, W, C) of type {', '.join(IMAGE_TYPES)}, of one size.",
            received=shape,
            advice="Put the stage after `BatchData`, resize the images, and check `image_index`.",
        )
    return images


def _mean(labels: Array, share: float, order: Array) -> Array:
    return labels * np.float32(share) + labels[order] * np.float32(1.0 - share)
