"""Support of programs written for Tensorpack: augmentors of its first style, and its old method names."""

from __future__ import annotations

import warnings
from typing import Any

from ziggurat.dataflow.imgaug.images import Array
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.transform import Transform, UnsupportedLabelError

__all__ = ["OldStyleTransform", "OldWrappers", "defines"]


class OldWrappers:
    """The methods of Tensorpack's augmentors before there were transforms."""

    def get_transform(self, img: Array) -> Transform:
        """Draw the transform for an image."""
        raise UnsupportedLabelError(self, "get_transform")

    def augment_return_params(self, img: Array) -> tuple[Array, Transform]:
        """Deprecated: return the transformed image and the transform. Use ``draw(img)``."""
        _deprecated("augment_return_params(img)", "draw(img)")
        transform = self.get_transform(img)
        return transform.apply_image(img), transform

    def augment_with_params(self, img: Array, params: Transform) -> Array:
        """Deprecated: apply a transform to an image. Use ``transform.apply_image(img)``."""
        _deprecated("augment_with_params(img, params)", "transform.apply_image(img)")
        return params.apply_image(img)

    def augment_coords(self, coords: Array, params: Transform) -> Array:
        """Deprecated: apply a transform to points. Use ``transform.apply_coords(coords)``."""
        _deprecated("augment_coords(coords, params)", "transform.apply_coords(coords)")
        return params.apply_coords(coords)

    def _get_augment_params(self, img: Array) -> Any:
        """Draw what ``_augment`` needs; None where there is nothing to draw."""
        return None

    def _augment(self, img: Array, params: Any) -> Array:
        """Return the transformed image."""
        raise UnsupportedLabelError(self, "_augment")

    def _augment_coords(self, coords: Array, params: Any) -> Array:
        """Return the moved points; the same ones where a subclass does not say, as in Tensorpack."""
        return coords


class OldStyleTransform(Transform):
    """What an augmentor of the old style drew: its methods, with the parameters.

    Args:
        augmentor: it does the work.
        params: what it drew.
    """

    def __init__(self, augmentor: OldWrappers, params: Any) -> None:
        self.augmentor = augmentor
        self.params = params

    def apply_image(self, img: Array) -> Array:
        return self.augmentor._augment(img.copy(), self.params)  # many of them write into their input

    def apply_coords(self, coords: Array) -> Array:
        return self.augmentor._augment_coords(as_points(coords).copy(), self.params)


def defines(thing: object, method: str, base: type) -> bool:
    """Return whether the class of ``thing`` has a method of its own beside that of ``base``."""
    return getattr(type(thing), method) is not getattr(base, method)


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"`{old}` is deprecated. Use `{new}`.", DeprecationWarning, stacklevel=3)
