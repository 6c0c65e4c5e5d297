"""Scaling of the targets of a regression: mean 0 and deviation 1 over the training split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ziggurat.errors import DataError

__all__ = ["TargetScaling"]


@dataclass(frozen=True, kw_only=True)
class TargetScaling:
    """What a network learns in place of the values themselves: ``(value - mean) / deviation``.

    Args:
        mean: of each of the K values that a sample has, over the training split.
        deviation: of each of them; 1 where it never varies.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def fit(cls, values: np.ndarray) -> Self:
        """Return the scaling for the targets of the training split.

        Args:
            values: (N,) or (N, K).

        Raises:
            DataError: where there is none, or one is not finite.
        """
        found = np.asarray(values, np.float64)
        found = found[:, None] if found.ndim == 1 else found
        if not found.size or not np.isfinite(found).all():
            raise DataError(
                "The targets of a regression are finite numbers, of one sample at least.",
                received=f"{len(found)} samples" if not found.size else "NaN or an infinite number",
                advice="Check the target column of the dataset.",
            )
        deviation = np.where(found.min(axis=0) < found.max(axis=0), found.std(axis=0), 1.0)
        deviation = np.where(deviation > 0, deviation, 1.0)
        return cls(mean=tuple(found.mean(axis=0).tolist()), deviation=tuple(deviation.tolist()))

    def scale(self, values: np.ndarray) -> np.ndarray:
        """Return targets as the network learns them.

        Args:
            values: (…, K); of one value per sample also (N,).

        Returns:
            The same shape, float32.

        Raises:
            DataError: where the samples have another number of values.
        """
        found = self._checked(values)
        return ((found - np.array(self.mean)) / np.array(self.deviation)).astype(np.float32)

    def unscale(self, values: np.ndarray) -> np.ndarray:
        """Return what a network gave as values of the target: the inverse of ``scale``, in float64."""
        return self._checked(values) * np.array(self.deviation) + np.array(self.mean)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values; floats have all their digits."""
        return {"mean": list(self.mean), "deviation": list(self.deviation)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the scaling that ``as_json`` gave.

        Raises:
            DataError: where the content is none.
        """
        try:
            found = cls(mean=tuple(map(float, content["mean"])), deviation=tuple(map(float, content["deviation"])))
        except (KeyError, TypeError, ValueError):
            found = None
        if found is None or not 0 < len(found.mean) == len(found.deviation) or min(found.deviation) <= 0:
            raise DataError("The scaling of a target is read as it was written.", received=str(content)[:80])
        return found

    def _checked(self, values: np.ndarray) -> np.ndarray:
        found = np.asarray(values, np.float64)
        count = len(self.mean)
        if count > 1 and (not found.ndim or found.shape[-1] != count):
            raise DataError(f"A sample has {count} values.", received=f"an array of shape {found.shape}")
        return found
