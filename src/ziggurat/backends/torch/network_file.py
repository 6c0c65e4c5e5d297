"""Execution of a user's network file for PyTorch: its names, its imports, and errors that name its own lines."""

from __future__ import annotations

import ast
import builtins
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ziggurat.backends.torch import digits
from ziggurat.backends.torch.tower import Tower, model_property
from ziggurat.engine import network_files as engine_files
from ziggurat.engine.network_files import keep_source, message_of, need_user_model
from ziggurat.errors import NetworkCodeError
from ziggurat.zoo.renamed_networks import main_module, user_model_of

__all__ = ["load_network", "users_errors"]

_logger = logging.getLogger(__name__)

FILE_NAME: Final = "network_file"
"""``__name__`` of a network file."""

_KNOWN: Final = ("torch", "nn", "F", "np", "digits", "Tower", "model_property")
"""Names of the namespace of a network file."""

_OTHER_FRAMEWORK: Final = (
    "This file is trained with PyTorch. A file that uses TensorFlow belongs to the TensorFlow backend: "
    "choose it with `--backend tensorflow`, or on the TensorFlow tab."
)
_WITHOUT_TORCHVISION: Final = (
    "It needs a build of torchvision that fits the installed PyTorch. The standard networks have torchvision's names "
    "and load its weights; write the layers with `torch.nn`."
)
_OTHERS: Final = {
    "tensorflow": _OTHER_FRAMEWORK,
    "tf_slim": _OTHER_FRAMEWORK,
    "tf_keras": _OTHER_FRAMEWORK,
    "slim": _OTHER_FRAMEWORK,
}
_HINTS: Final = {"torchvision": _WITHOUT_TORCHVISION, "timm": _WITHOUT_TORCHVISION}


def load_network(text: str, path: str) -> type[nn.Module]:
    """Execute a network file and return its ``UserModel``.

    Args:
        text: the Python source.
        path: its name, for errors; need not exist.

    Raises:
        NetworkCodeError: where the file fails or defines no ``UserModel``; names the user's line.
    """
    keep_source(text, path)
    names = _namespace(path)
    with users_errors(path):
        exec(compile(text, path, "exec"), names)
    renamed = "" if "UserModel" in names else _renamed(text, names)
    found = need_user_model(names, path, {"Tower": Tower, "nn.Module": nn.Module}, renamed=renamed)
    for name in ("inference", "loss") if issubclass(found, Tower) else ():
        if not hasattr(found, name):
            raise NetworkCodeError(
                f"The `UserModel` in {path} has no `{name}`, which a `UserModel(Tower)` defines as a "
                "`@model_property`.",
                advice=f"Add it: @model_property, then `def {name}(self):`.",
                details={"file": path},
            )
    return found


def users_errors(path: str) -> AbstractContextManager[None]:
    """Turn whatever is raised inside into a ``NetworkCodeError`` that names the user's own file and line.

    What a device has no memory for is no error of the file: it stays as it is.

    Args:
        path: the network file's name.
    """
    return engine_files.users_errors(path, _KNOWN, _message, (torch.OutOfMemoryError,))


def _renamed(text: str, names: Mapping[str, Any]) -> str:
    """Return how a ``UserModel`` is made of the network of a file that has another name for it; empty for none."""
    modules = [
        name for name, each in names.items() if isinstance(each, type) and issubclass(each, nn.Module) and each != Tower
    ]
    tree = ast.parse(text)
    network = main_module(tree, modules)
    return user_model_of(tree, network).sentence if network else ""


def _namespace(path: str) -> dict[str, Any]:
    own_builtins = dict(vars(builtins))
    own_builtins["__import__"] = _import_for_user
    own_builtins["len"] = _length
    return {
        "__name__": FILE_NAME,
        "__file__": path,
        "__builtins__": own_builtins,
        "torch": torch,
        "nn": nn,
        "F": functional,
        "np": np,
        "digits": digits,
        "Tower": Tower,
        "model_property": model_property,
    }


def _length(values: Any) -> Any:
    """Return ``len(values)``; of a tensor in an export, a number that stays open: ``len`` would make it a constant."""
    return values.shape[0] if isinstance(values, torch.Tensor) and values.ndim else len(values)


def _module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(names)
    return made


_ALIASES: Final[Mapping[str, ModuleType]] = {
    "model": _module("model", Tower=Tower, model_property=model_property),
    "utils": digits,
    "digits": digits,
}
"""Modules that DIGITS's guides import; only a user's file sees them."""


def _import_for_user(
    name: str,
    globals_: Mapping[str, object] | None = None,
    locals_: Mapping[str, object] | None = None,
    wanted: tuple[str, ...] | None = (),
    level: int = 0,
) -> Any:
    first = name.partition(".")[0]
    if level:
        raise ModuleNotFoundError(_stands_alone("." * level + name), name=name)
    if name in _ALIASES:
        return _ALIASES[name]
    if first in _OTHERS:
        raise ImportError(f"`import {first}` is not for a PyTorch network. {_OTHERS[first]}", name=name)
    original: Callable[..., Any] = builtins.__import__
    try:
        return original(name, globals_, locals_, wanted or ())
    except (ImportError, RuntimeError, AttributeError) as error:
        if first in _HINTS:
            raise ImportError(f"`import {first}` failed: {error}. {_HINTS[first]}", name=name) from error
        if isinstance(error, ModuleNotFoundError) and error.name == first:
            advice = f"{_stands_alone(name)} If `{first}` is a published package, install it."
            raise ModuleNotFoundError(advice, name=name) from None
        raise


def _stands_alone(module: str) -> str:
    return (
        f"There is no module `{module}`. A network file stands alone: other files of its repository are not beside it. "
        "Copy what it uses of that module into the network file."
    )


def _message(error: BaseException) -> str:
    """Return what an error says, with the layer where it was raised."""
    text = message_of(error)
    layer = _layer_of(error)
    return f"{text} It was raised in {layer}." if layer else text


def _layer_of(error: BaseException) -> str:
    """Return the innermost layer of PyTorch whose ``forward`` raised, as it shows itself; empty for none."""
    found = ""
    step = error.__traceback__
    while step is not None:
        owner = step.tb_frame.f_locals.get("self")
        is_forward = step.tb_frame.f_code.co_name == "forward"
        if is_forward and isinstance(owner, nn.Module) and not list(owner.children()):
            found = f"the layer {owner!r}" if "\n" not in repr(owner) else f"the layer {type(owner).__name__}"
        step = step.tb_next
    return found
