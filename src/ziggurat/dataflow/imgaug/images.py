"""Rules for pixel arrays: supported image types, OpenCV calls on them, and rounding of results.

An image is ``(H, W)``, ``(H, W, 1)``, ``(H, W, 3)`` in RGB order, or has any other number of channels. It is
``uint8`` or ``uint16``, or ``float32`` or ``float64``. Augmentors keep type and number of axes unless they say
otherwise. Those that compute with pixel values take ``uint8`` (white is 255) and floating point (white is 255 too,
unless the augmentor is given another ``white_level``, such as 1.0).

This package has a single pixel convention: pixel number ``i`` covers the interval ``[i, i + 1)``, its center is at
``i + 0.5``, and an image of width ``w`` extends from 0 to ``w``. So a flip moves ``x`` to ``w - x``, and the box of
the whole image is ``(0, 0, w, h)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ziggurat.errors import DataError

__all__ = [
    "COMPUTABLE",
    "IMAGE_TYPES",
    "Array",
    "ImageError",
    "carried",
    "channels_of",
    "check_image",
    "check_size",
    "color_of",
    "fill_level",
    "in_fours",
    "like",
    "move",
    "saturate",
]

Array = np.ndarray[Any, Any]

IMAGE_TYPES = ("uint8", "uint16", "float32", "float64")
"""Types of images; geometric augmentors take all of them."""

COMPUTABLE = ("uint8", "float32", "float64")
"""Types of images that augmentors which change pixel values take."""

_NAMES = {np.dtype(name): name for name in IMAGE_TYPES}  # a type's own `name` is slow
_CARRIERS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.float64}


class ImageError(DataError, ValueError):
    """An image is not of the type or shape that an augmentor needs."""

    code = "image"


def check_image(image: Any, types: Sequence[str] = IMAGE_TYPES, *, by: str = "An augmentor") -> None:
    """Check that ``image`` is one.

    Raises:
        ImageError: where it is no array, has not two or three axes, no pixels, or a type that is not in ``types``.
    """
    if not isinstance(image, np.ndarray) or image.ndim not in (2, 3) or image.size == 0:
        shape = f"an array of shape {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise ImageError(
            f"{by} needs an image: an array (H, W) or (H, W, C) with at least one pixel.",
            received=shape,
            advice="Check the component's index, and that the image was decoded.",
        )
    if _NAMES.get(image.dtype) not in types:
        raise ImageError(
            f"{by} takes images of type {', '.join(types)}.",
            received=image.dtype,
            advice="Convert the image first, for instance with `ToFloat32()` or `image.astype('uint8')`.",
        )


def check_size(array: Array, height: int, width: int, transform: object) -> None:
    """Check that ``array`` is as large as the image that ``transform`` was drawn for.

    Raises:
        ImageError: where it is not.
    """
    if array.shape[:2] != (height, width):
        raise ImageError(
            f"An array is {array.shape[0]} x {array.shape[1]} (height x width), and the "
            f"{type(transform).__name__} was drawn for {height} x {width}.",
            advice="Give all images and masks of a datapoint the same size.",
        )


def channels_of(image: Array) -> int:
    """Return the number of channels: 1 for ``(H, W)``."""
    return 1 if image.ndim == 2 else image.shape[2]


def like(result: Array, image: Array) -> Array:
    """Return what OpenCV gave with the axis for a single channel back, where ``image`` has one."""
    return result[:, :, None] if image.ndim == 3 and result.ndim == 2 else result


def saturate(values: Array, dtype: Any) -> Array:
    """Return floating-point ``values`` rounded and clipped to an integer ``dtype``; a floating one is only cast to."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return values.astype(kind, copy=False)
    limits = np.iinfo(kind)
    return np.clip(np.rint(values), limits.min, limits.max).astype(kind)


def fill_level(image: Array, white_level: float) -> float:
    """Return the value of white in ``image``: 255 for bytes, else what the augmentor was told."""
    return 255.0 if image.dtype == np.uint8 else float(white_level)


def color_of(value: float | Sequence[float], channels: int) -> tuple[float, ...]:
    """Return one value a channel; a single number means all channels.

    Raises:
        ImageError: where there are as many values as neither one nor ``channels``.
    """
    values = tuple(float(each) for each in np.ravel(value))
    if len(values) == 1:
        return values * channels
    if len(values) != channels:
        raise ImageError(
            "A color is one number, or one for each channel.",
            received=f"{len(values)} numbers for an image of {channels} channels",
            advice="Give one number, or convert the image first.",
        )
    return values


def in_fours(image: Array, function: Callable[[Array, slice], Array]) -> Array:
    """Return ``function(image, channels)``, called for at most four channels at a time: OpenCV's limit for borders.

    Args:
        image: (H, W) or (H, W, C).
        function: takes a part of the image and the slice of channels that it is.
    """
    channels = channels_of(image)
    if channels <= 4:
        return like(function(image, slice(0, channels)), image)
    slices = [slice(start, min(start + 4, channels)) for start in range(0, channels, 4)]
    parts = [function(np.ascontiguousarray(image[:, :, part]), part) for part in slices]
    return np.concatenate([part[:, :, None] if part.ndim == 2 else part for part in parts], axis=2)


def move(array: Array, function: Callable[[Array], Array]) -> Array:
    """Return ``function(array)`` for a function of OpenCV which moves values without mixing them.

    The values travel in a type of the same width that OpenCV knows, so that class ids of any type arrive unchanged.

    Raises:
        ImageError: where values are wider than eight bytes.
    """
    carrier = _CARRIERS.get(array.dtype.itemsize)
    if carrier is None or array.dtype.hasobject:
        raise ImageError(
            "Pixels are numbers of one, two, four or eight bytes.",
            received=str(array.dtype),
            advice="Convert the array first.",
        )
    carried_array = array if array.dtype == carrier else array.view(carrier)
    result = in_fours(carried_array, lambda part, _channels: function(part))
    return result if result.dtype == array.dtype else result.view(array.dtype)


def carried(value: float, dtype: Any) -> float:
    """Return a value of type ``dtype`` as ``move`` carries it: what OpenCV must be given as a border of class ids."""
    return float(np.array([value], dtype=dtype).view(_CARRIERS[np.dtype(dtype).itemsize])[0])
