"""Mixing of the samples of a batch: the stages ``MixUp`` and ``CutMix``, for use after ``BatchData``.

A batch has images (N, H, W, C) of any supported image type, and labels: class numbers (N,), or probabilities (N, K).
The labels of the result are probabilities, (N, K) ``float32``.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.imgaug.base import fraction, positive
from ziggurat.dataflow.imgaug.images import IMAGE_TYPES, Array, ImageError
from ziggurat.dataflow.imgaug.labels import LabelError
from ziggurat.dataflow.stages.mapping import MapData

__all__ = ["CutMix", "MixUp", "blended", "cut_mix", "mix_up", "pasted", "random_box", "soft_labels"]


class MixUp(MapData):
    """Mixes each image of a batch with another one, and their labels alike.

    Zhang, Cissé, Dauphin and Lopez-Paz, "mixup: beyond empirical risk minimization" (ICLR 2018).

    Args:
        ds: batches.
        alpha: the share of an image is drawn from Beta(alpha, alpha), once for a batch.
        num_classes: number of classes, where labels are class numbers.
        image_index: where the images are in a datapoint.
        label_index: where the labels are.
        prob: probability that a batch is mixed; in the others only the labels change their form.
    """

    def __init__(
        self,
        ds: DataFlow,
        alpha: float = 0.2,
        *,
        num_classes: int | None = None,
        image_index: Any = 0,
        label_index: Any = 1,
        prob: float = 1.0,
    ) -> None:
        super().__init__(ds, self.mix)
        self.alpha = positive(alpha, "alpha", zero=False)
        self.num_classes = num_classes
        self.image_index = image_index
        self.label_index = label_index
        self.prob = fraction(prob, "prob")

    def mix(self, batch: Datapoint, rng: np.random.RandomState) -> Datapoint:
        """Return a batch mixed: a dict for a dict, else a list."""
        mixed: Any = dict(batch) if isinstance(batch, dict) else list(batch)
        images = check_batch(mixed[self.image_index])
        labels = soft_labels(mixed[self.label_index], len(images), self.num_classes)
        if rng.random_sample() < self.prob:
            images, labels = self._mixed(images, labels, rng)
        mixed[self.image_index], mixed[self.label_index] = images, labels
        return mixed

    def _mixed(self, images: Array, labels: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
        share = float(rng.beta(self.alpha, self.alpha))
        return mix_up(images, labels, share, rng.permutation(len(images)))


class CutMix(MixUp):
    """Replaces a rectangle of each image of a batch by that of another one, and mixes labels by the areas.

    Yun et al., "CutMix: regularization strategy to train strong classifiers with localizable features" (ICCV 2019).

    Args:
        ds: batches.
        alpha: the share of the area that stays is drawn from Beta(alpha, alpha), once for a batch; 1 is uniform.
        num_classes: number of classes, where labels are class numbers.
        image_index: where the images are in a datapoint.
        label_index: where the labels are.
        prob: probability that a batch is mixed; in the others only the labels change their form.
    """

    def __init__(
        self,
        ds: DataFlow,
        alpha: float = 1.0,
        *,
        num_classes: int | None = None,
        image_index: Any = 0,
        label_index: Any = 1,
        prob: float = 1.0,
    ) -> None:
        super().__init__(
            ds, alpha, num_classes=num_classes, image_index=image_index, label_index=label_index, prob=prob
        )

    def _mixed(self, images: Array, labels: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
        box = random_box(self.alpha, images.shape[1], images.shape[2], rng)
        return cut_mix(images, labels, box, rng.permutation(len(images)))


def random_box(alpha: float, height: int, width: int, rng: np.random.RandomState) -> tuple[int, int, int, int]:
    """Return (y0, x0, y1, x1) in pixels of the rectangle that CutMix replaces: of random area and place.

    Args:
        alpha: the share of the area that stays is drawn from Beta(alpha, alpha).
        height: of the images in pixels.
        width: likewise.
        rng: where it is drawn from.
    """
    side = np.sqrt(1.0 - rng.beta(alpha, alpha))
    center_y, center_x = rng.uniform(0, height), rng.uniform(0, width)
    y0, y1 = _limits(center_y, side * height, height)
    x0, x1 = _limits(center_x, side * width, width)
    return y0, x0, y1, x1


def _limits(center: float, length: float, most: int) -> tuple[int, int]:
    return max(0, round(center - length / 2)), min(most, round(center + length / 2))


def mix_up(images: Array, labels: Array, share: float, order: Array) -> tuple[Array, Array]:
    """Return ``share`` of each image and label plus ``1 - share`` of those at ``order``.

    Args:
        images: (N, ...).
        labels: (N, K).
        share: from 0 to 1.
        order: (N,) numbers of the images that are mixed in.
    """
    return blended(images, images[order], share), _mean(labels, share, order)


def blended(images: Array, others: Array, share: float) -> Array:
    """Return ``share`` of each image plus ``1 - share`` of another one.

    Args:
        images: (N, ...).
        others: of the same shape and type.
        share: from 0 to 1.
    """
    flat, other = (np.ascontiguousarray(each).reshape(len(images), -1) for each in (images, others))
    return cv2.addWeighted(flat, share, other, 1.0 - share, 0.0).reshape(images.shape)


def cut_mix(images: Array, labels: Array, box: tuple[int, int, int, int], order: Array) -> tuple[Array, Array]:
    """Return images whose rectangle ``box`` comes from those at ``order``, and labels mixed by the areas.

    Args:
        images: (N, H, W, ...).
        labels: (N, K).
        box: (y0, x0, y1, x1) in pixels.
        order: (N,) numbers of the images that the rectangles come from.
    """
    mixed, share = pasted(images, images[order], box)
    return mixed, _mean(labels, share, order)


def pasted(images: Array, others: Array, box: tuple[int, int, int, int]) -> tuple[Array, float]:
    """Return images whose rectangle ``box`` comes from others, and the share of the area that is their own.

    Args:
        images: (N, H, W, ...).
        others: of the same shape and type.
        box: (y0, x0, y1, x1) in pixels.
    """
    y0, x0, y1, x1 = box
    mixed = images.copy()
    mixed[:, y0:y1, x0:x1] = others[:, y0:y1, x0:x1]
    return mixed, 1.0 - (y1 - y0) * (x1 - x0) / (images.shape[1] * images.shape[2])


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
