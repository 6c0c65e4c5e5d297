"""Sources of random numbers for augmentors: a pipeline's stream, a given generator, or their own."""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import statistics
import threading
from typing import Any, Self

import numpy as np

from ziggurat.dataflow.imgaug.images import Array
from ziggurat.dataflow.random import RandomStream, fresh_seed

__all__ = ["draw_seed", "drawing_from", "lent_rng", "noise_bits", "normal_noise", "own_rng"]

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
    words = np.random.SFC64(seed).random_raw(-(-size // per_word))
    return words.astype("<u8", copy=False).view(dtype)[:size].reshape(shape)


def normal_noise(seed: int, shape: tuple[int, ...]) -> Array:
    """Return normal numbers, ``float32``, the same ones for a seed in every version of NumPy.

    Each is one of 65,536 equally likely quantiles, up to 4.2 deviations: a quarter of the time of exact ones.
    """
    return np.take(_quantiles(), noise_bits(seed, shape, np.uint16), mode="clip")


@functools.cache
def _quantiles() -> Array:
    normal = statistics.NormalDist()
    return np.array([normal.inv_cdf((k + 0.5) / 65536) for k in range(65536)], dtype=np.float32)
