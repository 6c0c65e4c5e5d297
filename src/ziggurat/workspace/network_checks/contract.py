"""Contract of a network file: its class ``UserModel``, and what that must define."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from ziggurat.errors import broken_rule, nearest_names
from ziggurat.workspace.network_checks.code import (
    Code,
    bound_names,
    class_members,
    is_dynamic,
    is_named,
    is_of_modules,
    lineage,
)
from ziggurat.workspace.network_checks.findings import CodeFinding, at, finding
from ziggurat.workspace.network_checks.frameworks import MEMBERS
from ziggurat.workspace.network_checks.module_contract import module_contract
from ziggurat.zoo.renamed_networks import main_module, user_model_of

__all__ = ["contract"]

_REQUIRED: Final = ("inference", "loss")


def contract(code: Code) -> Iterator[CodeFinding]:
    """Yield what is wrong with the class of the network."""
    if "UserModel" not in code.classes:
        if not any("UserModel" in bound_names(node) for node in ast.walk(code.tree)):
            yield _no_class(code)
        return
    model = code.classes["UserModel"]
    ancestors = lineage(code, model)
    if not model.bases:
        yield _no_base(code, model)
    if ancestors is None or (not model.bases and code.framework.takes_modules):
        return
    members = class_members(ancestors)
    if is_of_modules(code, ancestors):
        yield from module_contract(code, model, members)
    else:
        yield from _tower_contract(code, model, members)


def _tower_contract(code: Code, model: ast.ClassDef, members: Mapping[str, ast.stmt]) -> Iterator[CodeFinding]:
    later = {
        node.attr
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    for name in _REQUIRED:
        if name in members:
            yield from _undecorated(members[name], name)
            continue
        if name in later or is_dynamic(code.tree):  # such as ``UserModel.loss = …``
            continue
        known = code.framework.names[MEMBERS]
        nearest = nearest_names(name, [each for each in members if each not in known], at_most=1)
        place: ast.stmt = members[nearest[0]] if nearest else model
        width = len(f"def {nearest[0]}") if nearest else len("class UserModel")
        came = f"`{nearest[0]}`" if nearest else None
        advice = f"Add it: `@model_property`, then `def {name}(self):`." if not nearest else f"Name it `{name}`."
        rule = broken_rule(f"`UserModel` must define `{name}` as a `@model_property`.", came)
        yield at(place, "error", rule, advice, width=width)


def _no_base(code: Code, model: ast.ClassDef) -> CodeFinding:
    rule = "`UserModel` must inherit `Tower`."
    if code.framework.takes_modules:
        rule = "`UserModel` must inherit `nn.Module`, or `Tower`."
    return at(model, "error", rule, _advice(code), width=len("class UserModel"))


def _no_class(code: Code) -> CodeFinding:
    functions = [node for node in code.tree.body if isinstance(node, ast.FunctionDef) and node.name == "build_model"]
    if functions:
        rule = "The file defines no class `UserModel`, but a function `build_model`."
        advice = "The file is for DIGITS before its TensorFlow release: docs/how-to/bring-a-digits-network.md helps."
        return at(functions[0], "error", rule, advice, width=len("def build_model"))
    near = nearest_names("UserModel", code.classes)
    modules = [name for name, node in code.classes.items() if _is_of_modules(code, node)]
    towers = [name for name, node in code.classes.items() if any(is_named(base, "Tower") for base in node.bases)]
    network = None if near or towers else main_module(code.tree, modules)
    found = code.classes[(near or towers)[-1]] if near or towers else network
    if found is None:
        return finding(1, 1, 1, "error", "The file defines no class `UserModel`.", _advice(code))
    rule = f"The file defines no class `UserModel`, but `{found.name}`."
    lines = user_model_of(code.tree, network) if network else None
    advice = lines.sentence if lines else _advice(code)
    wrong = at(found, "error", rule, advice, width=len(f"class {found.name}"))
    return replace(wrong, missing_code=lines.code) if lines else wrong


def _is_of_modules(code: Code, node: ast.ClassDef) -> bool:
    ancestors = lineage(code, node) if node.bases else None
    return ancestors is not None and is_of_modules(code, ancestors)


def _advice(code: Code) -> str:
    return f"Write `class UserModel({'nn.Module' if code.framework.takes_modules else 'Tower'}):`."


def _undecorated(statement: ast.stmt, name: str) -> Iterator[CodeFinding]:
    if isinstance(statement, ast.FunctionDef) and not statement.decorator_list:
        rule = f"`{name}` must be a `@model_property`: without it, `self.{name}` is a method and no tensor."
        yield at(statement, "error", rule, "Write `@model_property` above it.", width=len(f"def {name}"))
