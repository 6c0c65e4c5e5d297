"""Access of the tools to the package's source: files, syntax trees, and findings."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PACKAGE", "Definition", "Finding", "SourceFile", "is_public", "public_definitions", "read_package", "run"]

PACKAGE = "ziggurat"
NETWORKS = "zoo"  # the folders below it hold networks as users write them: files that are executed and never imported
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Finding:
    """One place where a rule does not hold.

    Args:
        path: the file.
        line: from 1.
        message: the rule, what came, and what to do.
    """

    path: Path
    line: int
    message: str


@dataclass(frozen=True)
class SourceFile:
    """One module of the package.

    Args:
        path: the file.
        module: its dotted name (``ziggurat.engine`` for an ``__init__.py``).
        is_package: whether it is an ``__init__.py``.
        is_network: whether it is a standard network of the zoo, written as users write theirs.
        text: what is in it.
        tree: the same, parsed.
    """

    path: Path
    module: str
    is_package: bool
    is_network: bool
    text: str
    tree: ast.Module

    def finding(self, node: ast.AST | int, message: str) -> Finding:
        """Return a finding at a node or a line of this file."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return Finding(self.path, line, message)


def read_package(root: Path) -> tuple[list[SourceFile], list[Finding]]:
    """Return every file below ``root/src/ziggurat``, by name, and what is no Python.

    Raises:
        SystemExit: where there is no module.
    """
    source = root / "src"
    paths = sorted((source / PACKAGE).rglob("*.py"))
    if not paths:
        raise SystemExit(f"No module below {source / PACKAGE}. Give the folder that holds src/ with --root.")
    files: list[SourceFile] = []
    broken: list[Finding] = []
    for path in paths:
        try:
            files.append(_read(path, source))
        except SyntaxError as error:
            broken.append(Finding(path, error.lineno or 1, f"a module is Python. Received: {error.msg}."))
    return files, broken


def public_definitions(file: SourceFile) -> Iterator[tuple[str, Definition, ast.ClassDef | None]]:
    """Yield (qualified name, node, class it stands in) of public classes, functions and methods, nested ones apart."""
    yield from _definitions(file.tree.body, "", None)


def is_public(name: str) -> bool:
    """Return whether users may touch a name."""
    return not name.startswith("_")


def run(
    title: str,
    check: Callable[[Sequence[SourceFile]], Iterable[Finding]],
    arguments: Sequence[str],
    *,
    with_networks: bool = False,
) -> int:
    """Check the tree that ``--root`` names, print findings as ``path:line: message``, and return the exit code.

    Args:
        title: what is checked.
        check: gives what it finds in files.
        arguments: of the command.
        with_networks: whether the networks of the zoo are checked too.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--root", type=Path, default=Path(), help="folder that holds src/")
    root: Path = parser.parse_args(arguments).root
    files, broken = read_package(root)
    findings = sorted({*broken, *check([file for file in files if with_networks or not file.is_network])})
    for finding in findings:
        print(f"{finding.path.relative_to(root)}:{finding.line}: {finding.message}")
    print(f"{title}: {len(findings)} findings" if findings else f"{title}: nothing to report")
    return 1 if findings else 0


def _read(path: Path, source: Path) -> SourceFile:
    is_package = path.name == "__init__.py"
    parts = path.relative_to(source).with_suffix("").parts
    text = path.read_text(encoding="utf-8")
    module = ".".join(parts[:-1] if is_package else parts)
    return SourceFile(path, module, is_package, NETWORKS in parts[:-2], text, ast.parse(text, str(path)))


def _definitions(
    body: Sequence[ast.stmt], prefix: str, owner: ast.ClassDef | None
) -> Iterator[tuple[str, Definition, ast.ClassDef | None]]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _definitions([*node.body, *node.orelse], prefix, owner)
        if not isinstance(node, Definition) or not is_public(node.name):
            continue
        yield prefix + node.name, node, owner
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, f"{prefix}{node.name}.", node)
