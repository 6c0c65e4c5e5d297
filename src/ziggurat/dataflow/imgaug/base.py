"""Base classes of augmentors, their random numbers, checks of their arguments, and Tensorpack's old names.

An augmentor is a random policy: ``get_transform(img)`` draws, and the deterministic transform is then applied to the
image, to further images, and to labels. An augmentor takes its random numbers from the pipeline stage that uses it, so
that they do not depend on the number of workers. Outside a pipeline, it creates its own generator when it first draws.

OpenCV starts its own threads for large images. A program that runs many workers may call ``cv2.setNumThreads(0)`` in
each of them; this package never does, because that would affect the rest of the program.
"""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import os
import statistics
import threading
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ziggurat.dataflow.imgaug.images import COMPUTABLE, Array, check_image
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.transform import Parameterised, PixelTransform, Transform, UnsupportedLabelError
from ziggurat.dataflow.random import RandomStream, fresh_seed
from ziggurat.errors import UsageError

__all__ = [
    "Augmentor",
    "ImageAugmentor",
    "PhotometricAugmentor",
    "PhotometricTransform",
    "draw_seed",
    "drawing_from",
    "fraction",
    "is_ours",
    "noise_bits",
    "normal_noise",
    "positive",
    "ranged",
    "size_of",
    "span",
]

_lent = threading.local()
_streams = itertools.count()


class drawing_from:  # noqa: N801 - reads as a statement: with drawing_from(rng): ...
    """Let every augmentor that draws inside this block, in this thread, draw from ``rng``.

    So one augmentor can serve several threads at once, each with the numbers of its own datapoint.

    Args:
        rng: the generator; None lets each augmentor use its own.
    """

    def __init__(self, rng: np.random.RandomState | None) -> None:
        self._rng = rng

    def __enter__(self) -> Self:
        self._outer = lent_rng()
        _lent.rng = self._rng
        return self

    def __exit__(self, *_exc: object) -> None:
        _lent.rng = self._outer


def lent_rng() -> np.random.RandomState | None:
    """Return the generator of the innermost ``drawing_from`` block of this thread."""
    return getattr(_lent, "rng", None)


def own_rng() -> np.random.RandomState:
    """Return a new generator, unlike every other one of this program.

    Under ``fix_rng_seed`` it depends on the seed, the name of the process and how many were made before.
    """
    name = multiprocessing.current_process().name
    return RandomStream(fresh_seed(), ("imgaug", name, next(_streams))).rng


def draw_seed(rng: np.random.RandomState) -> int:
    """Draw the seed of a transform that needs many numbers, so that it stays small and deterministic."""
    return int(rng.randint(0, 1 << 32, dtype=np.uint32))


def noise_bits(seed: int, shape: tuple[int, ...], dtype: type[np.unsignedinteger[Any]]) -> Array:
    """Return random whole numbers of all bits, the same ones for a seed in every version of NumPy."""
    size = math.prod(shape)
    per_word = 8 // np.dtype(dtype).itemsize
    # Raw bits of a named generator: the distributions of NumPy may change between versions.
    words = np.random.SFC64(seed).random_raw(-(-size // per_word))
    return words.astype("<u8", copy=False).view(dtype)[:size].reshape(shape)


def normal_noise(seed: int, shape: tuple[int, ...]) -> Array:
    """Return normal numbers, ``float32``, the same ones for a seed in every version of NumPy.

    Each is one of 65,536 equally likely quantiles, up to 4.2 deviations: a quarter of the time of exact ones.
    """
    # Every index is in range; "clip" only saves the check for that.
    return np.take(_quantiles(), noise_bits(seed, shape, np.uint16), mode="clip")


@functools.cache
def _quantiles() -> Array:
    normal = statistics.NormalDist()
    return np.array([normal.inv_cdf((k + 0.5) / 65536) for k in range(65536)], dtype=np.float32)


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


def size_of(shape: int | Sequence[int], name: str) -> tuple[int, int]:
    """Return (height, width) of an argument that is one number for a square, or both."""
    sides = _numbers(shape)
    if len(sides) == 1:
        sides *= 2
    if len(sides) != 2 or not all(side.is_integer() and side >= 1 for side in sides):
        raise UsageError(
            f"`{name}` is a number of pixels, or (height, width), at least 1.",
            received=repr(shape),
            advice="Give whole numbers.",
        )
    return int(sides[0]), int(sides[1])


def ranged(values: Any, name: str, *, least: float | None = None, most: float | None = None) -> tuple[float, float]:
    """Return (low, high) of an argument that is a range."""
    pair = _numbers(values)
    ordered = len(pair) == 2 and pair[0] <= pair[1]
    if not ordered or (least is not None and pair[0] < least) or (most is not None and pair[1] > most):
        limits = f", from {'-∞' if least is None else f'{least:g}'} to {'∞' if most is None else f'{most:g}'}"
        raise UsageError(
            f"`{name}` is {values!r}, not a range (low, "
            f"high){limits if least is not None or most is not None else ''}.",
            advice="Give two numbers, the smaller one first.",
        )
    return pair[0], pair[1]


def span(values: int | Sequence[int], name: str, *, least: int = 0) -> tuple[int, int]:
    """Return (low, high) in whole numbers, both included; a single number is both."""
    pair = _numbers(values)
    low, high = ranged(pair * 2 if len(pair) == 1 else values, name, least=least)
    return int(low), int(high)


def fraction(value: float, name: str) -> float:
    """Return an argument that is a share from 0 to 1."""
    if not 0 <= value <= 1:
        raise UsageError(f"`{name}` is from 0 to 1.", received=value, advice="Give a number such as 0.5.")
    return float(value)


def positive(value: float, name: str, *, zero: bool = True) -> float:
    """Return an argument that is not negative, or above 0."""
    if not (value > 0 or (zero and value == 0)) or value == float("inf"):
        rule = "is not negative" if zero else "is above 0"
        raise UsageError(f"`{name}` {rule}, and finite.", received=value, advice="Give its size without a sign.")
    return float(value)


def _numbers(values: Any) -> list[float]:
    """Return the numbers of an argument; none where it holds something else."""
    try:
        return [float(value) for value in np.ravel(values)]
    except (TypeError, ValueError):
        return []
