"""Repairs that let tf-slim 1.1.0 work on TensorFlow 2.21, and a self-test that finds the next ones.

tf-slim uses ten names that TensorFlow and tf_keras have moved since. Each repair puts one back where tf-slim looks.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule

__all__ = ["lost_names", "repair_slim"]

# (module that tf-slim reads, name, module that has it now)
_MOVED: Final = (
    ("tensorflow.python.framework.ops", "Tensor", "tensorflow.python.framework.tensor"),
    ("tensorflow.python.framework.ops", "IndexedSlices", "tensorflow.python.framework.indexed_slices"),
    ("tensorflow.python.ops.array_ops", "stack", "tensorflow.python.ops.array_ops_stack"),
    ("tensorflow.python.ops.array_ops", "unstack", "tensorflow.python.ops.array_ops_stack"),
    ("tensorflow.python.ops.control_flow_ops", "Assert", "tensorflow.python.ops.control_flow_assert"),
    ("tensorflow.python.ops.control_flow_ops", "case", "tensorflow.python.ops.control_flow_case"),
    ("tensorflow.python.ops.control_flow_ops", "cond", "tensorflow.python.ops.cond"),
    ("tensorflow.python.ops.control_flow_ops", "while_loop", "tensorflow.python.ops.while_loop"),
    ("tensorflow.python.ops.variable_scope", "variable", "tensorflow.python.ops.variable_v1:VariableV1"),
)
_KERAS: Final = ("tf_keras.src", "tensorflow.python.keras")
_WARNING: Final = (
    *(f"legacy_tf_layers.{name}" for name in ("base", "convolutional", "core", "pooling")),
    *("engine.base_layer", "engine.base_layer_v1"),
)
_WARNING_TOO: Final = ("tf_keras.src.legacy_tf_layers.normalization", "tf_keras.src.layers.rnn.legacy_cells")
_LEGACY_LAYERS: Final = ("base", "convolutional", "core", "normalization", "pooling")


def repair_slim() -> ModuleType:
    """Return tf-slim, repaired. Calling it again does nothing more."""
    for package, name, source in _MOVED:
        module = importlib.import_module(package)
        if not hasattr(module, name):
            path, _, other = source.partition(":")
            setattr(module, name, getattr(importlib.import_module(path), other or name))
    if "tf_keras.legacy_tf_layers" not in sys.modules:
        moved = "tf_keras.src.legacy_tf_layers"
        sys.modules["tf_keras.legacy_tf_layers"] = importlib.import_module(moved)
        for part in _LEGACY_LAYERS:
            sys.modules[f"tf_keras.legacy_tf_layers.{part}"] = importlib.import_module(f"{moved}.{part}")
    _let_contract_warn_of_nothing()
    return importlib.import_module("tf_slim")


def _let_contract_warn_of_nothing() -> None:
    """Take the deprecations out of what a network file may use: each layer of ``tf.layers`` and slim has one."""
    quiet = StandInModule("warnings", warnings, names={"warn": _warn})
    modules = [f"{keras}.{name}" for keras in _KERAS for name in _WARNING]
    for name in (*modules, *_WARNING_TOO):
        module: Any = importlib.import_module(name)
        module.warnings = quiet


def _warn(message: Any, category: Any = None, stacklevel: int = 1, **options: Any) -> None:
    if "removed in a future version" not in str(message):
        warnings.warn(message, category, stacklevel + 1, **options)


def lost_names() -> list[str]:
    """Return the names that tf-slim reads and the installed TensorFlow no longer has, as ``module.name (file:line)``.

    Empty on the versions that Ziggurat is tested with; on others it says what the next repair must bring back.
    """
    repair_slim()
    found = importlib.util.find_spec("tf_slim")
    assert found is not None
    assert found.submodule_search_locations is not None
    root = Path(found.submodule_search_locations[0])
    lost: dict[str, str] = {}
    for path in sorted(root.rglob("*.py")):
        if not path.name.endswith("_test.py"):
            for name, line in _lost_in(ast.parse(path.read_text())):
                lost.setdefault(name, f"{name} ({path.relative_to(root)}:{line})")
    return list(lost.values())


def _lost_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    known: dict[str, tuple[str, Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("tensorflow", "tf_keras")):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                value = _import(str(node.module), alias.name)
                if value is None:
                    yield whole, node.lineno
                else:
                    known[alias.asname or alias.name] = (whole, value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            whole, value = known[node.value.id]
            if isinstance(value, ModuleType) and not hasattr(value, node.attr):
                yield f"{whole}.{node.attr}", node.lineno


def _import(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        pass
    try:
        return importlib.import_module(f"{module}.{name}")
    except ImportError:
        return None
