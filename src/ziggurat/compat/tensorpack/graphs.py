"""Questions to a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.tf import logger
from ziggurat.tf.randomness import ancestors
from ziggurat.tf.scopes import backup_collection, freeze_collection, restore_collection
from ziggurat.tf.sessions import visible_gpus

__all__ = [
    "backup_collection",
    "dependency_of_fetches",
    "dependency_of_targets",
    "describe_trainable_vars",
    "freeze_collection",
    "get_op_or_tensor_by_name",
    "get_op_tensor_name",
    "get_shape_str",
    "get_tensors_by_names",
    "gpu_available_in_session",
    "restore_collection",
]


def get_op_tensor_name(name: str) -> tuple[str, str]:
    """Return the names of an operation and of its first output, from either."""
    operation = name.rsplit(":", 1)[0] if name.rsplit(":", 1)[-1].isdigit() and ":" in name else name
    return operation, name if operation != name else f"{name}:0"


def get_tensors_by_names(names: Sequence[str]) -> list[Any]:
    """Return tensors of the default graph by their names, with or without ``:0``."""
    return [tf.get_default_graph().get_tensor_by_name(get_op_tensor_name(name)[1]) for name in names]


def get_op_or_tensor_by_name(name: str | Sequence[str]) -> Any:
    """Return a tensor by a name with ``:0``, or an operation by one without; a list of them for a list."""
    if isinstance(name, str):
        return tf.get_default_graph().as_graph_element(name, allow_tensor=True, allow_operation=True)
    return [get_op_or_tensor_by_name(each) for each in name]


def gpu_available_in_session() -> bool:
    """Return whether TensorFlow may use a GPU."""
    return bool(visible_gpus())


def dependency_of_targets(targets: Any, op: Any) -> bool:
    """Return whether any of some tensors or operations needs another one.

    Args:
        targets: tensors or operations.
        op: a tensor or operation.
    """
    return getattr(op, "op", op) in ancestors(getattr(each, "op", each) for each in tf2.nest.flatten(targets))


def dependency_of_fetches(fetches: Any, op: Any) -> bool:
    """Return whether what a session would be asked for needs an operation.

    Args:
        fetches: tensors, operations and names, in any structure.
        op: a tensor or operation.
    """
    graph = tf.get_default_graph()
    return dependency_of_targets(
        [graph.as_graph_element(getattr(each, "name", each)) for each in tf2.nest.flatten(fetches)], op
    )


def get_shape_str(tensors: Any) -> str:
    """Return the shape of a tensor, or of several in a row, as text."""
    if isinstance(tensors, list | tuple):
        return ", ".join(get_shape_str(each) for each in tensors)
    return str(tensors.shape.as_list())


def describe_trainable_vars() -> None:
    """Log every variable that is trained, with its shape, and the number of parameters."""
    variables = tf.trainable_variables()
    width = max((len(each.op.name) for each in variables), default=0)
    lines = [f"  {each.op.name:<{width}}  {each.shape.as_list()}" for each in variables]
    count = sum(int(np.prod(each.shape.as_list())) for each in variables)
    text = "\n".join(lines)
    logger.info("Variables that are trained, %d parameters:\n%s", count, text)
