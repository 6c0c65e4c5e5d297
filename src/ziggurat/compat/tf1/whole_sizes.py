"""Sizes that are whole numbers but floats, as ``84 / 2`` is in Python 3: TensorFlow 1 took them as integers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["names_with_whole_sizes", "whole_dimensions"]

_FUNCTIONS: Final = {
    **dict.fromkeys(("random_normal", "random_uniform", "truncated_normal"), (0, "shape")),
    "reshape": (1, "shape"),
    "tile": (1, "multiples"),
    "broadcast_to": (1, "shape"),
}
"""Name in ``tf`` → place and name of the argument with sizes."""

_IMAGE_FUNCTIONS: Final = (
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_images",
    "resize_nearest_neighbor",
)


def names_with_whole_sizes(base: Any) -> dict[str, Any]:
    """Return name → value of the functions of ``tf`` and ``tf.image`` that take such sizes.

    Args:
        base: ``tf`` as a script sees it.
    """
    names = {name: _taking_floats(getattr(base, name), *place) for name, place in _FUNCTIONS.items()}
    images = {name: _taking_floats(getattr(base.image, name), 1, "size") for name in _IMAGE_FUNCTIONS}
    image: ModuleType = StandInModule("tf.image", base.image, names=images)
    return {**names, "image": image}


@contextmanager
def whole_dimensions() -> Iterator[None]:
    """Let shapes, such as those of variables and placeholders, have floats that are whole numbers."""
    dimension: Any = tf.Dimension
    made = dimension.__init__

    def from_float(self: Any, value: Any) -> None:
        made(self, _whole(value))

    dimension.__init__ = from_float
    try:
        yield
    finally:
        dimension.__init__ = made


def _taking_floats(function: Callable[..., Any], place: int, name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def taking(*arguments: Any, **options: Any) -> Any:
        if len(arguments) > place:
            arguments = (*arguments[:place], _whole(arguments[place]), *arguments[place + 1 :])
        if name in options:
            options[name] = _whole(options[name])
        return function(*arguments, **options)

    return taking


def _whole(value: Any) -> Any:
    """Return a size, or a list of sizes, with integers in the place of floats that are whole numbers."""
    if isinstance(value, list | tuple):
        return [_whole(each) for each in value]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.array_equal(value, np.rint(value)):
        return value.astype(np.int64)
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return int(value) if is_whole else value
