"""Task that a network declares: a standard network in its description, a file in its class."""

from __future__ import annotations

import ast
import functools
from typing import Final

from ziggurat.entities.backend_info import backend_infos
from ziggurat.records.schema import Schema
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.tasks import tasks

__all__ = ["declared_task", "network_task"]

_CLASS: Final = "UserModel"
_FIELD: Final = "task"


def network_task(spec: TrainSpec, schema: Schema) -> str:
    """Return the task that the network of a training declares; empty where it declares none that the data has.

    A standard network for classification also learns from data of another kind that has classes: its task is then the
    default one of the data.

    Args:
        spec: of the training.
        schema: of its data.
    """
    network = spec.network
    if isinstance(network, FileNetwork):
        return declared_task(network.text or "")
    known = next((found for info in backend_infos().values() if (found := info.network(network.name))), None)
    chosen = None if known is None else tasks().get(known.task)
    return "" if chosen is None or chosen.accepts(schema) else chosen.name


@functools.lru_cache(maxsize=256)
def declared_task(text: str) -> str:
    """Return what stands as ``task = "…"`` in the class ``UserModel`` of a network file; empty where nothing does.

    The file is parsed, not executed; one that cannot be parsed declares nothing.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for each in body:
        if not isinstance(each, ast.ClassDef) or each.name != _CLASS:
            continue
        for line in each.body:
            target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
            value = getattr(line, "value", None)
            is_task = isinstance(target, ast.Name) and target.id == _FIELD
            if is_task and isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value
    return ""
