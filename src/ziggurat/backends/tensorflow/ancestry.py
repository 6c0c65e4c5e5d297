"""Ancestors of tensors in a graph: the operations that they are computed from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["names_behind"]


def names_behind(outputs: Iterable[Any]) -> set[str]:
    """Return the names of all operations that tensors are made of; behind outputs, neither loss nor summaries are."""
    waiting, names = [tensor.op for tensor in outputs], set[str]()
    while waiting:
        operation = waiting.pop()
        if operation.name not in names:
            names.add(operation.name)
            waiting.extend(source.op for source in operation.inputs)
    return names
