"""Metrics of regression: RMSE, MAE and R², over all samples, for one value or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.errors import UsageError
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.metric_values import check_same_shape, finite_number

__all__ = ["RegressionMetric"]

_COUNTS: Final = ("count", "unknown", "not_finite")


class RegressionMetric(Metric):
    """Root of the mean squared error, mean absolute error, and R² (the coefficient of determination).

    It reads the output ``output``, (N, k) or (N), and the target ``y``, (N, k) or (N). A target that is NaN or
    infinite is unknown and left out; the other values of its sample count. With several values, each figure is the
    mean of those of the values, as in scikit-learn (``uniform_average``).

    The spread of the targets, which R² needs, is merged as deviations from the mean, after Chan, Golub and LeVeque,
    "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979): a difference of sums of squares
    would lose all digits where the targets are large and close together. For the same reason a mean is kept as a number
    near it, ``base``, and the ``rest``.

    Args:
        names: of the k values.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        size = len(self._names)
        self._state: dict[str, np.ndarray] = {
            **{name: np.zeros(size, np.int64) for name in _COUNTS},
            **{name: np.zeros(size) for name in ("squares", "absolutes", "base", "rest", "spread")},
            "least": np.full(size, np.inf),
            "most": np.full(size, -np.inf),
        }

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch.

        Raises:
            UsageError: where there is not one value for each name.
        """
        output, target = self._columns(outputs["output"], "output"), self._columns(targets["y"], "target")
        check_same_shape(output, target)
        known = np.isfinite(target)
        count = known.sum(axis=0)
        kept = np.where(known, target, 0.0)
        base = kept.sum(axis=0) / np.maximum(count, 1)
        shifted = np.where(known, target - base, 0.0)
        rest = shifted.sum(axis=0) / np.maximum(count, 1)
        with np.errstate(invalid="ignore", over="ignore"):  # predictions that are not finite are counted
            errors = np.where(known, output - kept, 0.0)
            squares = (errors**2).sum(axis=0)
        self.merge(
            {
                "count": count,
                "unknown": len(target) - count,
                "not_finite": (known & ~np.isfinite(output)).sum(axis=0),
                "squares": squares,
                "absolutes": np.abs(errors).sum(axis=0),
                "base": base,
                "rest": rest,
                "spread": (np.where(known, shifted - rest, 0.0) ** 2).sum(axis=0),
                "least": np.where(known, target, np.inf).min(axis=0, initial=np.inf),
                "most": np.where(known, target, -np.inf).max(axis=0, initial=-np.inf),
            }
        )

    def compute(self) -> dict[str, Any]:
        """Return the values.

        Returns:
            ``rmse``, ``mae`` and ``r2``; with several values, ``values`` with the same for each (``name``, ``rmse``,
            ``mae``, ``r2``, ``count``, ``unknown``). ``counts``: ``values``, ``unknown`` targets, and ``not_finite``
            predictions (NaN or infinite). R² is None with fewer than two targets, or where all are equal; RMSE, MAE
            and R² are None where a prediction is not finite. Empty before the first batch; only ``counts`` where no
            target is known.
        """
        state = self._state
        totals = [int(state[name].sum()) for name in _COUNTS]
        counts = dict(zip(("values", "unknown", "not_finite"), totals, strict=True))
        if not counts["values"]:
            return {"counts": counts} if counts["unknown"] else {}
        is_measured, has_spread = state["count"] > 0, self._has_spread()
        with np.errstate(invalid="ignore", over="ignore"):
            figures = {
                "rmse": np.where(is_measured, np.sqrt(state["squares"] / np.maximum(state["count"], 1)), np.nan),
                "mae": np.where(is_measured, state["absolutes"] / np.maximum(state["count"], 1), np.nan),
                "r2": np.where(has_spread, 1.0 - state["squares"] / np.where(has_spread, state["spread"], 1.0), np.nan),
            }
        values: dict[str, Any] = {
            name: _mean(figure[has_spread if name == "r2" else is_measured]) for name, figure in figures.items()
        }
        if len(self._names) > 1:
            values["values"] = [
                {
                    "name": name,
                    **{key: finite_number(figure[number]) for key, figure in figures.items()},
                    "count": int(state["count"][number]),
                    "unknown": int(state["unknown"][number]),
                }
                for number, name in enumerate(self._names)
            ]
        return {**values, "counts": counts}

    def state(self) -> dict[str, np.ndarray]:
        """Return counts, sums of errors, and mean (in two parts), spread and range of the targets, (k) each."""
        return {name: value.copy() for name, value in self._state.items()}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the state of other samples."""
        own = self._state
        if np.shape(state.get("base", 0.0)) != own["base"].shape:
            raise UsageError(
                "Only metrics with the same values can be merged.",
                received=f"{np.size(state.get('base', ()))} and {len(self._names)} values",
            )
        before, added = own["count"].copy(), state["count"]
        share = added / np.maximum(before + added, 1)
        own["base"] = np.where(before > 0, own["base"], state["base"])
        step = np.where(added > 0, state["base"] - own["base"] + (state["rest"] - own["rest"]), 0.0)
        own["spread"] += state["spread"] + step * before * share * step
        own["rest"] += step * share
        own["least"] = np.minimum(own["least"], state["least"])
        own["most"] = np.maximum(own["most"], state["most"])
        for name in (*_COUNTS, "squares", "absolutes"):
            own[name] += state[name]

    def _columns(self, values: np.ndarray, what: str) -> np.ndarray:
        """Return values as (N, k) float64."""
        array = np.asarray(values, np.float64)
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2 or array.shape[1] != len(self._names):
            raise UsageError(
                f"The {what} has shape {np.shape(values)}, not one number for each of {len(self._names)} values.",
                advice="Give (samples, values).",
            )
        return array

    def _has_spread(self) -> np.ndarray:
        """Return of which values R² is defined, (k) bool."""
        state = self._state
        # Rounding gives equal targets a tiny spread instead of 0, so their range decides.
        return (state["count"] > 1) & (state["most"] > state["least"]) & (state["spread"] > 0)


def _mean(figures: np.ndarray) -> float | None:
    return finite_number(figures.mean()) if figures.size else None
