"""Execution of a user's network file: its names, its imports, and errors that name its own lines."""

from __future__ import annotations

import builtins
import itertools
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow import digits
from ziggurat.backends.tensorflow.namespace.proxy import FILE_NAME, StandInModule, part_of
from ziggurat.backends.tensorflow.namespace.python2 import OLD_ITERTOOLS, compile_network
from ziggurat.backends.tensorflow.namespace.tensorflow import user_tensorflow
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.tower import Tower, model_property
from ziggurat.engine import network_files as engine_files
from ziggurat.engine.network_files import keep_source, message_of, need_user_model
from ziggurat.errors import NetworkCodeError, ZigguratError

__all__ = ["load_network", "users_errors"]

_logger = logging.getLogger(__name__)
_KERAS_3: Final = (
    "Keras 3 layers in a graph keep one dropout mask for ever and never update their batch-norm averages. "
    "Use `tf.keras` or `tf_keras` (the Keras that knows graphs), or slim."
)
_NOT_FOR_NETWORKS: Final = {
    "tensorpack": (
        "Its layers need its own trainers. Write the layers with slim or `tf.layers`; Tensorpack's data flows and "
        "callbacks have their like in `ziggurat.dataflow` and `ziggurat.callbacks`."
    ),
}
_BEFORE_RELEASE: Final = (
    "The file is for DIGITS before its release of TensorFlow networks. Write `class UserModel(Tower):`; what "
    "`build_model` computed goes into `@model_property def inference(self):`, which returns what stood under 'model'; "
    "its inner `loss(y)` becomes `@model_property def loss(self):` with `self.y` for `y` and `self.inference` for the "
    "model. `params['x']` is `self.x`; likewise `input_shape`, `nclasses` and `is_training`. Summaries go to "
    "`self.summaries.append(…)` instead of a collection."
)


def load_network(text: str, path: str, *, tensorflow: ModuleType | None = None) -> type[Tower]:
    """Execute a network file and return its ``UserModel``.

    Args:
        text: the Python source.
        path: its name, for errors; need not exist.
        tensorflow: what stands for ``tf`` instead of the usual one, such as a module that tells of calls; the file's
            ``slim`` is its ``contrib.slim``.

    Raises:
        NetworkCodeError: where the file fails or defines no ``UserModel(Tower)``; names the user's line.
    """
    keep_source(text, path)
    names = _namespace(path, user_tensorflow() if tensorflow is None else tensorflow)
    with users_errors(path):
        network = compile_network(text, path)
        for line, notice in network.notices:
            _logger.warning("%s, line %d: %s", path, line, notice)
        names["__builtins__"] |= network.builtins
        exec(network.code, names)
    return _user_model(names, path)


_KNOWN: Final = ("tf", "slim", "digits", "Tower", "model_property", "np")
"""Names of the namespace of a network file."""


def users_errors(path: str) -> AbstractContextManager[None]:
    """Turn whatever is raised inside into a ``NetworkCodeError`` that names the user's own file and line.

    Args:
        path: the network file's name.
    """
    return engine_files.users_errors(path, _KNOWN, _message)


def _namespace(path: str, tensorflow: ModuleType) -> dict[str, Any]:
    slim: ModuleType = tensorflow.contrib.slim
    own_builtins = dict(vars(builtins))
    own_builtins["__import__"] = _importer(tensorflow, slim)
    return {
        "__name__": FILE_NAME,
        "__file__": path,
        "__builtins__": own_builtins,
        "tf": tensorflow,
        "slim": slim,
        "digits": digits,
        "Tower": Tower,
        "model_property": model_property,
        "np": np,
        "_x": _GuidesInput(),
    }


class _GuidesInput:
    """Stands for ``_x`` in the guides' auto-encoder, which never defines it: the input of the tower being built."""

    def __init__(self) -> None:
        self._told = False

    def tensor(self) -> Any:
        """Return the tower's input; say once that the file does not define the name."""
        if not self._told:
            self._told = True
            _logger.warning("The network file reads `_x` without defining it: the tower's input `self.x` is used.")
        return Tower.newest_x


tf.register_tensor_conversion_function(_GuidesInput, lambda value, dtype=None, name=None, as_ref=False: value.tensor())


def _importer(tensorflow: ModuleType, slim: ModuleType) -> Callable[..., Any]:
    """Return ``__import__`` for the user's file: the names of the guides, and everything else as it is."""
    model = StandInModule("model", names={"Tower": Tower, "model_property": model_property})
    aliases: dict[str, Any] = {"tensorflow": tensorflow, "model": model, "utils": digits, "digits": digits}
    aliases |= {"slim": slim, "tf_slim": slim, "itertools": StandInModule("itertools", itertools, names=OLD_ITERTOOLS)}

    def import_for_user(
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        wanted: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> Any:
        first, *rest = name.split(".")
        if first == "keras":
            raise ImportError(f"`import keras` is not for graph networks. {_KERAS_3}", name=name)
        if level or first not in aliases:
            return _others_import(name, globals_, locals_, wanted or (), level)
        found = aliases[first]
        for part in rest:
            found = _attribute(found, part)
        for part in wanted or ():
            if part != "*":
                _attribute(found, part)
        return found if wanted else aliases[first]

    return import_for_user


def _others_import(name: str, globals_: Any, locals_: Any, wanted: tuple[str, ...], level: int) -> Any:
    """Import what Ziggurat has no stand-in for; say what to do about a module that is not installed."""
    first = name.partition(".")[0]
    if level:
        raise ModuleNotFoundError(f"{_stands_alone('.' * level + name)}.", name=name)
    if first in _NOT_FOR_NETWORKS:
        raise ImportError(f"`import {first}` is not for a network file. {_NOT_FOR_NETWORKS[first]}", name=name)
    try:
        return builtins.__import__(name, globals_, locals_, wanted)
    except ModuleNotFoundError as error:
        if error.name != first:
            raise
        advice = f"{_stands_alone(name)}; if `{first}` is a published package, install it."
        raise ModuleNotFoundError(advice, name=name) from None


def _stands_alone(module: str) -> str:
    return (
        f"There is no module `{module}`. A network file stands alone: other files of its repository are not beside it. "
        "Copy what it uses of that module into the network file"
    )


def _attribute(module: Any, name: str) -> Any:
    try:
        return part_of(module, name)
    except AttributeError as error:
        raise ImportError(str(error), name=name) from None


def _user_model(names: Mapping[str, Any], path: str) -> type[Tower]:
    found = need_user_model(names, path, {"Tower": Tower}, _BEFORE_RELEASE)
    for name in ("inference", "loss"):
        if not hasattr(found, name):
            raise NetworkCodeError(
                f"`UserModel` in {path} has no `{name}`, which it defines as a `@model_property`.",
                advice=f"Add it: @model_property, then `def {name}(self):`.",
                details={"file": path},
            )
    return found


def _message(error: BaseException) -> str:
    if isinstance(error, ZigguratError):
        return message_of(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    # TensorFlow repeats where the operation was made; the first paragraph says what is wrong.
    first = re.split(r"\n\s*\n|\nOriginal stack trace", text.strip())[0]
    first = re.sub(r"^\{\{function_node [^}]*\}\} | \[Op:\w+\] name:.*$", "", first)
    return first if first.endswith((".", "?", "!")) else f"{first}."
