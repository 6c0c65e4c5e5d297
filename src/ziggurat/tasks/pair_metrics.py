"""Metrics of pairs (siamese networks): how well distances of embeddings separate same from different."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ziggurat.errors import UsageError
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.metric_values import check_same_shape, finite_number

__all__ = ["PairMetric", "nearest_neighbor_accuracy", "pair_distances"]

_BLOCK_NUMBERS: Final = 4_000_000
"""Distances that are computed at a time: 32 MB."""


class PairMetric(Metric):
    """ROC AUC, accuracy at the best threshold, and equal error rate of the distances of pairs.

    It reads the outputs ``output`` and ``output_1``, (N, D) embeddings of both images, and the target ``y``, (N) or
    (N, 1): 1 same, 0 different; pairs with a negative target are not known, and left out. A pair is predicted as the
    same where the Euclidean distance of its embeddings is at most a threshold. Its state holds 9 bytes for a pair:
    the ranks of all distances decide.
    """

    def __init__(self) -> None:
        self._distances: list[np.ndarray] = []
        self._same: list[np.ndarray] = []
        self._unknown = 0

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch.

        Raises:
            UsageError: where shapes differ, or a target is no number of these.
        """
        distances, target = pair_distances(outputs["output"], outputs["output_1"]), np.asarray(targets["y"])
        target = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
        check_same_shape(distances, target)
        known = target >= 0
        target = target[known]
        if not np.isin(target, (0, 1)).all():
            raise UsageError(
                "The target of a pair is 1 (same) or 0 (different).",
                received=f"{target[~np.isin(target, (0, 1))][0]}",
            )
        self._distances.append(distances[known])
        self._same.append(target.astype(bool))
        self._unknown += int(len(known) - known.sum())

    def compute(self) -> dict[str, Any]:
        """Return the values.

        Returns:
            ``accuracy`` at the ``threshold`` that is best for these pairs, halfway between two distances (of equally
            good ones the smallest; None where even infinite distances count as the same); ``roc_auc``; and
            ``equal_error_rate``, where as many of the different pairs are accepted as of the same ones are rejected.
            The last two are None unless there are same and different pairs. ``counts``: ``pairs``, ``same``,
            ``unknown``, and ``not_finite``, pairs with NaN or infinite embeddings, which are infinitely far apart.
            Empty before the first pair; only ``counts`` where none is known.
        """
        distances, same = self._arrays()
        counts = {
            "pairs": len(same),
            "same": int(same.sum()),
            "unknown": self._unknown,
            "not_finite": int(np.isinf(distances).sum()),
        }
        if not len(same):
            return {"counts": counts} if self._unknown else {}
        thresholds, accepted_same, accepted_different = _steps(distances, same)
        wrong = accepted_different + counts["same"] - accepted_same
        best = int(wrong.argmin())
        values: dict[str, Any] = {
            "accuracy": float(1.0 - wrong[best] / len(same)),
            "threshold": finite_number(thresholds[best]),
            "roc_auc": None,
            "equal_error_rate": None,
        }
        if 0 < counts["same"] < len(same):
            true_rate = accepted_same / counts["same"]
            false_rate = accepted_different / (len(same) - counts["same"])
            values["roc_auc"] = float(np.sum(np.diff(false_rate) * (true_rate[1:] + true_rate[:-1]) / 2))
            values["equal_error_rate"] = _equal_error_rate(false_rate, 1.0 - true_rate)
        return {**values, "counts": counts}

    def state(self) -> dict[str, np.ndarray]:
        """Return distances and targets of all pairs, (N) each."""
        distances, same = self._arrays()
        return {"distances": distances, "same": same, "unknown": np.asarray(self._unknown)}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the pairs of another metric."""
        check_same_shape(state["distances"], state["same"])
        self._distances.append(np.asarray(state["distances"]))
        self._same.append(np.asarray(state["same"], bool))
        self._unknown += int(state["unknown"])

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate([np.zeros(0), *self._distances]), np.concatenate([np.zeros(0, bool), *self._same])


def pair_distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the Euclidean distance of each pair, (N) float64; infinite where an embedding is not finite.

    Args:
        first: (N, D) or (N, …) embeddings, whose axes after the first count as one.
        second: of the same shape.
    """
    first, second = np.asarray(first), np.asarray(second)
    check_same_shape(first, second)
    if first.ndim < 2:
        raise UsageError("Embeddings are (samples, numbers).", received=f"shape {first.shape}")
    with np.errstate(invalid="ignore", over="ignore"):
        differences = np.subtract(first, second, dtype=np.float64).reshape(len(first), -1)
        distances = np.sqrt(np.einsum("nd,nd->n", differences, differences))
    return np.where(np.isfinite(distances), distances, np.inf)


def nearest_neighbor_accuracy(embeddings: np.ndarray, labels: np.ndarray) -> float | None:
    """Return the share of samples whose nearest other sample (Euclidean) has the same label.

    Distances are computed in blocks, so that memory does not grow with the square of the samples. A sample
    whose embedding is not finite counts as wrong, and is no neighbor of others.

    Args:
        embeddings: (N, D).
        labels: (N) class numbers; samples with a negative one are left out.

    Returns:
        None with fewer than two labeled samples.
    """
    embeddings, labels = np.asarray(embeddings), np.asarray(labels)
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1]:
        raise UsageError(
            f"Labels of shape {labels.shape} are not one for each of the embeddings, which have shape "
            f"{embeddings.shape}."
        )
    known = labels >= 0
    points, labels = np.asarray(embeddings[known], np.float64), labels[known]
    count = len(points)
    if count < 2:
        return None
    finite = np.isfinite(points).all(axis=1)
    points, labels = points[finite], labels[finite]
    if len(points) < 2:
        return 0.0
    points -= points.mean(axis=0)  # near the origin the products below lose fewer digits
    squares = np.einsum("nd,nd->n", points, points)
    right, rows = 0, max(1, _BLOCK_NUMBERS // len(points))
    for start in range(0, len(points), rows):
        block = points[start : start + rows]
        # |a - b|² without |a|², which is the same for all neighbors b of a.
        distances = squares - 2 * (block @ points.T)
        distances[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        right += int((labels[distances.argmin(axis=1)] == labels[start : start + rows]).sum())
    return right / count


def _steps(distances: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return thresholds from the one that accepts no pair, and how many same and different pairs each accepts."""
    order = np.argsort(distances, kind="stable")
    rising, hits = distances[order], same[order]
    with np.errstate(invalid="ignore"):
        last = np.append(np.flatnonzero(rising[1:] != rising[:-1]), len(rising) - 1)
    accepted = np.append(0, np.cumsum(hits)[last])
    found = rising[last]
    middle = found[:-1] + (found[1:] - found[:-1]) / 2
    middle = np.where(middle < found[1:], middle, found[:-1])  # of two neighboring numbers, or before infinity
    thresholds = np.concatenate([[np.nextafter(found[0], -np.inf)], middle, found[-1:]])
    return thresholds, accepted, np.append(0, last + 1) - accepted


def _equal_error_rate(false_accepts: np.ndarray, false_rejects: np.ndarray) -> float:
    """Return where two rates, one rising from 0 to 1 and one falling from 1 to 0, are equal, between their points."""
    after = int(np.argmax(false_accepts >= false_rejects))
    before = after - 1
    gap = false_rejects[before] - false_accepts[before]
    share = gap / (gap + false_accepts[after] - false_rejects[after])
    return min(1.0, float(false_accepts[before] + share * (false_accepts[after] - false_accepts[before])))
