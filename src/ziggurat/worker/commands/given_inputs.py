"""What a prediction gives a network beside its samples, such as the noise that a generator makes images of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.engine.capabilities import HasInferenceInputs, TrainedNetwork
from ziggurat.errors import ConfigurationError, UnknownNameError, UsageError
from ziggurat.tasks import ArraySpec

__all__ = ["MOST_GENERATED", "generated_count", "given_inputs"]

MOST_GENERATED: Final = 1000
"""Predictions that are made without a sample, at most: each of their numbers stands in the answer."""


def generated_count(request: Mapping[str, Any]) -> int:
    """Return how many predictions a request wants without any sample; 0 where it has samples.

    Raises:
        UsageError: where it is no such number, or the request has samples, too.
    """
    count = request.get("count")
    if count is None:
        return 0
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_GENERATED:
        raise UsageError(
            f"`count` is a whole number from 1 to {MOST_GENERATED}.",
            received=repr(count),
            advice="Ask several times, with another `seed` each.",
        )
    samples = next((name for name in ("images", "rows", "texts") if request.get(name)), None)
    if samples is not None:
        raise UsageError(
            "`count` is for predictions without any sample.",
            received=f"`count` and `{samples}`",
            advice="Leave one of them out.",
        )
    return count


def given_inputs(network: TrainedNetwork, request: Mapping[str, Any], count: int) -> dict[str, np.ndarray]:
    """Return what a network is given beside its samples: name → (count, …), a row for each sample.

    An input that is neither given nor drawn is left out: the network's own default is used.

    Args:
        network: that predicts.
        request: ``inputs`` (name → the numbers of one row, for all samples, or a list with a row for each);
            ``seed`` (decides the standard normal numbers that are drawn for every other input of floating-point
            numbers; the first rows are the same, however many there are); ``count``, with which the seed is 0 where it
            is left out; ``first`` (name → numbers in the place of the first ones of each row that is drawn).
        count: how many samples there are.

    Raises:
        UsageError: where the network has no such inputs, or something else than numbers is given.
        UnknownNameError: where it has none of that name.
        ConfigurationError: where the rows are of another shape.
    """
    inputs, seed = _mapping(request, "inputs"), request.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise UsageError("`seed` is a whole number from 0 up.", received=repr(seed))
    declared = network.inference_inputs() if isinstance(network, HasInferenceInputs) else {}
    asked = [name for name in ("inputs", "first", "seed", "count") if request.get(name) not in (None, {})]
    if asked and not declared:
        raise UsageError(
            "The network has no inputs beside its samples, such as the noise of a generator, for "
            f"which `{asked[0]}` is.",
            advice="Give it samples to predict for.",
        )
    found = {name: _rows(name, values, declared, count) for name, values in inputs.items()}
    if seed is None and request.get("count") is not None:
        seed = 0  # a default of the network may be the same for each batch
    if seed is not None:
        for name, spec in declared.items():
            if name not in found and np.issubdtype(np.dtype(spec.dtype), np.floating):
                found[name] = _drawn(name, spec, seed, count)
    for name, values in _mapping(request, "first").items():
        if name not in declared:
            raise UnknownNameError("input of this network beside the samples", name, declared)
        _put_first(name, values, found.get(name))
    return found


def _mapping(request: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    values = request.get(field) or {}
    if not isinstance(values, Mapping):
        raise UsageError(f"`{field}` has the numbers of each input by its name.", received=type(values).__name__)
    return values


def _put_first(name: str, values: Any, rows: np.ndarray | None) -> None:
    """Set the first numbers of each row, in place."""
    array, flat = _numbers(name, values), None if rows is None else rows.reshape(len(rows), -1)
    if flat is None or array.ndim != 1 or len(array) > flat.shape[1]:
        raise UsageError(
            f"`first` has numbers for the beginning of the input `{name}`, the rest of which is drawn by a `seed`.",
            received=f"numbers of shape {_shape(array.shape)}" if flat is not None else "no `seed`",
            advice="Give fewer numbers, or all of them in `inputs`.",
        )
    flat[:, : len(array)] = array


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not np.isfinite(array).all():
        raise UsageError(f"The input `{name}` is a list of numbers.", received=f"{values!r:.80}")
    return array


def _rows(name: str, values: Any, declared: Mapping[str, ArraySpec], count: int) -> np.ndarray:
    if name not in declared:
        raise UnknownNameError("input of this network beside the samples", name, declared)
    spec, array = declared[name], _numbers(name, values)
    if array.shape == spec.shape:
        array = np.broadcast_to(array, (count, *spec.shape))
    if array.shape != (count, *spec.shape):
        raise ConfigurationError(
            f"The input `{name}` of this network has rows of shape {_shape(spec.shape)}.",
            received=f"numbers of shape {_shape(array.shape)} for {count} sample(s)",
            advice="Give it one row for all samples, or one for each.",
        )
    return array.astype(spec.dtype)


def _drawn(name: str, spec: ArraySpec, seed: int, count: int) -> np.ndarray:
    random = np.random.default_rng([seed, *name.encode()])
    return random.standard_normal((count, *spec.shape)).astype(spec.dtype)


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"
