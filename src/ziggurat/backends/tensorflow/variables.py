"""Variables of a graph: all of them by name, and the operations that give them the values of a run state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import CheckpointError

__all__ = ["all_variables", "check_state", "loading"]


def all_variables(graph: Any) -> dict[str, Any]:
    """Return name → variable of a graph, local variables included."""
    kinds = (tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES)
    return {each.op.name: each for kind in kinds for each in graph.get_collection(kind)}


def check_state(variables: Mapping[str, Any], state: Mapping[str, np.ndarray], advice: str) -> None:
    """Compare the arrays of a state with the variables that shall get them.

    Raises:
        CheckpointError: where names or shapes are of another network.
    """
    problems = [f"{name} is missing" for name in variables if name not in state]
    problems += [f"{name} is unexpected" for name in state if name not in variables]
    problems += [
        f"{name} has shape {state[name].shape} instead of {tuple(variable.shape.as_list())}"
        for name, variable in variables.items()
        if name in state and not variable.shape.is_compatible_with(state[name].shape)
    ]
    if problems:
        raise CheckpointError(
            "A checkpoint is loaded by the network that it was saved from.",
            received="; ".join(problems[:10]),
            advice=advice,
            details={"problems": problems},
        )


def loading(variables: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return name → placeholder, and the operation that gives the variable the placeholder's value."""
    with tf.name_scope("ziggurat/load/"), tf.device("/cpu:0"):
        found = {}
        for name, variable in variables.items():
            placeholder = tf.placeholder(variable.dtype.base_dtype, variable.shape)
            found[name] = placeholder, variable.assign(placeholder, read_value=False)
        return found
