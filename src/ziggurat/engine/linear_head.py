"""A linear head for fixed features: multinomial logistic regression, its regularization chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError, MissingDependencyError

__all__ = ["LinearHead", "fit_linear_head", "held_out_probabilities"]

STRENGTHS: Final = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Weights of the squared norm that are tried, relative to the mean loss of a sample."""

_MOST_STEPS: Final = 200
"""Steps of L-BFGS for one fit: more change no prediction that was seen."""

_COARSE: Final = 1e-5
_FINE: Final = 1e-9
"""Relative gain of the loss in a step at which a fit ends: the first one compares strengths, the second one is kept."""

_BLOCK: Final = 16_384
"""Rows of float32 features that are multiplied at a time, so that a copy in float64 is never made of all."""


@dataclass(frozen=True, kw_only=True)
class LinearHead:
    """A head that was fitted.

    Args:
        weights: (D, K) float32; a logit is features @ weights + bias.
        bias: (K,) float32.
        strength: of the regularization that was chosen.
        scores: strength → mean cross-entropy of samples that were left out of the fit, in nats.
    """

    weights: np.ndarray
    bias: np.ndarray
    strength: float
    scores: Mapping[float, float]

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Return (N, K) float32 probabilities for (N, D) features."""
        return np.exp(_log_softmax(features @ self.weights + self.bias))


def fit_linear_head(
    features: np.ndarray,
    labels: np.ndarray,
    classes: int,
    *,
    seed: int,
    folds: int = 5,
    sample_weights: np.ndarray | None = None,
    note: Callable[[int, int], None] | None = None,
) -> LinearHead:
    """Return the head of the strength that loses least on samples that were left out, fitted on all samples.

    Features are standardized inside, and the head is returned for features as they are. A class without a sample gets
    a low probability and never fails. Equal input and seed give equal heads on equal arithmetic.

    Args:
        features: (N, D), finite.
        labels: (N,) class numbers below ``classes``.
        classes: K, the outputs of the head.
        seed: decides which samples are left out together.
        folds: into which the samples are divided by class; fewer where there are fewer samples.
        sample_weights: (N,) factors of the loss, such as class weights; None for 1.
        note: called with the number of fits that are done and of all.

    Raises:
        DataError: where the samples are of fewer than two classes, or a feature is not finite.
        MissingDependencyError: if SciPy is not installed.
    """
    problem = _Problem(features, labels, classes, sample_weights)
    parts = _folds(problem.labels, folds, seed)
    scores = _scores(problem, parts, note)
    strength = _best(scores)
    weights, bias = problem.head(problem.fit(np.arange(len(labels)), strength, None, _FINE))
    if note is not None:
        total = len(STRENGTHS) * len(parts) + 1
        note(total, total)
    return LinearHead(weights=weights, bias=bias, strength=strength, scores=scores)


def held_out_probabilities(
    features: np.ndarray, labels: np.ndarray, classes: int, *, seed: int, folds: int = 5
) -> np.ndarray:
    """Return (N, K) float32 probabilities of each sample by a head that was fitted without it.

    Args: as of :func:`fit_linear_head`, whose cross-validation chooses the strength.

    Raises:
        DataError: where the samples are of fewer than two classes, or a feature is not finite.
        MissingDependencyError: if SciPy is not installed.
    """
    problem = _Problem(features, labels, classes, None)
    parts = _folds(problem.labels, folds, seed)
    strength = _best(_scores(problem, parts, None))
    found = np.empty((len(labels), classes), np.float32)
    for held_out in parts:
        kept = np.setdiff1d(np.arange(len(labels)), held_out, assume_unique=True)
        weights, bias = problem.head(problem.fit(kept, strength, None, _COARSE))
        found[held_out] = np.exp(_log_softmax(problem.features[held_out] @ weights + bias))
    return found


class _Problem:
    """Samples, and the loss of heads on them."""

    def __init__(
        self, features: np.ndarray, labels: np.ndarray, classes: int, sample_weights: np.ndarray | None
    ) -> None:
        self.features = np.ascontiguousarray(features, np.float32)
        self.labels = np.asarray(labels, np.int64)
        self.classes = classes
        self.weights = np.ones(len(self.labels)) if sample_weights is None else np.asarray(sample_weights, np.float64)
        self.mean = self.features.mean(axis=0, dtype=np.float64)
        if not np.isfinite(self.mean).all():
            raise DataError(
                "A feature is not finite.",
                received=f"{np.count_nonzero(~np.isfinite(self.mean))} of {len(self.mean)} features",
                advice="Look whether the weights of the backbone are whole.",
            )
        present = np.unique(self.labels[self.weights > 0])
        if len(present) < 2:
            raise DataError(
                "Samples of one class alone teach nothing.",
                received=f"{len(self.labels)} samples, {len(present)} classes",
                advice="Add samples of a second class.",
            )
        # A feature that never changes says nothing; its scale of 1 keeps it at zero.
        spread = self.features.std(axis=0, dtype=np.float64)
        self.scale = np.where(spread > 1e-12, spread, 1.0)
        self._standard = ((self.features - self.mean) / self.scale).astype(np.float32)

    def fit(self, kept: np.ndarray, strength: float, start: np.ndarray | None, least_gain: float) -> np.ndarray:
        """Return the parameters, (D + 1) × K in one row, that lose least on some samples."""
        minimize = _minimizer()
        x, y, weights = self._standard[kept], self.labels[kept], self.weights[kept] / self.weights[kept].sum()
        size = (x.shape[1] + 1, self.classes)

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            matrix = flat.reshape(size)
            small = matrix.astype(np.float32)
            total, gradient = 0.5 * strength * float(np.square(matrix[:-1]).sum()), np.zeros(size)
            for first in range(0, len(x), _BLOCK):
                part = slice(first, first + _BLOCK)
                logs = _log_softmax(x[part] @ small[:-1] + small[-1]).astype(np.float64)
                rows = np.arange(len(logs))
                total -= float(weights[part] @ logs[rows, y[part]])
                slopes = np.exp(logs)
                slopes[rows, y[part]] -= 1.0
                slopes *= weights[part, None]
                gradient[:-1] += x[part].T @ slopes.astype(np.float32)
                gradient[-1] += slopes.sum(axis=0)
            gradient[:-1] += strength * matrix[:-1]
            return total, gradient.ravel()

        first = np.zeros(size[0] * size[1]) if start is None else start
        options = {"maxiter": _MOST_STEPS, "ftol": least_gain}
        return minimize(loss, first, jac=True, method="L-BFGS-B", options=options).x

    def loss_of(self, held_out: np.ndarray, flat: np.ndarray) -> float:
        """Return the weighted sum of the cross-entropy of samples, in nats."""
        matrix = flat.reshape(-1, self.classes).astype(np.float32)
        logs = _log_softmax(self._standard[held_out] @ matrix[:-1] + matrix[-1])
        return -float(self.weights[held_out] @ logs[np.arange(len(held_out)), self.labels[held_out]])

    def head(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (D, K) and bias (K,) for features that are not standardized."""
        matrix = flat.reshape(-1, self.classes)
        weights = matrix[:-1] / self.scale[:, None]
        return weights.astype(np.float32), (matrix[-1] - self.mean @ weights).astype(np.float32)


def _scores(
    problem: _Problem, parts: Sequence[np.ndarray], note: Callable[[int, int], None] | None
) -> dict[float, float]:
    """Return strength → mean cross-entropy of samples that were left out of the fit, in nats."""
    everyone = np.arange(len(problem.labels))
    losses = dict.fromkeys(STRENGTHS, 0.0)
    done = 0
    for held_out in parts:
        kept = np.setdiff1d(everyone, held_out, assume_unique=True)
        start = None
        for strength in sorted(STRENGTHS, reverse=True):  # each fit begins where the stricter one ended
            start = problem.fit(kept, strength, start, _COARSE)
            losses[strength] += problem.loss_of(held_out, start)
            done += 1
            if note is not None:
                note(done, len(STRENGTHS) * len(parts) + 1)
    whole = float(problem.weights.sum())
    return {strength: loss / whole for strength, loss in losses.items()}


def _best(scores: Mapping[float, float]) -> float:
    """Return the strength with the smallest loss; of equal ones the strictest, which is less sure of the unknown."""
    return min(scores, key=lambda each: (scores[each], -each))


def _folds(labels: np.ndarray, folds: int, seed: int) -> list[np.ndarray]:
    """Return the samples of each fold, each with its share of every class."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(labels))
    dealt = order[np.argsort(labels[order], kind="stable")]
    number = max(2, min(folds, len(labels)))
    return [np.sort(dealt[first::number]) for first in range(number)]


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    moved = logits - logits.max(axis=1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis=1, keepdims=True))


def _minimizer() -> Any:
    try:
        from scipy.optimize import minimize
    except ImportError as error:
        raise MissingDependencyError("scipy", extra="backbones", purpose="fitting a linear head") from error
    return minimize
