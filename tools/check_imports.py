"""Import rules that import-linter leaves open: no own import inside a function, and no cycle of modules.

Both hold for folders with an ``__init__.py`` only, which import-linter needs as well, so every folder has one.
What stands under ``if TYPE_CHECKING:`` is for the type checker and counts for neither rule.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tools.source_tree import PACKAGE, Finding, SourceFile, run

__all__ = ["Import", "check", "own_imports"]


@dataclass(frozen=True)
class Import:
    """One import of an own module.

    Args:
        importer: the file in which it stands.
        imported: dotted name of the module.
        line: from 1.
        function: name of the function around it; empty at the top of a module.
    """

    importer: SourceFile
    imported: str
    line: int
    function: str


def check(files: Sequence[SourceFile]) -> Iterator[Finding]:
    """Yield what breaks a rule."""
    known = {file.module for file in files}
    folders = {file.path.parent: file for file in reversed(files)}
    for folder in sorted(folders.keys() - {file.path.parent for file in files if file.is_package}):
        yield folders[folder].finding(1, "a folder of modules has an `__init__.py`. Received: none. Write it.")
    imports = [found for file in files for found in own_imports(file, known)]
    for found in imports:
        if found.function:
            yield found.importer.finding(
                found.line,
                f"an own module is imported at the top of a file. Received: {found.imported} inside "
                f"`{found.function}`. Move it up; where that closes a cycle, move what both need below both.",
            )
    yield from _cycles([found for found in imports if not found.function])


def own_imports(file: SourceFile, known: set[str]) -> Iterator[Import]:
    """Yield the imports of own modules that run, in functions too.

    Args:
        file: where to look.
        known: names of all own modules.
    """
    yield from _walk(file, file.tree, known, "")


def _walk(file: SourceFile, node: ast.AST, known: set[str], function: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_for_types(child.test):
            for other in child.orelse:
                yield from _walk(file, other, known, function)
        elif isinstance(child, ast.Import | ast.ImportFrom):
            for name in _imported(file, child, known):
                yield Import(file, name, child.lineno, function)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk(file, child, known, child.name)
        else:
            yield from _walk(file, child, known, function)


def _is_for_types(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _imported(file: SourceFile, node: ast.Import | ast.ImportFrom, known: set[str]) -> Iterable[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE]
    base = node.module or ""
    if node.level:
        parts = file.module.split(".")
        up = node.level - file.is_package
        base = ".".join([*parts[: len(parts) - up], *([base] if base else [])])
    if base.split(".")[0] != PACKAGE:
        return []
    whole = (f"{base}.{alias.name}" for alias in node.names)
    return dict.fromkeys(name if name in known else base for name in whole)


def _cycles(imports: Sequence[Import]) -> Iterator[Finding]:
    steps: dict[str, dict[str, Import]] = {}
    for found in imports:
        steps.setdefault(found.importer.module, {}).setdefault(found.imported, found)
    seen: set[frozenset[str]] = set()
    for module in sorted(steps):
        cycle = _way_back(module, steps)
        if cycle and frozenset(cycle) not in seen:
            seen.add(frozenset(cycle))
            text = " -> ".join([*cycle, module])
            for here, there in zip(cycle, [*cycle[1:], module], strict=True):
                found = steps[here][there]
                yield found.importer.finding(
                    found.line,
                    f"modules import one another in one direction only. Received: the cycle {text}. "
                    f"Cut it here or at another of its arrows.",
                )


def _way_back(start: str, steps: Mapping[str, Mapping[str, Import]]) -> list[str]:
    """Return a shortest cycle through ``start``, or nothing."""
    ways = deque([[start]])
    reached: set[str] = set()
    while ways:
        way = ways.popleft()
        for following in sorted(steps.get(way[-1], {})):
            if following == start:
                return way
            if following not in reached:
                reached.add(following)
                ways.append([*way, following])
    return []


if __name__ == "__main__":
    sys.exit(run("imports", check, sys.argv[1:]))
