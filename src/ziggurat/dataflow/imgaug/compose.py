"""Composite augmentors: in sequence, in random order, with a probability, one of several, and from plain functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ziggurat.dataflow.imgaug.base import ImageAugmentor, fraction
from ziggurat.dataflow.imgaug.images import Array, check_image
from ziggurat.dataflow.imgaug.transform import NoOpTransform, Transform, TransformFactory, TransformList
from ziggurat.errors import UsageError

__all__ = [
    "AugmentorList",
    "Identity",
    "MapImage",
    "RandomApply",
    "RandomApplyAug",
    "RandomChooseAug",
    "RandomOrderAug",
]


class AugmentorList(ImageAugmentor):
    """Applies augmentors in turn; each draws for the image that the ones before it made.

    Args:
        augmentors: first to last.
    """

    def __init__(self, augmentors: Sequence[ImageAugmentor]) -> None:
        self.augmentors = checked_augmentors(augmentors)

    def members(self) -> Sequence[ImageAugmentor]:
        return self.augmentors

    def get_transform(self, img: Array) -> Transform:
        if not self.augmentors:
            return NoOpTransform()
        *first, last = self.augmentors
        transform, img = _in_turn(first, img, by=self)
        return TransformList([transform, last.get_transform(img)])  # the last one's image is not needed

    def draw(self, img: Array) -> tuple[Transform, Array]:
        return _in_turn(self.augmentors, img, by=self)


class RandomOrderAug(ImageAugmentor):
    """Applies augmentors in turn, in a random order; each draws for the image that the ones before it made.

    Args:
        aug_lists: the augmentors.
    """

    def __init__(self, aug_lists: Sequence[ImageAugmentor]) -> None:
        self.augmentors = checked_augmentors(aug_lists)

    def members(self) -> Sequence[ImageAugmentor]:
        return self.augmentors

    def get_transform(self, img: Array) -> Transform:
        return self.draw(img)[0]

    def draw(self, img: Array) -> tuple[Transform, Array]:
        order = self.rng.permutation(len(self.augmentors))
        return _in_turn([self.augmentors[at] for at in order], img, by=self)


class Identity(ImageAugmentor):
    """Changes nothing."""

    def get_transform(self, img: Array) -> Transform:
        return NoOpTransform()


class MapImage(ImageAugmentor):
    """Makes an augmentor of a plain function.

    Args:
        func: image → image; it must not write into its argument.
        coord_func: points (N, 2) → points, where points or boxes are moved along.
        mask_func: mask → mask, where masks are moved along.
    """

    def __init__(
        self,
        func: Callable[[Array], Array],
        coord_func: Callable[[Array], Array] | None = None,
        mask_func: Callable[[Array], Array] | None = None,
    ) -> None:
        self.func = func
        self.coord_func = coord_func
        self.mask_func = mask_func

    def get_transform(self, img: Array) -> Transform:
        functions: dict[str, Any] = {"apply_image": self.func}
        if self.coord_func is not None:
            functions["apply_coords"] = self.coord_func
        if self.mask_func is not None:
            functions["apply_mask"] = self.mask_func
        return TransformFactory(name="MapImage", **functions)


def checked_augmentors(augmentors: object) -> list[ImageAugmentor]:
    """Return a list of augmentors.

    Raises:
        UsageError: where it is not one.
    """
    if isinstance(augmentors, ImageAugmentor) or not isinstance(augmentors, Sequence):
        raise UsageError(
            "Augmentors come in a list.", received=type(augmentors).__name__, advice="Put the augmentor in brackets."
        )
    for each in augmentors:
        if not isinstance(each, ImageAugmentor):
            raise UsageError(
                "Each augmentor is an `ImageAugmentor`.",
                received=repr(each),
                advice="Wrap a plain function in `MapImage`.",
            )
    return list(cast(Sequence[ImageAugmentor], augmentors))


def _in_turn(augmentors: Sequence[ImageAugmentor], img: Array, *, by: object) -> tuple[Transform, Array]:
    check_image(img, by=type(by).__name__)
    transforms: list[Transform] = []
    for augmentor in augmentors:
        transform, img = augmentor.draw(img)
        transforms.append(transform)
    return TransformList(transforms), img


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
