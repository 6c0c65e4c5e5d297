"""Projections of features: principal components, and t-SNE of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError, MissingDependencyError

__all__ = ["check_tsne", "fitting_perplexity", "principal_components", "tsne", "unit_rows"]

_BLOCK: Final = 8192
_EARLY_STEPS: Final = 250
_LATER_STEPS: Final = 500
_SAY_EVERY: Final = 10
TSNE_STEPS: Final = _EARLY_STEPS + _LATER_STEPS
"""Steps of gradient descent: those with early exaggeration, and the others."""


def unit_rows(features: np.ndarray) -> np.ndarray:
    """Return (N, D) float32 rows of length 1; a row of zeros stays one."""
    lengths = np.sqrt(np.einsum("nd,nd->n", features, features, dtype=np.float64))
    return (features / np.maximum(lengths, 1e-12)[:, None]).astype(np.float32)


def principal_components(features: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the first principal components, and the share of the variance of each.

    The sign of a component is such that its largest weight is positive, so that equal features give equal scores.

    Args:
        features: (N, D), of any type of numbers; read in blocks.
        most: components at most; there are no more than the smaller of N and D.

    Returns:
        (N, k) float32 and (k,) float64.

    Raises:
        DataError: if a feature is not finite.
    """
    count, width = features.shape
    mean = np.zeros(width)
    for start in range(0, count, _BLOCK):
        mean += features[start : start + _BLOCK].sum(axis=0, dtype=np.float64) / count
    if not np.isfinite(mean).all():
        raise DataError(
            "A feature is not finite.",
            received=f"{np.count_nonzero(~np.isfinite(mean))} of {width} features",
            advice="Look whether the weights of the network are whole.",
        )
    if count < width:  # the same axes, from the smaller of two products
        centered = (np.asarray(features) - mean).astype(np.float32)
        values, left = np.linalg.eigh((centered @ centered.T).astype(np.float64))
        axes = centered.T @ left / np.sqrt(np.maximum(values, 1e-12))
    else:
        products = np.zeros((width, width))
        for start in range(0, count, _BLOCK):
            centered = (features[start : start + _BLOCK] - mean).astype(np.float32)
            products += centered.T @ centered
        values, axes = np.linalg.eigh(products)
    axes = axes[:, ::-1][:, :most]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    shares = np.maximum(values[::-1][:most], 0) / max(float(values.clip(0).sum()), 1e-12)
    small = axes.astype(np.float32)
    scores = [(features[start : start + _BLOCK] - mean).astype(np.float32) @ small for start in range(0, count, _BLOCK)]
    return np.concatenate(scores) if scores else np.zeros((0, small.shape[1]), np.float32), shares


def fitting_perplexity(perplexity: float, count: int) -> float:
    """Return the perplexity that so many samples allow: at most a third of the others."""
    return max(1.0, min(perplexity, (count - 1) / 3))


def check_tsne() -> Any:
    """Return the module of t-SNE.

    Raises:
        MissingDependencyError: if it is not installed; it names the extra.
    """
    try:
        import openTSNE
    except ImportError:
        raise MissingDependencyError("openTSNE", extra="maps", purpose="t-SNE") from None
    return openTSNE


def tsne(
    features: np.ndarray,
    *,
    perplexity: float,
    seed: int,
    threads: int,
    note: Callable[[int, int], None],
) -> np.ndarray:
    """Return where t-SNE places samples (van der Maaten and Hinton, JMLR 9, 2008), from their principal components on.

    Args:
        features: (N, D) float32, such as 50 principal components.
        perplexity: neighbors that count, see ``fitting_perplexity``.
        seed: of the search for neighbors.
        threads: number of threads.
        note: called with the number of steps that are done and of all; an error that it raises ends the work.

    Returns:
        (N, 2) float32.

    Raises:
        MissingDependencyError: if openTSNE is not installed.
    """
    module = check_tsne()
    before = 0

    def step(iteration: int, _error: float, _embedding: np.ndarray) -> bool:
        note(before + iteration, TSNE_STEPS)
        return False

    note(0, TSNE_STEPS)
    affinities = module.affinity.PerplexityBasedNN(
        features, perplexity=perplexity, metric="euclidean", n_jobs=threads, random_state=seed
    )
    note(0, TSNE_STEPS)
    start = module.initialization.rescale(features[:, :2].astype(np.float64), inplace=False, target_std=1e-4)
    embedding = module.TSNEEmbedding(
        start,
        affinities,
        n_jobs=threads,
        random_state=seed,
        callbacks=[step],
        callbacks_every_iters=_SAY_EVERY,
    )
    for steps, options in (
        (_EARLY_STEPS, {"exaggeration": 12, "momentum": 0.5}),
        (_LATER_STEPS, {"momentum": 0.8}),
    ):
        embedding.optimize(n_iter=steps, inplace=True, **options)
        before += steps
    note(TSNE_STEPS, TSNE_STEPS)
    return np.asarray(embedding, np.float32)
