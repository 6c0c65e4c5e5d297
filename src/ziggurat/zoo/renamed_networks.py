"""Advice for a network file of PyTorch whose network has a name of its own: the ``UserModel`` that makes it fit."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["UserModelLines", "main_module", "user_model_of"]

_VALUES: Final = {
    "nclasses": "classes classnum classesnum nbclasses nclass nclasses numclass numclasses numlabels nlabels",
    "input_shape[0]": "cin imagechannels imgchannels inch inchannel inchannels inputchannel inputchannels nchannels "
    "numchannels numinputchannels",
    "input_shape[-1]": "imagesize imgsize imsize inputsize",
    "input_shape": "imageshape imgshape inputshape",
}
"""What an argument of a network gets, and by which names it is known, without underscores."""

_UNKNOWN: Final = "…"
_VALUE_OF: Final = {name: value for value, names in _VALUES.items() for name in names.split()}


@dataclass(frozen=True)
class UserModelLines:
    """How a ``UserModel`` is made of a network with another name.

    Args:
        sentence: the same in words, for an error.
        code: lines for the end of the file, without a line break at their end; empty where an argument of the network
            is not known.
    """

    sentence: str
    code: str


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


def user_model_of(tree: ast.Module, network: ast.ClassDef) -> UserModelLines:
    """Return how a ``UserModel`` is made of a network with another name.

    Args:
        tree: the file.
        network: its class, such as that of ``main_module``.
    """
    method = _method(tree, network, "__init__")
    given = ", ".join(_arguments(method)) if method else ""
    head, start = f"class UserModel({network.name}):", "def __init__(self, nclasses, input_shape):"
    call = f"super().__init__({given})"
    return UserModelLines(
        f"Write below it `{head}` with `{start}`, and in that `{call}`.",
        "" if _UNKNOWN in given else f"{head}\n    {start}\n        {call}",
    )


def _arguments(method: ast.FunctionDef) -> Sequence[str]:
    """Return what a call of a network's ``__init__`` gives, by name: what is known, and what has no default."""
    arguments = method.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][1:]
    needed = set(names[: len(names) - len(arguments.defaults)])
    named = [each.arg for each in arguments.kwonlyargs]
    needed |= {name for name, value in zip(named, arguments.kw_defaults, strict=True) if value is None}
    values = {name: _VALUE_OF.get(name.replace("_", "").lower(), _UNKNOWN) for name in (*names, *named)}
    return [f"{name}={value}" for name, value in values.items() if value != _UNKNOWN or name in needed]


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
