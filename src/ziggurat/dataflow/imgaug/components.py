"""Map function that augments the images and labels of one datapoint by one shared transform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, get_type_hints

import numpy as np

from ziggurat.dataflow.imgaug.base import ImageAugmentor, is_ours
from ziggurat.dataflow.imgaug.compose import AugmentorList, MapImage
from ziggurat.dataflow.imgaug.images import Array, check_image
from ziggurat.dataflow.imgaug.randomness import drawing_from
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.dataflow.stages.components import component_of
from ziggurat.errors import UnknownNameError, UsageError

__all__ = ["Augmentors", "ComponentAugmentation", "Index", "Indexes", "LabelIndexes"]

Index = int | str
Indexes = Index | Sequence[Index]
Augmentors = ImageAugmentor | Sequence[ImageAugmentor]


class LabelIndexes(TypedDict, total=False):
    """Where the labels that move with an image are in a datapoint: one index (a key of a dict), or several.

    Args:
        boxes_index: boxes (N, 4) of (x1, y1, x2, y2); they become upright hulls and are not clipped (see
            ``keep_boxes``).
        polygons_index: lists of polygons (M, 2).
        keypoints_index: keypoints (N, 3) of (x, y, visibility), or (figures, N, 3).
        mask_index: masks of class ids (H, W) or (H, W, C): the nearest pixel, so that no new id appears.
        mask_fill: the id of places that were outside the image.
        mirror_pairs: numbers of keypoints that change names in a mirror.
    """

    boxes_index: Indexes
    polygons_index: Indexes
    keypoints_index: Indexes
    mask_index: Indexes
    mask_fill: int
    mirror_pairs: Sequence[tuple[int, int]]


class ComponentAugmentation:
    """A map function: augments images of a datapoint, and moves its labels, by one transform.

    Args:
        augmentors: an augmentor, or a list.
        images: indices of the images; the transform is drawn for the first one.
        coords: indices of points (N, 2).
        copy: what is returned shares no memory with the datapoint that came in.
        labels: see ``LabelIndexes``.
    """

    def __init__(
        self,
        augmentors: Augmentors,
        images: Indexes = 0,
        coords: Indexes = (),
        *,
        copy: bool = True,
        labels: LabelIndexes | None = None,
    ) -> None:
        options: LabelIndexes = labels or {}
        _check_names(options)
        self.augmentors = augmentors if isinstance(augmentors, ImageAugmentor) else AugmentorList(augmentors)
        self.images = _several(images)
        self.moves: list[tuple[Index, Callable[[Transform, Any], Any]]] = [
            *((index, _coords) for index in _several(coords)),
            *((index, _boxes) for index in _several(options.get("boxes_index", ()))),
            *((index, _polygons) for index in _several(options.get("polygons_index", ()))),
        ]
        self.keypoints = _several(options.get("keypoints_index", ()))
        self.masks = _several(options.get("mask_index", ()))
        self.mask_fill = options.get("mask_fill", 0)
        self.mirror_pairs = tuple(options.get("mirror_pairs", ()))
        self.copy = copy
        self._copies_first = copy and _may_write(self.augmentors)
        if not self.images:
            raise UsageError(
                "At least one component is an image.", received="no index", advice="Give `index`, such as 0."
            )

    def __call__(self, dp: Any, rng: np.random.RandomState | None = None) -> Any:
        """Return the augmented datapoint: a dict for a dict, else a list.

        Args:
            dp: the datapoint; it is not changed.
            rng: the generator to draw from; None: each augmentor's own.
        """
        point: Any = dict(dp) if isinstance(dp, dict) else list(dp)
        first, *others = self.images
        with drawing_from(rng):
            transform, image = self.augmentors.draw(self._taken(component_of(point, first)))
        point[first] = self._given(image, point[first])
        for index in others:
            image = component_of(point, index)
            check_image(image)
            point[index] = self._given(transform.apply_image(self._taken(image)), image)
        for index, apply in self.moves:
            point[index] = self._given(apply(transform, component_of(point, index)), point[index])
        for index in self.keypoints:
            point[index] = transform.apply_keypoints(component_of(point, index), self.mirror_pairs)
        for index in self.masks:
            mask = component_of(point, index)
            point[index] = self._given(transform.apply_mask(mask, self.mask_fill), mask)
        return point

    def _taken(self, image: Any) -> Any:
        """Copy an image that a user's augmentor might write into."""
        return image.copy() if self._copies_first and isinstance(image, np.ndarray) else image

    def _given(self, result: Any, source: Any) -> Any:
        """Copy a result that still shares memory with what came in: a view of it, or itself."""
        if isinstance(result, list):
            return [self._given(each, original) for each, original in zip(result, source)]
        if self.copy and isinstance(source, np.ndarray) and np.may_share_memory(result, source):
            return result.copy()
        return result


def _coords(transform: Transform, coords: Any) -> Array:
    return transform.apply_coords(coords)


def _boxes(transform: Transform, boxes: Any) -> Array:
    return transform.apply_boxes(boxes)


def _polygons(transform: Transform, polygons: Any) -> list[Array]:
    return transform.apply_polygons(polygons)


def _several(indexes: Indexes) -> tuple[Index, ...]:
    return (indexes,) if isinstance(indexes, int | str) else tuple(indexes)


def _check_names(options: LabelIndexes) -> None:
    known = get_type_hints(LabelIndexes)
    for name in options:
        if name not in known:
            raise UnknownNameError("kind of label", name, known)


def _may_write(augmentor: ImageAugmentor) -> bool:
    """Return whether users' code gets the image: it may write into it, as Tensorpack allowed."""
    users = not is_ours(augmentor) or isinstance(augmentor, MapImage)
    return users or any(_may_write(member) for member in augmentor.members())
