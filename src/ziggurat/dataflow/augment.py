"""Pipeline stages that augment images, and the same operations as functions for a parallel map.

The random numbers for a datapoint depend only on the seed, the stage, the pass and the datapoint's number. The result
is the same whether a stage augments or any number of workers of a parallel map do::

    ds = AugmentImageComponents(ds, policy, index=(0,), boxes_index=(1,))
    ds = MultiProcessMapData(ds, 4, augment_components(policy, index=(0,), boxes_index=(1,)))
"""

from __future__ import annotations

from typing import Unpack

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.imgaug.batch import CutMix, MixUp
from ziggurat.dataflow.imgaug.components import Augmentors, ComponentAugmentation, Index, Indexes, LabelIndexes
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.stages.mapping import MapData

__all__ = [
    "AugmentImageComponent",
    "AugmentImageComponents",
    "AugmentImageCoordinates",
    "ComponentAugmentation",
    "CutMix",
    "LabelIndexes",
    "MixUp",
    "augment_component",
    "augment_components",
]


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
