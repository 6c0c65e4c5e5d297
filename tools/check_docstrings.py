"""Check that modules and public classes, functions and methods have docstrings.

A method may go without a docstring where it overrides a documented method of one of the package's own classes. A module
that defines something public lists it in ``__all__``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence

from tools.source_tree import Definition, Finding, SourceFile, public_definitions, run

__all__ = ["check"]


def check(files: Sequence[SourceFile]) -> Iterator[Finding]:
    """Yield what has no docstring, and modules without ``__all__``."""
    bases = _bases(files)
    documented = _documented_methods(files)
    for file in files:
        text = ast.get_docstring(file.tree)
        if not text:
            yield file.finding(1, f"a module has a docstring that says what is in it. Received: none in {file.module}.")
        elif text.startswith("Owns "):
            yield file.finding(
                1, f"a module's docstring begins with a noun phrase. Received: {text.splitlines()[0]!r}."
            )
        definitions = list(public_definitions(file))
        if definitions and not _has_all(file.tree):
            yield file.finding(1, f"a module lists its public names in `__all__`. Received: none in {file.module}.")
        for name, node, owner in definitions:
            if ast.get_docstring(node) or _needs_none(node):
                continue
            if owner is not None and node.name in _inherited(owner.name, bases, documented):
                continue
            kind = "class" if isinstance(node, ast.ClassDef) else "method" if owner else "function"
            yield file.finding(
                node,
                f"a public {kind} has a docstring. Received: none at `{name}`. Write it, or begin the name with _.",
            )


def _needs_none(node: Definition) -> bool:
    """Overloads repeat a function that is documented; a setter repeats its property."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(name.split(".")[-1] in ("overload", "setter", "deleter") for name in decorators)


def _has_all(tree: ast.Module) -> bool:
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _classes(files: Sequence[SourceFile]) -> Iterator[ast.ClassDef]:
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef):
                yield node


def _bases(files: Sequence[SourceFile]) -> dict[str, set[str]]:
    """Return class name → names of its bases; classes of one name count as one."""
    bases: dict[str, set[str]] = {}
    for node in _classes(files):
        names = {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}
        bases.setdefault(node.name, set()).update(names - {node.name})
    return bases


def _documented_methods(files: Sequence[SourceFile]) -> dict[str, set[str]]:
    documented: dict[str, set[str]] = {}
    for node in _classes(files):
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        names = {method.name for method in methods if ast.get_docstring(method)}
        documented.setdefault(node.name, set()).update(names)
    return documented


def _inherited(name: str, bases: dict[str, set[str]], documented: dict[str, set[str]]) -> set[str]:
    """Return the documented methods of all classes above ``name``."""
    waiting, seen, methods = [*bases.get(name, ())], {name}, set()
    while waiting:
        above = waiting.pop()
        if above in seen:
            continue
        seen.add(above)
        methods |= documented.get(above, set())
        waiting.extend(bases.get(above, ()))
    return methods


if __name__ == "__main__":
    sys.exit(run("docstrings", check, sys.argv[1:]))
