"""Synthetic data for benchmarks of a pipeline or a network, without any input files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.base import DataFlow
from ziggurat.errors import UsageError

__all__ = ["FakeData"]


class FakeData(DataFlow):
    """Arrays of given shapes with uniform random values in ``[low, high)``.

    Args:
        shapes: shape of each component; ``[]`` is a scalar.
        size: number of datapoints in a pass.
        random: new values for every datapoint; otherwise every datapoint is a copy of the first.
        dtype: of all components, or a list with one for each.
        domain: ``(low, high)`` of all components, or a list with one for each. Integers stay below ``high``.
    """

    def __init__(
        self,
        shapes: Sequence[Sequence[int]],
        size: int = 1000,
        random: bool = True,
        dtype: Any = "float32",
        domain: Any = (0, 1),
    ) -> None:
        self.shapes = [tuple(shape) for shape in shapes]
        self._size = int(size)
        self.random = bool(random)
        self.dtypes = [np.dtype(one) for one in self._for_each(dtype, isinstance(dtype, (list, tuple)), "dtype")]
        self.domains = self._for_each(domain, isinstance(domain[0], (list, tuple)), "domain")

    def __len__(self) -> int:
        return self._size

    def children(self) -> Sequence[DataFlow]:
        """Return nothing: made-up data reads no other flow."""
        return ()

    def iterate(self) -> Iterator[list[Any]]:
        """Yield lists of arrays; what datapoint ``i`` holds depends on the seed, the pass and ``i`` only."""
        stream = self._ziggurat_stream()
        first = [] if self.random else self._draw(stream.seek(0))
        for index in range(self._ziggurat_resume_index, self._size):
            if self.random:
                yield self._draw(stream.seek(self._ziggurat_pass_index, index))
            else:
                yield [array.copy() for array in first]

    def _draw(self, rng: np.random.RandomState) -> list[np.ndarray]:
        columns = zip(self.shapes, self.dtypes, self.domains, strict=True)
        return [_uniform(rng, shape, dtype, low, high) for shape, dtype, (low, high) in columns]

    def _for_each(self, value: Any, is_list: bool, name: str) -> list[Any]:
        """Return one value a component."""
        values = list(value) if is_list else [value] * len(self.shapes)
        if len(values) != len(self.shapes):
            raise UsageError(
                f"`FakeData` takes one `{name}`, or one for each shape.",
                received=f"{len(values)} for {len(self.shapes)} shapes",
            )
        return values


def _uniform(rng: np.random.RandomState, shape: tuple[int, ...], dtype: np.dtype, low: Any, high: Any) -> np.ndarray:
    """Return uniform values in ``[low, high)``; an empty interval gives ``low``."""
    if dtype.kind in "iu":
        top = max(int(np.ceil(high)), int(low) + 1)
        return np.asarray(rng.randint(int(low), top, size=shape, dtype=dtype.type))
    values = np.asarray(rng.random_sample(shape)) * (high - low) + low
    return np.asarray(values, dtype=dtype)
