"""Base classes of augmentors: a random policy, drawn once, becomes a deterministic transform.

``get_transform(img)`` draws; the transform is then applied to the image, to further images, and to labels. An
augmentor takes its random numbers from the pipeline stage that uses it, so that they do not depend on the number of
workers. Outside a pipeline, it creates its own generator when it first draws.

OpenCV starts its own threads for large images. A program that runs many workers may call ``cv2.setNumThreads(0)`` in
each of them; this package never does, because that would affect the rest of the program.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ziggurat.dataflow.imgaug.images import COMPUTABLE, Array, check_image
from ziggurat.dataflow.imgaug.old_style import OldStyleTransform, OldWrappers, defines
from ziggurat.dataflow.imgaug.randomness import lent_rng, own_rng
from ziggurat.dataflow.imgaug.transform import Parameterised, PixelTransform, Transform
from ziggurat.errors import UsageError

__all__ = ["Augmentor", "ImageAugmentor", "PhotometricAugmentor", "PhotometricTransform", "is_ours"]


class ImageAugmentor(OldWrappers, Parameterised):
    """Base of augmentors. A subclass defines ``get_transform(img)`` and draws from ``self.rng`` in it.

    Subclasses of Tensorpack's old style, with ``_get_augment_params``, ``_augment`` and ``_augment_coords``, work as
    they are.
    """

    _rng: np.random.RandomState | None = None
    _made_by: int | None = None

    @property
    def rng(self) -> np.random.RandomState:
        """The generator to draw from: the pipeline's, else the given one, else one of its own."""
        lent = lent_rng()
        if lent is not None:
            return lent
        # A generator of one's own is made anew after a fork, or all workers would draw the same numbers.
        if self._rng is None or (self._made_by is not None and self._made_by != os.getpid()):
            self._rng = own_rng()
            self._made_by = os.getpid()
        return self._rng

    @rng.setter
    def rng(self, rng: np.random.RandomState | None) -> None:
        self._rng = rng
        self._made_by = None

    def set_rng(self, rng: np.random.RandomState) -> Self:
        """Draw from ``rng`` from now on, as do all augmentors inside this one; return self."""
        self.rng = rng
        for member in self.members():
            member.set_rng(rng)
        return self

    def reset_state(self) -> None:
        """Forget the generator: the next draw makes a new one. A pipeline's stage calls it in each process."""
        self.rng = None
        for member in self.members():
            member.reset_state()

    def members(self) -> Sequence[ImageAugmentor]:
        """Return the augmentors inside this one."""
        return ()

    def get_transform(self, img: Array) -> Transform:
        """Draw the transform for an image.

        Args:
            img: (H, W) or (H, W, C); see ``images.py`` for its types.
        """
        if not defines(self, "_augment", ImageAugmentor):
            raise UsageError(
                "An augmentor defines `get_transform(img)`.",
                received=f"class {type(self).__name__} without it",
                advice="Define it; it returns a `Transform`.",
            )
        return OldStyleTransform(self, self._get_augment_params(img))

    def draw(self, img: Array) -> tuple[Transform, Array]:
        """Draw a transform and apply it: the transform for further images and labels, and the transformed image.

        Raises:
            ImageError: where ``img`` is not an image.
        """
        check_image(img, by=type(self).__name__)
        transform = self.get_transform(img)
        return transform, transform.apply_image(img)

    def augment(self, img: Array) -> Array:
        """Return ``img`` transformed at random; ``img`` itself is not changed."""
        return self.draw(img)[1]

    def _rand_range(self, low: float = 1.0, high: float | None = None, size: Any = None) -> Any:
        """Draw uniformly from [low, high), or from [0, low) where ``high`` is None: a Python float, or an array."""
        if high is None:
            low, high = 0.0, low
        drawn = self.rng.uniform(low, high, size)
        return float(drawn) if size is None else drawn

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._made_by is not None:  # a copy in another process must not draw the same numbers
            state.pop("_rng", None)
            state.pop("_made_by", None)
        return state


Augmentor = ImageAugmentor


class PhotometricAugmentor(ImageAugmentor):
    """Base of augmentors that change pixel values and move nothing.

    A subclass defines ``_augment(img, params)``, and ``_get_augment_params(img)`` where it is random.
    """

    types: ClassVar[Sequence[str]] = COMPUTABLE
    """Types of images that it takes."""

    def get_transform(self, img: Array) -> Transform:
        check_image(img, self.types, by=type(self).__name__)
        return PhotometricTransform(self, self._get_augment_params(img))


class PhotometricTransform(PixelTransform):
    """What a ``PhotometricAugmentor`` drew.

    Args:
        augmentor: it does the work.
        params: what it drew.
    """

    def __init__(self, augmentor: PhotometricAugmentor, params: Any) -> None:
        self.augmentor = augmentor
        self.params = params

    def apply_image(self, img: Array) -> Array:
        augmentor = self.augmentor
        check_image(img, augmentor.types, by=type(augmentor).__name__)
        return augmentor._augment(img if is_ours(augmentor) else img.copy(), self.params)


def is_ours(thing: object) -> bool:
    """Return whether the class of ``thing`` is this package's own: such a one never writes into an image."""
    return type(thing).__module__.startswith(__name__.rpartition(".")[0])
