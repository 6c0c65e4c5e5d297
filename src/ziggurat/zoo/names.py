"""Name map between weights of PyTorch and variables of TensorFlow, for networks that exist on both frameworks.

The key ``layer1.0.conv1.weight`` of a ``state_dict`` is the variable ``model/layer1/0/conv1/weight``. Kernels and
matrices, whose names end in ``weight``, have other axes on each side; every other array is the same on both:

====================================  =======================  ========================
array                                 PyTorch                  TensorFlow
====================================  =======================  ========================
convolution                           (O, I, H, W)             (H, W, I, O)
depthwise convolution, one of groups  (O, I / groups, H, W)    (H, W, I / groups, O)
dense layer                           (O, I)                   (I, O)
====================================  =======================  ========================

Tables of embeddings are not in the map: their arrays look like those of dense layers, and have the same axes on both
sides.

On TensorFlow, the networks of ``SLIM_NETWORKS`` have the names that slim gives, as they had in release 0.1, so that
jobs of that time go on: ``conv1.weight`` is ``model/conv1/weights``, and ``conv1.norm.running_var``
``model/conv1/BatchNorm/moving_variance``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ziggurat.errors import CheckpointError

__all__ = ["MODEL_SCOPE", "SLIM_NETWORKS", "to_tensorflow", "to_torch"]

MODEL_SCOPE: Final = "model/"
"""Begins the names of all variables of a network."""

SLIM_NETWORKS: Final = frozenset({"convnet", "multilabel"})
"""Standard networks whose variables on TensorFlow have slim's names; each of their layers is one of PyTorch's."""

_NORM, _SLIM_NORM = "norm", "BatchNorm"
_SLIM_LAYER: Final[Mapping[str, str]] = {"weight": "weights", "bias": "biases"}
_SLIM_OF_NORM: Final[Mapping[str, str]] = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}
"""PyTorch's name of an array → slim's, in a layer and in the batch norm within it."""

_KERNEL: Final = "weight"
_COUNTER: Final = "num_batches_tracked"
_COUNTED: Final = "running_var"
_SLIM: Final = frozenset({"weights", "biases", "gamma", "beta", "moving_mean", "moving_variance", "kernel"})
_OF_TRAINING: Final = ("ziggurat/", "global_step", "train/")
_LISTED: Final = 5


def to_tensorflow(arrays: Mapping[str, Any], network: str = "") -> dict[str, np.ndarray]:
    """Return the variables of a TensorFlow network from the weights of the same network on PyTorch.

    Counters of batches (``num_batches_tracked``) are dropped: TensorFlow has none.

    Args:
        arrays: key of a ``state_dict``, with or without ``model/`` before it → array, or what NumPy makes one of.
        network: name of the standard network; those of ``SLIM_NETWORKS`` have other names there.

    Returns:
        name of the variable → array, in the order of the keys.

    Raises:
        CheckpointError: where a key is no key of PyTorch, two keys are one variable, or a value is no array of numbers.
    """
    found: dict[str, np.ndarray] = {}
    for key, value in arrays.items():
        bare = key.removeprefix(MODEL_SCOPE)
        if "/" in bare or not all(bare.split(".")):
            raise CheckpointError(
                f"The weight {key} has no name with dots, as those of PyTorch: `layer1.0.conv1.weight`.",
                advice="Give the content of a `state_dict`.",
            )
        if bare.rsplit(".", 1)[-1] == _COUNTER:
            continue
        name = MODEL_SCOPE + (_slim_name(bare) if network in SLIM_NETWORKS else bare).replace(".", "/")
        if name in found:
            raise CheckpointError(
                f"The weight `{bare}` comes twice, with and without `{MODEL_SCOPE}`.", advice="Leave one of them out."
            )
        found[name] = _turned(bare.rsplit(".", 1)[-1], _array(key, value), to_torch=False)
    return _known(found, "weight of PyTorch")


def to_torch(arrays: Mapping[str, Any], network: str = "") -> dict[str, np.ndarray]:
    """Return the ``state_dict`` of a PyTorch network from the variables of the same network on TensorFlow.

    What belongs to a training is dropped: slots of the optimizer, counters. Each batch norm gets a counter of batches
    (``num_batches_tracked``), which is 0.

    Args:
        arrays: name of the variable → array, or what NumPy makes one of.
        network: name of the standard network; those of ``SLIM_NETWORKS`` have other names there.

    Returns:
        key, without ``model/`` → array, in the order of the variables.

    Raises:
        CheckpointError: where a variable is not one of a network with PyTorch's names, or a value is no array of
            numbers.
    """
    weights = {name: value for name, value in arrays.items() if not _is_of_training(name, arrays)}
    if network in SLIM_NETWORKS:
        weights = {_torch_name(name): value for name, value in weights.items()}
    foreign = [name for name in weights if not _has_torch_name(name)]
    if foreign:
        more = f" and {len(foreign) - _LISTED} more" if len(foreign) > _LISTED else ""
        raise CheckpointError(
            f"A variable must have PyTorch's name behind `{MODEL_SCOPE}`, such as `model/layer1/0/conv1/weight`.",
            received=", ".join(foreign[:_LISTED]) + more,
            advice="Networks with names of slim, such as those of release 0.1, have no counterpart on PyTorch.",
            details={"names": foreign},
        )
    found: dict[str, np.ndarray] = {}
    for name, value in weights.items():
        *scopes, last = name.removeprefix(MODEL_SCOPE).split("/")
        found[".".join([*scopes, last])] = _turned(last, _array(name, value), to_torch=True)
        if last == _COUNTED:
            found[".".join([*scopes, _COUNTER])] = np.zeros((), np.int64)
    return _known(found, f"variable of TensorFlow below `{MODEL_SCOPE}`")


def _slim_name(key: str) -> str:
    """Return slim's name, with dots, of a key of PyTorch; another one stays as it is."""
    *scopes, last = key.split(".")
    is_norm = bool(scopes) and scopes[-1] == _NORM
    if is_norm:
        scopes[-1] = _SLIM_NORM
    return ".".join([*scopes, (_SLIM_OF_NORM if is_norm else _SLIM_LAYER).get(last, last)])


def _torch_name(name: str) -> str:
    """Return PyTorch's name, with slashes, of a variable of slim; another one stays as it is."""
    *scopes, last = name.split("/")
    is_norm = bool(scopes) and scopes[-1] == _SLIM_NORM
    if is_norm:
        scopes[-1] = _NORM
    names = _SLIM_OF_NORM if is_norm else _SLIM_LAYER
    return "/".join([*scopes, next((ours for ours, slim in names.items() if slim == last), last)])


def _turned(last: str, array: np.ndarray, *, to_torch: bool) -> np.ndarray:
    """Return an array with the axes of the other framework; contiguous, as files of weights want it."""
    rank = array.ndim
    if last != _KERNEL or rank < 2:  # the weights of norms have one axis
        return array
    outer = range(2, rank)
    axes = (rank - 1, rank - 2, *range(rank - 2)) if to_torch else (*outer, 1, 0)
    return np.ascontiguousarray(array.transpose(axes))


def _array(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind in "OUSV":
        raise CheckpointError(f"The weight {name} is a {type(value).__name__}, not an array of numbers.")
    return array


def _known(found: dict[str, np.ndarray], what: str) -> dict[str, np.ndarray]:
    if not found:
        raise CheckpointError(f"There must be at least one {what}.", received="none", advice="Check the file.")
    return found


def _is_of_training(name: str, arrays: Mapping[str, Any]) -> bool:
    """Return whether a name is a slot of an optimizer, which lies below its variable, or a counter."""
    return name.startswith(_OF_TRAINING) or name.rsplit("/", 1)[0] in arrays


def _has_torch_name(name: str) -> bool:
    return name.startswith(MODEL_SCOPE) and "." not in name and name.rsplit("/", 1)[-1] not in _SLIM
