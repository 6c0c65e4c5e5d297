"""Sizes of tensors that are known when the graph is built, beside those of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["StaticDynamicAxis", "StaticDynamicShape"]


class StaticDynamicAxis:
    """One size.

    Args:
        static: as a number; None if it is not known.
        dynamic: as a tensor.
    """

    def __init__(self, static: int | None, dynamic: Any) -> None:
        self.static = static
        self.dynamic = dynamic

    def apply(self, f: Callable[[Any], Any]) -> StaticDynamicAxis:
        """Return what a function makes of it."""
        if self.static is None:
            return StaticDynamicAxis(None, f(self.dynamic))
        known = f(self.static)
        return StaticDynamicAxis(known, known)

    def __str__(self) -> str:
        return f"S={self.static}, D={self.dynamic}"


class StaticDynamicShape:
    """All sizes of a tensor; ``shape[axis]`` is one.

    Args:
        tensor: tensor with the shape.
    """

    def __init__(self, tensor: Any) -> None:
        self._axes = [
            StaticDynamicAxis(size, tf.shape(tensor)[axis] if size is None else size)
            for axis, size in enumerate(tensor.shape.as_list())
        ]

    @property
    def ndims(self) -> int:
        """Number of axes."""
        return len(self._axes)

    def __getitem__(self, axis: int) -> StaticDynamicAxis:
        return self._axes[axis]

    def apply(self, axis: int, f: Callable[[Any], Any]) -> None:
        """Let a function change a size."""
        self._axes[axis] = self._axes[axis].apply(f)

    def get_static(self) -> list[int | None]:
        """Return the known sizes."""
        return [each.static for each in self._axes]

    @property
    def static(self) -> list[int | None]:
        """The known sizes."""
        return self.get_static()

    def get_dynamic(self, axis: int | None = None) -> Any:
        """Return one size as a tensor or number, or all of them."""
        return self.dynamic if axis is None else self._axes[axis].dynamic

    @property
    def dynamic(self) -> Any:
        """All sizes, as a tensor."""
        return tf.stack([each.dynamic for each in self._axes])
