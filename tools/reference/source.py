"""Reader of names, docstrings and tables in a module's source, without importing it."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "assigned_in",
    "attributes_in",
    "call_text",
    "class_in",
    "functions_in",
    "table_in",
    "text_of",
    "tree_of",
]


def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module; its packages are imported, it is not."""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))


def text_of(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    """Return a docstring without its indentation; empty for none."""
    return inspect.cleandoc(ast.get_docstring(node) or "")


def class_in(tree: ast.Module, name: str) -> ast.ClassDef:
    """Return a class by its name."""
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def functions_in(owner: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Return the functions of a module, or the methods of a class, in their order."""
    return (node for node in owner.body if isinstance(node, ast.FunctionDef))


def call_text(function: ast.FunctionDef) -> str:
    """Return ``name(a, b=1.0)``: what a file writes, which is without types."""
    arguments = [each.arg for each in function.args.args if each.arg != "self"]
    defaults = [ast.unparse(value) for value in function.args.defaults]
    without = len(arguments) - len(defaults)
    written = [*arguments[:without], *(f"{name}={value}" for name, value in zip(arguments[without:], defaults))]
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    written += [each.arg if value is None else f"{each.arg}={ast.unparse(value)}" for each, value in named]
    return f"{function.name}({', '.join(written)})"


def assigned_in(owner: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, value) of the assignments in a module or class, in their order."""
    for node in owner.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(targets[0], ast.Name) and value is not None:
            yield targets[0].id, value


def attributes_in(owner: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the attributes of a class that have a text below them."""
    for node, below in zip(owner.body, owner.body[1:], strict=False):
        text = below.value if isinstance(below, ast.Expr) else None
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(text, ast.Constant):
            yield node.target.id, inspect.cleandoc(str(text.value))


def table_in(tree: ast.Module, name: str) -> dict[str, str]:
    """Return a literal table with text keys; values that are no text are left empty."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if isinstance(value, ast.Dict) and isinstance(targets[0], ast.Name) and targets[0].id == name:
            pairs = [(key, each) for key, each in zip(value.keys, value.values) if isinstance(key, ast.Constant)]
            return {str(key.value): str(each.value) if isinstance(each, ast.Constant) else "" for key, each in pairs}
    raise LookupError(f"The source has a table named {name}.")
