"""Transforms composed of other transforms or of plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ziggurat.dataflow.imgaug.images import Array
from ziggurat.dataflow.imgaug.labels import as_boxes, as_points
from ziggurat.dataflow.imgaug.transform import Transform, UnsupportedLabelError
from ziggurat.errors import UsageError

__all__ = ["TransformFactory", "TransformList"]


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
