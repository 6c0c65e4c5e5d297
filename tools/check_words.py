"""Glossary check: each thing has one word in public names, and a quantity carries its unit.

Public names are those of modules, classes, functions, methods, arguments and fields. They are split at underscores and
capitals, and whole parts are compared: ``lmdb`` has no part ``db``. ``tools/words.py`` holds the words.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence

from tools.source_tree import Definition, Finding, SourceFile, is_public, public_definitions, run
from tools.words import ALLOWED, CLASS_WORDS, NEEDS_UNIT, OTHERS, WORDS

__all__ = ["check", "complaints", "parts_of"]


def check(files: Sequence[SourceFile]) -> Iterator[Finding]:
    """Yield each wrong word in a public name."""
    for file in files:
        if file.module.startswith(OTHERS):
            continue
        for name, node, kind in _names(file):
            for complaint in complaints(name, kind):
                yield file.finding(node, f"{complaint} Received: the {kind} `{name}`.")


def complaints(name: str, kind: str) -> Iterator[str]:
    """Yield what is wrong with one name.

    Args:
        name: without the names of what it stands in.
        kind: ``module``, ``class``, ``function``, ``argument`` or ``field``.
    """
    if name in ALLOWED:
        return
    parts = parts_of(name)
    words = {**WORDS, **CLASS_WORDS} if kind == "class" else WORDS
    for wrong, right in words.items():
        length = wrong.count("_") + 1
        if any("_".join(parts[at : at + length]) == wrong for at in range(len(parts) - length + 1)):
            yield f"the glossary says {right}, not `{wrong}`."
    if kind in ("argument", "field") and parts and parts[-1] in NEEDS_UNIT:
        yield f"a quantity carries its unit: `{name}_s` for seconds."


def parts_of(name: str) -> list[str]:
    """Return the words of a name, in lower case.

    >>> parts_of("HTTPServer_v2"), parts_of("steps_per_epoch")
    (['http', 'server', 'v2'], ['steps', 'per', 'epoch'])
    """
    apart = re.sub(r"([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])", r"\1\3_\2\4", name)
    return [part for part in apart.lower().split("_") if part]


def _names(file: SourceFile) -> Iterator[tuple[str, ast.AST | int, str]]:
    module = file.module.split(".")[-1]
    if is_public(module):
        yield module, 1, "module"
    for qualified, node, _owner in public_definitions(file):
        kind = "class" if isinstance(node, ast.ClassDef) else "function"
        yield qualified.split(".")[-1], node, kind
        yield from _inside(node)


def _inside(node: Definition) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield the arguments of a function, or the fields of a class and the arguments of its ``__init__``."""
    if not isinstance(node, ast.ClassDef):
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        yield from ((each.arg, each, "argument") for each in every if is_public(each.arg))
        return
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if is_public(statement.target.id):
                yield statement.target.id, statement, "field"
        elif isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            yield from _inside(statement)


if __name__ == "__main__":
    sys.exit(run("words", check, sys.argv[1:]))
