"""Network inspection: activations of each layer for an image, and weights, as statistics and thumbnails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from ziggurat.engine.capabilities import TrainedNetwork
from ziggurat.worker.commands.prediction import described
from ziggurat.worker.inference.drawing import draw_activation, draw_weights
from ziggurat.worker.inference.handlers import fitted_picture, top_of
from ziggurat.worker.inference.model import WarmModel

__all__ = ["BINS", "ShowsLayers", "activations", "figures", "weights_of"]

BINS: Final = 20
"""Bins of a histogram."""


@runtime_checkable
class ShowsLayers(Protocol):
    """A trained network that tells what its layers give. Of one that does not, the outputs are shown."""

    def layer_outputs(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return layer → its output, (N, …), in the order of the network.

        Args:
            x: (N, H, W, C) float32, preprocessed.
        """
        ...


def activations(model: WarmModel, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the network makes of one image, layer by layer.

    Args:
        model: the open network.
        request: ``pictures`` with one image; ``top`` (default 5); ``weights``: whether weights are shown (default
            true).

    Returns:
        ``file`` and what is predicted; ``input``, ``activations`` and ``weights``, each with the ``figures`` of its
        arrays and ``png``, a small image (None where there is nothing to draw); ``parameters`` in all weights.
    """
    name, x = fitted_picture(model, request)
    outputs = {key: np.asarray(value)[0] for key, value in model.network.predict(x).items()}
    shown = {key: np.asarray(value)[0] for key, value in _layer_outputs(model.network, x).items()}
    weights = weights_of(model.job.state.arrays)
    return {
        "file": name,
        **described(outputs, model.job.class_names, top_of(request)),
        "input": {"name": "input", **figures(x[0]), "png": draw_activation(x[0], as_colour=True)},
        "activations": [{"name": key, **figures(value), "png": draw_activation(value)} for key, value in shown.items()],
        "weights": [
            {"name": key, "parameters": value.size, **figures(value), "png": draw_weights(value)}
            for key, value in (weights.items() if request.get("weights", True) else ())
        ],
        "parameters": sum(value.size for value in weights.values()),
    }


def figures(values: np.ndarray) -> dict[str, Any]:
    """Return the figures of an array as JSON values.

    Returns:
        ``shape``; ``mean``, ``deviation``, ``minimum`` and ``maximum`` (None where no number is finite); ``histogram``:
        ``counts`` in 20 equal bins from the minimum to the maximum, and their 21 ``edges``; ``not_finite``: how many
        numbers are NaN or infinite, which all others leave out.
    """
    numbers = np.asarray(values, np.float64).ravel()
    finite = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = {"shape": list(values.shape), "not_finite": int(numbers.size - finite.size)}
    if not finite.size:
        nothing = {"mean": None, "deviation": None, "minimum": None, "maximum": None}
        return {**found, **nothing, "histogram": {"counts": [], "edges": []}}
    counts, edges = np.histogram(finite, BINS)
    return {
        **found,
        "mean": float(finite.mean()),
        "deviation": float(finite.std()),
        "minimum": float(finite.min()),
        "maximum": float(finite.max()),
        "histogram": {"counts": counts.tolist(), "edges": edges.tolist()},
    }


def weights_of(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint that a network computes with.

    Left out are counters and hyperparameters (single numbers and whole ones), and what an optimizer keeps for an array:
    its name is that of the array with something before or behind it.
    """
    candidates = {name: np.asarray(each) for name, each in arrays.items()}
    candidates = {name: each for name, each in candidates.items() if each.ndim and each.dtype.kind == "f"}
    return {name: each for name, each in candidates.items() if not _is_kept_for_another(name, candidates)}


def _is_kept_for_another(name: str, known: Iterable[str]) -> bool:
    """Return whether a name is another one with parts before or behind it: ``conv/W/Momentum``, ``momentum/conv/W``."""
    parts = name.split("/")
    names = set(known)
    cuts = range(1, len(parts))
    return any("/".join(parts[:cut]) in names or "/".join(parts[cut:]) in names for cut in cuts)


def _layer_outputs(network: TrainedNetwork, x: np.ndarray) -> Mapping[str, np.ndarray]:
    return network.layer_outputs(x) if isinstance(network, ShowsLayers) else network.predict(x)
