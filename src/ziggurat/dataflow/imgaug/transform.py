"""Deterministic transforms, drawn once and applicable to an image and all its labels.

A transform is never random: applied again, it gives the same result. It never writes into its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.imgaug.images import Array
from ziggurat.dataflow.imgaug.labels import as_boxes, as_keypoints, as_points, corners_of, hull_of
from ziggurat.errors import UsageError

__all__ = [
    "NoOpTransform",
    "Parameterised",
    "PixelTransform",
    "Transform",
    "TransformFactory",
    "TransformList",
    "UnsupportedLabelError",
]


class UnsupportedLabelError(UsageError, NotImplementedError):
    """A transform does not say what it does to a kind of label."""

    code = "unsupported_label"

    def __init__(self, transform: object, method: str) -> None:
        super().__init__(
            f"`{method}` needs a transform that defines it; {transform!r} does not.",
            advice=f"Define `{method}` in its class, or leave this augmentor out where such labels are moved.",
        )


class Parameterised:
    """Something made from arguments, which it keeps as attributes and shows in its ``repr``."""

    def _init(self, params: Mapping[str, Any] | None = None) -> None:
        """Keep arguments as attributes: ``self._init(locals())`` in an ``__init__``."""
        for name, value in (params or {}).items():
            if name != "self" and not name.startswith("__"):
                setattr(self, name, value)

    _set_attributes = _init

    def __repr__(self) -> str:
        shown = [f"{name}={_short(value)}" for name, value in self.__dict__.items() if not name.startswith("_")]
        return f"{type(self).__name__}({', '.join(shown)})"


class Transform(Parameterised):
    """Base of transforms. A subclass defines ``apply_image`` and ``apply_coords``, and ``apply_mask`` where masks are
    used."""

    @property
    def mirrors(self) -> bool:
        """True where left and right change places, as in an image seen in a mirror."""
        return False

    def apply_image(self, img: Array) -> Array:
        """Return the transformed image, (H, W) or (H, W, C)."""
        raise UnsupportedLabelError(self, "apply_image")

    def apply_coords(self, coords: Array) -> Array:
        """Return where points (N, 2) of (x, y) go; they may leave the image."""
        raise UnsupportedLabelError(self, "apply_coords")

    def apply_boxes(self, boxes: Array) -> Array:
        """Return the upright hulls of moved boxes (N, 4) of (x1, y1, x2, y2), not clipped (see ``keep_boxes``)."""
        return hull_of(self.apply_coords(corners_of(as_boxes(boxes))))

    def apply_polygons(self, polygons: Sequence[Array]) -> list[Array]:
        """Return moved polygons, each (M, 2), not clipped (see ``clip_polygon``)."""
        return [self.apply_coords(polygon) for polygon in polygons]

    def apply_keypoints(self, keypoints: Array, mirror_pairs: Sequence[tuple[int, int]] = ()) -> Array:
        """Return moved keypoints (N, 3) of (x, y, visibility); those of visibility 0 have no place and stay as they
        are.

        Args:
            keypoints: those of one figure, or (figures, N, 3).
            mirror_pairs: numbers of keypoints that change names in a mirror, such as (left eye, right eye).
        """
        if np.ndim(keypoints) == 3 and len(keypoints):
            return np.stack([self.apply_keypoints(figure, mirror_pairs) for figure in keypoints])
        points = as_keypoints(keypoints).copy()
        labelled = points[:, 2] > 0
        points[labelled, :2] = self.apply_coords(points[labelled, :2])
        if self.mirrors:
            order = np.arange(len(points))
            for one, other in mirror_pairs:
                order[[one, other]] = order[[other, one]]
            points = points[order]
        return points

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        """Return a moved mask of class ids, (H, W) or (H, W, C): each pixel's id is that of the nearest pixel.

        Args:
            mask: of any type of whole numbers, or bool.
            fill: the id of places that were outside the image.
        """
        raise UnsupportedLabelError(self, "apply_mask")

    def __getattr__(self, name: str) -> Any:
        # Other kinds of labels: the error comes when the method is called, as users of Tensorpack expect.
        if not name.startswith("apply_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return _Missing(self, name)


class PixelTransform(Transform):
    """Base of transforms that change pixel values only: every label stays where it is."""

    def apply_coords(self, coords: Array) -> Array:
        return as_points(coords)

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        return mask


class NoOpTransform(PixelTransform):
    """Changes nothing."""

    def apply_image(self, img: Array) -> Array:
        return img


class _Missing:
    """A method that a transform does not have."""

    def __init__(self, transform: Transform, name: str) -> None:
        self._transform = transform
        self._name = name

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise UnsupportedLabelError(self._transform, self._name)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{value.shape}" if value.size > 6 else str(value.tolist())
    return repr(value)


class TransformList(Transform):
    """Applies transforms one after another.

    Args:
        tfms: the transforms, first to last.
    """

    def __init__(self, tfms: Iterable[Transform]) -> None:
        self.tfms: list[Transform] = []
        for transform in tfms:
            self.tfms.extend(transform.tfms if isinstance(transform, TransformList) else [transform])

    @property
    def mirrors(self) -> bool:
        """True where an odd number of them mirrors."""
        return sum(transform.mirrors for transform in self.tfms) % 2 == 1

    def apply_image(self, img: Array) -> Array:
        for transform in self.tfms:
            img = transform.apply_image(img)
        return img

    def apply_coords(self, coords: Array) -> Array:
        coords = as_points(coords)
        for transform in self.tfms:
            coords = transform.apply_coords(coords)
        return coords

    def apply_boxes(self, boxes: Array) -> Array:
        if all(type(transform).apply_boxes is Transform.apply_boxes for transform in self.tfms):
            return super().apply_boxes(boxes)  # one hull at the end is tighter than a hull after each step
        for transform in self.tfms:
            boxes = transform.apply_boxes(boxes)
        return boxes

    def apply_polygons(self, polygons: Sequence[Array]) -> list[Array]:
        moved = list(polygons)
        for transform in self.tfms:
            moved = transform.apply_polygons(moved)
        return moved

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        for transform in self.tfms:
            mask = transform.apply_mask(mask, fill)
        return mask

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("apply_"):
            return super().__getattr__(name)
        return _InTurn(self.tfms, name)


class TransformFactory(Transform):
    """A transform made of functions.

    Args:
        name: what its ``repr`` shows.
        functions: ``apply_image=...``, ``apply_coords=...``, ``apply_mask=...`` and so on; each takes one array.
    """

    def __init__(self, name: str | None = None, **functions: Callable[..., Any]) -> None:
        for method in functions:
            if not method.startswith("apply_"):
                raise UsageError(
                    "The functions of a TransformFactory are named `apply_...`.",
                    received=f"`{method}`",
                    advice="Name it for what it is applied to, such as `apply_image`.",
                )
        self._name = name or type(self).__name__
        self._functions = functions

    def __repr__(self) -> str:
        return f"{self._name}({', '.join(self._functions)})"

    def apply_image(self, img: Array) -> Array:
        return self._function("apply_image")(img)

    def apply_coords(self, coords: Array) -> Array:
        return self._function("apply_coords")(as_points(coords))

    def apply_boxes(self, boxes: Array) -> Array:
        if "apply_boxes" not in self._functions:
            return super().apply_boxes(boxes)
        return self._functions["apply_boxes"](as_boxes(boxes))

    def apply_polygons(self, polygons: Sequence[Array]) -> list[Array]:
        if "apply_polygons" not in self._functions:
            return super().apply_polygons(polygons)
        return self._functions["apply_polygons"](polygons)

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        return self._function("apply_mask")(mask)

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("_functions", {})
        return functions[name] if name in functions else super().__getattr__(name)

    def _function(self, name: str) -> Callable[..., Any]:
        if name not in self._functions:
            raise UnsupportedLabelError(self, name)
        return self._functions[name]


class _InTurn:
    """A method of another kind of label, for each transform of a list in turn."""

    def __init__(self, tfms: Sequence[Transform], name: str) -> None:
        self._tfms = tfms
        self._name = name

    def __call__(self, label: Any) -> Any:
        for transform in self._tfms:
            label = getattr(transform, self._name)(label)
        return label
