"""Log of the shapes of layers: what goes in and what comes out, once for each layer of a graph."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf import logger

__all__ = ["ShapeLog", "disable_layer_logging", "shape_text", "without_tower"]

_TOWER = re.compile(r"(?:^|(?<=/))tower[0-9]+/")

_logged: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
_is_enabled = True


def disable_layer_logging() -> None:
    """Log no shapes of layers any more, in this process."""
    global _is_enabled
    _is_enabled = False


def without_tower(name: str) -> str:
    """Return a name without the name scope of its tower, such as ``tower0/``."""
    return _TOWER.sub("", name)


def shape_text(value: Any) -> str:
    """Return the shape of a tensor as text; those of a list, tuple or mapping of tensors beside each other."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {shape_text(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(shape_text, value))
    shape = getattr(value, "shape", None)
    if shape is None or getattr(shape, "rank", 0) is None:
        return "unknown"
    return str(shape.as_list() if isinstance(shape, tf.TensorShape) else list(shape))


class ShapeLog:
    """Says the shapes of one layer, where it was not said of the same name in the graph before.

    Args:
        name: of the layer, with its variable scope.
        wanted: whether to say anything.
    """

    def __init__(self, name: str, wanted: bool = True) -> None:
        self._name = without_tower(name)
        known = _logged.setdefault(tf.get_default_graph(), set())
        self._is_due = wanted and _is_enabled and self._name not in known

    def inputs(self, value: Any | Sequence[Any]) -> None:
        """Say what goes in."""
        if self._is_due:
            logger.info("%s input: %s", self._name, shape_text(value))

    def outputs(self, value: Any | Sequence[Any]) -> None:
        """Say what comes out, and that it was said."""
        if self._is_due:
            logger.info("%s output: %s", self._name, shape_text(value))
            _logged[tf.get_default_graph()].add(self._name)
