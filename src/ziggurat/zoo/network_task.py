"""Task that a network declares: a standard network in its description, a file in its class."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Final

from ziggurat.entities.backend_info import INPUT_KINDS, StandardNetwork, backend_infos
from ziggurat.records.schema import KINDS, Schema
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.tasks import tasks

__all__ = ["declared_task", "file_task", "kinds_of", "network_task", "why_not_learned"]

_CLASS: Final = "UserModel"
_FIELD: Final = "task"
_INPUTS: Final = {
    "image": "images",
    "image-pair": "pairs of images",
    "table": "rows of a table",
    "text": "texts",
    "array": "arrays",
}


def network_task(spec: TrainSpec, schema: Schema) -> str:
    """Return the task that the network of a training declares; empty where it declares none that the data has.

    Args:
        spec: of the training.
        schema: of its data.
    """
    network = spec.network
    if isinstance(network, FileNetwork):
        return file_task(network)
    infos = backend_infos()
    of_spec = [infos[spec.backend]] if spec.backend in infos else infos.values()
    known = next((found for info in of_spec if (found := info.network(network.name))), None)
    learned = [] if known is None else [tasks()[name] for name in known.tasks if name in tasks()]
    return next((each.name for each in learned if not each.accepts(schema)), "")


def file_task(network: FileNetwork) -> str:
    """Return the task that a network file declares; empty where it declares none, or cannot be read."""
    if network.text is not None:
        return declared_task(network.text)
    try:
        return declared_task(Path(network.path).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # other checks tell of it
        return ""


def why_not_learned(network: StandardNetwork, schema: Schema, task: str = "") -> str:
    """Return why a standard network learns nothing from data, as a full sentence; empty where it does.

    Args:
        network: of a backend.
        schema: of the data.
        task: that it is to learn, whatever it is made for; empty for its own.
    """
    form = INPUT_KINDS.get(network.input, ())
    if schema.kind not in form:
        return f"It takes {_INPUTS.get(network.input, network.input)}, which this data does not have."
    names = (task,) if task else network.tasks
    reasons = [found.accepts(schema) for name in names if (found := tasks().get(name)) is not None]
    if not reasons:
        return "Training it is not available yet."
    return "" if "" in reasons else reasons[0]


def kinds_of(network: StandardNetwork) -> list[str]:
    """Return the kinds of datasets that a standard network learns from, where they have what it needs."""
    schemas = [
        Schema(kind=kind, class_names=classes, target="" if classes else "target")
        for kind in KINDS
        for classes in (("?",), ())
    ]
    return list(dict.fromkeys(each.kind for each in schemas if not why_not_learned(network, each)))


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
