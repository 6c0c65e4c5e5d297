"""Augmentors that apply others at random: with a probability, or one of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ziggurat.dataflow.imgaug.arguments import fraction
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.compose import AugmentorList, checked_augmentors
from ziggurat.dataflow.imgaug.images import Array, check_image
from ziggurat.dataflow.imgaug.transform import NoOpTransform, Transform
from ziggurat.errors import UsageError

__all__ = ["RandomApply", "RandomApplyAug", "RandomChooseAug"]


class RandomApplyAug(ImageAugmentor):
    """Applies an augmentor with a probability, and else nothing.

    Args:
        aug: the augmentor, or a list of them.
        prob: from 0 to 1.
    """

    def __init__(self, aug: ImageAugmentor | Sequence[ImageAugmentor], prob: float) -> None:
        self.aug = aug if isinstance(aug, ImageAugmentor) else AugmentorList(aug)
        self.prob = fraction(prob, "prob")

    def members(self) -> Sequence[ImageAugmentor]:
        return (self.aug,)

    def get_transform(self, img: Array) -> Transform:
        return self.aug.get_transform(img) if self.rng.random_sample() < self.prob else NoOpTransform()

    def draw(self, img: Array) -> tuple[Transform, Array]:
        check_image(img, by=type(self).__name__)
        return self.aug.draw(img) if self.rng.random_sample() < self.prob else (NoOpTransform(), img)


RandomApply = RandomApplyAug


class RandomChooseAug(ImageAugmentor):
    """Applies one of several augmentors.

    Args:
        aug_lists: the augmentors, all equally likely; or pairs of an augmentor and its weight (any positive numbers).
    """

    def __init__(self, aug_lists: Sequence[ImageAugmentor] | Sequence[tuple[ImageAugmentor, float]]) -> None:
        pairs = [each if isinstance(each, tuple) else (each, 1.0) for each in aug_lists]
        self.augmentors = checked_augmentors([augmentor for augmentor, _weight in pairs])
        weights = np.array([weight for _augmentor, weight in pairs], dtype=np.float64)
        if not pairs or not np.all(weights >= 0) or not 0 < weights.sum() < np.inf:
            raise UsageError(
                "`RandomChooseAug` needs at least one augmentor, and weights of which none is negative.",
                received=weights.tolist(),
                advice="Give a list of augmentors, or of pairs (augmentor, weight).",
            )
        self.probabilities: list[float] = (weights / weights.sum()).tolist()

    def members(self) -> Sequence[ImageAugmentor]:
        return self.augmentors

    def get_transform(self, img: Array) -> Transform:
        return self._chosen().get_transform(img)

    def draw(self, img: Array) -> tuple[Transform, Array]:
        return self._chosen().draw(img)

    def _chosen(self) -> ImageAugmentor:
        bounds = np.cumsum(self.probabilities)
        at = int(np.searchsorted(bounds, self.rng.random_sample(), side="right"))
        return self.augmentors[min(at, len(self.augmentors) - 1)]
