"""Questions to a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.tf import logger
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


def backup_collection(keys: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Return what collections of the graph hold.

    Args:
        keys: the collections; all where it is None.
    """
    wanted = tf.get_default_graph().get_all_collection_keys() if keys is None else keys
    return {key: list(tf.get_collection(key)) for key in wanted}


def restore_collection(backup: Mapping[str, Sequence[Any]]) -> None:
    """Give collections the content that ``backup_collection`` returned."""
    for key, content in backup.items():
        tf.get_collection_ref(key)[:] = content


@contextmanager
def freeze_collection(keys: Sequence[str]) -> Iterator[None]:
    """Take back, at the end of the block, what it added to collections."""
    backup = backup_collection(keys)
    try:
        yield
    finally:
        restore_collection(backup)


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
    operation = getattr(op, "op", op)
    waiting = [getattr(each, "op", each) for each in tf2.nest.flatten(targets)]
    seen: set[Any] = set()
    while waiting:
        each = waiting.pop()
        if each is operation:
            return True
        if each not in seen:
            seen.add(each)
            waiting += [source.op for source in each.inputs]
            waiting += each.control_inputs
    return False


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
