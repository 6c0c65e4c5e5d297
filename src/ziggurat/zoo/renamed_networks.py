"""Advice for a network file of PyTorch whose network has a name of its own: the ``UserModel`` that makes it fit."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import Final

__all__ = ["main_module", "user_model_of"]

_VALUES: Final = {
    "nclasses": "classes classnum classesnum nbclasses nclass nclasses numclass numclasses numlabels nlabels",
    "input_shape[0]": "cin imagechannels imgchannels inch inchannel inchannels inputchannel inputchannels nchannels "
    "numchannels numinputchannels",
    "input_shape[-1]": "imagesize imgsize imsize inputsize",
}
"""What an argument of a network gets, and by which names it is known, without underscores."""

_VALUE_OF: Final = {name: value for value, names in _VALUES.items() for name in names.split()}


def main_module(tree: ast.Module, modules: Collection[str]) -> ast.ClassDef | None:
    """Return the class that is the network: the last one that no other module of the file is made of.

    Args:
        tree: the file.
        modules: names of its classes that are modules.
    """
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in modules]
    parts = {
        each.id
        for node in classes
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and each.id != node.name and isinstance(each.ctx, ast.Load)
    }
    of_one_input = [node for node in classes if _takes_one_input(node)]
    whole = [node for node in of_one_input if node.name not in parts]
    return ([None, *classes, *of_one_input, *whole])[-1]


def user_model_of(tree: ast.Module, network: ast.ClassDef) -> str:
    """Return the sentence that tells how a ``UserModel`` is made of a network with another name.

    Args:
        tree: the file.
        network: its class, such as that of ``main_module``.
    """
    method = _method(tree, network, "__init__")
    given = ", ".join(_arguments(method)) if method else ""
    return (
        f"Write behind it `class UserModel({network.name}):` with `def __init__(self, nclasses, input_shape):`, "
        f"and in that `super().__init__({given})`."
    )


def _arguments(method: ast.FunctionDef) -> Sequence[str]:
    """Return what a call of a network's ``__init__`` gives, by name: what is known, and what has no default."""
    arguments = method.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][1:]
    needed = set(names[: len(names) - len(arguments.defaults)])
    named = [each.arg for each in arguments.kwonlyargs]
    needed |= {name for name, value in zip(named, arguments.kw_defaults, strict=True) if value is None}
    values = {name: _VALUE_OF.get(name.replace("_", "").lower(), "…") for name in (*names, *named)}
    return [f"{name}={value}" for name, value in values.items() if value != "…" or name in needed]


def _takes_one_input(node: ast.ClassDef) -> bool:
    forward = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "forward"), None)
    if forward is None:
        return True
    arguments = forward.args
    return len(arguments.args) - len(arguments.defaults) == 2


def _method(tree: ast.Module, node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """Return a method of a class, or of the nearest ancestor in the file that has it."""
    own = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == name), None)
    if own is not None:
        return own
    bases = {each.id for each in node.bases if isinstance(each, ast.Name)} - {node.name}
    parents = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name in bases]
    return next((found for each in parents if (found := _method(tree, each, name))), None)
