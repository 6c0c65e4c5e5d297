"""Sleep check: no test sleeps, but for the one helper that waits for it, ``tests/waiting.py``.

A sleep is too short on a busy machine and too long on any other. Found are calls of functions that are named ``sleep``,
names of ``time.sleep`` and ``asyncio.sleep`` that are passed on or imported, ``wait_for_timeout`` of a browser's page,
and all of these in strings, which hold the programs that tests start. ``asyncio.sleep(0)`` lets others run, and stays.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.source_tree import Finding

__all__ = ["HELPER", "check", "main"]

HELPER = Path("tests", "waiting.py")

_MODULES = ("time", "asyncio")
_NAMES = ("sleep", "wait_for_timeout")
_IN_TEXT = re.compile(r"\b(?:sleep|wait_for_timeout)\((?!0\))|\bfrom (?:time|asyncio) import [^\n]*\bsleep\b")


def check(root: Path) -> Iterator[Finding]:
    """Yield each sleep below ``root/tests``, by file and line."""
    for path in sorted((root / HELPER.parent).rglob("*.py")):
        if path.relative_to(root) == HELPER:
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        except SyntaxError as error:
            yield Finding(path, error.lineno or 1, f"a test is Python. Received: {error.msg}.")
            continue
        for line, found in _sleeps(tree):
            yield Finding(
                path,
                line,
                f"a test does not sleep. Received: {found}. Wait for what is to come with `wait_until` of {HELPER}; "
                "a program in a process of its own blocks on `threading.Event().wait`.",
            )


def main(arguments: Sequence[str]) -> int:
    """Check the tree that ``--root`` names, print findings as ``path:line: message``, and return the exit code."""
    parser = argparse.ArgumentParser(description="sleeps")
    parser.add_argument("--root", type=Path, default=Path(), help="folder that holds tests/")
    root: Path = parser.parse_args(arguments).root
    findings = sorted(set(check(root)))
    for finding in findings:
        print(f"{finding.path.relative_to(root)}:{finding.line}: {finding.message}")
    print(f"sleeps: {len(findings)} findings" if findings else "sleeps: nothing to report")
    return 1 if findings else 0


def _sleeps(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name_of(node.func) in _NAMES:
            if ast.unparse(node) != "asyncio.sleep(0)":
                yield node.lineno, f"`{ast.unparse(node)}`"
        elif isinstance(node, ast.Attribute) and node.attr == "sleep" and _name_of(node.value) in _MODULES:
            if not _is_called(node, tree):
                yield node.lineno, f"`{ast.unparse(node)}`"
        elif isinstance(node, ast.ImportFrom) and node.module in _MODULES:
            if any(alias.name == "sleep" for alias in node.names):
                yield node.lineno, f"`{ast.unparse(node)}`"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for found in _IN_TEXT.finditer(node.value):
                line = node.lineno + node.value.count("\n", 0, found.start())
                yield min(line, node.end_lineno or line), f"`{found.group()}` in a string"


def _is_called(attribute: ast.Attribute, tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Call) and node.func is attribute for node in ast.walk(tree))


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
