"""Pipeline stages that augment images, and the same operations as functions for a parallel map.

The random numbers for a datapoint depend only on the seed, the stage, the pass and the datapoint's number. The result
is the same whether a stage augments or any number of workers of a parallel map do::

    ds = AugmentImageComponents(ds, policy, index=(0,), boxes_index=(1,))
    ds = MultiProcessMapData(ds, 4, augment_components(policy, index=(0,), boxes_index=(1,)))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack, get_type_hints

import numpy as np

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.imgaug.base import ImageAugmentor, drawing_from, is_ours
from ziggurat.dataflow.imgaug.compose import AugmentorList, MapImage
from ziggurat.dataflow.imgaug.images import check_image
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.stages.mapping import MapData, component_of
from ziggurat.errors import UnknownNameError, UsageError

__all__ = [
    "AugmentImageComponent",
    "AugmentImageComponents",
    "AugmentImageCoordinates",
    "ComponentAugmentation",
    "augment_component",
    "augment_components",
]

Index = int | str
Indexes = Index | Sequence[Index]
Augmentors = ImageAugmentor | Sequence[ImageAugmentor]


class AugmentImageComponents(MapData):
    """Augments several images of a datapoint, and moves its labels, by one transform drawn for the first image.

    Args:
        ds: datapoints.
        augmentors: an augmentor, or a list.
        index: indices of the images, all of one size.
        coords_index: indices of points (N, 2) of (x, y).
        copy: what is yielded shares no memory with what came in.
        catch_exceptions: log and drop a datapoint that fails: ``on_error="log"``.
        on_error: ``"raise"``, ``"skip"`` or ``"log"``, or an ``ErrorPolicy``.
        labels: further indices, see ``LabelIndexes``.
    """

    def __init__(
        self,
        ds: DataFlow,
        augmentors: Augmentors,
        index: Indexes = (0, 1),
        coords_index: Indexes = (),
        copy: bool = True,
        catch_exceptions: bool = False,
        *,
        on_error: OnError | ErrorPolicy | None = None,
        **labels: Unpack[LabelIndexes],
    ) -> None:
        self.augment = ComponentAugmentation(augmentors, index, coords_index, copy=copy, labels=labels)
        super().__init__(ds, self.augment, on_error=on_error or ("log" if catch_exceptions else "raise"))

    def prepare(self) -> None:
        """Let the augmentors prepare themselves in this process."""
        self.augment.augmentors.reset_state()


class AugmentImageComponent(AugmentImageComponents):
    """Augments one image of a datapoint.

    Args:
        ds: datapoints.
        augmentors: an augmentor, or a list.
        index: where the image is in a datapoint (a key of a dict).
        copy: what is yielded shares no memory with what came in.
        catch_exceptions: log and drop a datapoint that fails: ``on_error="log"``.
        on_error: ``"raise"``, ``"skip"`` or ``"log"``, or an ``ErrorPolicy``.
    """

    def __init__(
        self,
        ds: DataFlow,
        augmentors: Augmentors,
        index: Index = 0,
        copy: bool = True,
        catch_exceptions: bool = False,
        *,
        on_error: OnError | ErrorPolicy | None = None,
    ) -> None:
        super().__init__(ds, augmentors, (index,), (), copy, catch_exceptions, on_error=on_error)


class AugmentImageCoordinates(AugmentImageComponents):
    """Augments one image of a datapoint and moves points with it.

    Args:
        ds: datapoints.
        augmentors: an augmentor, or a list.
        img_index: where the image is in a datapoint.
        coords_index: where the points (N, 2) of (x, y) are.
        copy: what is yielded shares no memory with what came in.
        catch_exceptions: log and drop a datapoint that fails: ``on_error="log"``.
        on_error: ``"raise"``, ``"skip"`` or ``"log"``, or an ``ErrorPolicy``.
    """

    def __init__(
        self,
        ds: DataFlow,
        augmentors: Augmentors,
        img_index: Index = 0,
        coords_index: Index = 1,
        copy: bool = True,
        catch_exceptions: bool = False,
        *,
        on_error: OnError | ErrorPolicy | None = None,
    ) -> None:
        super().__init__(ds, augmentors, (img_index,), (coords_index,), copy, catch_exceptions, on_error=on_error)


def augment_component(augmentors: Augmentors, index: Index = 0, *, copy: bool = True) -> ComponentAugmentation:
    """Return ``f(dp, rng)`` that augments one image of a datapoint, for ``MapData`` or a parallel map."""
    return ComponentAugmentation(augmentors, (index,), copy=copy)


def augment_components(
    augmentors: Augmentors,
    index: Indexes = (0, 1),
    coords_index: Indexes = (),
    *,
    copy: bool = True,
    **labels: Unpack[LabelIndexes],
) -> ComponentAugmentation:
    """Return ``f(dp, rng)`` that augments images and moves labels, as ``AugmentImageComponents`` does."""
    return ComponentAugmentation(augmentors, index, coords_index, copy=copy, labels=labels)


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
        known = get_type_hints(LabelIndexes)
        for name in options:
            if name not in known:
                raise UnknownNameError("kind of label", name, known)
        self.augmentors = augmentors if isinstance(augmentors, ImageAugmentor) else AugmentorList(augmentors)
        self.images = _several(images)
        self.moves = [
            *((index, "apply_coords") for index in _several(coords)),
            *((index, "apply_boxes") for index in _several(options.get("boxes_index", ()))),
            *((index, "apply_polygons") for index in _several(options.get("polygons_index", ()))),
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
        for index, method in self.moves:
            point[index] = self._given(getattr(transform, method)(component_of(point, index)), point[index])
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


def _several(indexes: Indexes) -> tuple[Index, ...]:
    return (indexes,) if isinstance(indexes, int | str) else tuple(indexes)


def _may_write(augmentor: ImageAugmentor) -> bool:
    """Return whether users' code gets the image: it may write into it, as Tensorpack allowed."""
    users = not is_ours(augmentor) or isinstance(augmentor, MapImage)
    return users or any(_may_write(member) for member in augmentor.members())
