"""Instant checks of a network file: syntax, the contract, and names that do not exist; nothing is executed."""

from __future__ import annotations

import ast
import threading
import warnings
from dataclasses import replace
from typing import Final

from ziggurat.entities.backend_info import DEFAULT_BACKEND
from ziggurat.workspace.network_checks.code import Code
from ziggurat.workspace.network_checks.contract import contract
from ziggurat.workspace.network_checks.findings import CodeFinding, Suspect, finding
from ziggurat.workspace.network_checks.frameworks import FRAMEWORKS, Framework
from ziggurat.workspace.network_checks.names import attributes, members, undefined

__all__ = ["check_network", "check_syntax"]

_PYTHON_2: Final = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "inconsistent use of tabs",
    "leading zeros in decimal integer literals",
    "invalid decimal literal",
)
"""Beginnings of what Python 3 says of a file in Python 2, which a worker rewrites before it runs it."""

_MOST: Final = 50
_LONGEST: Final = 100_000
"""Characters of the longest text that is checked, which takes two seconds at most; networks have a tenth of them."""

_PARSING: Final = threading.Lock()
"""Filters of warnings hold for the whole process: one thread at a time changes them."""


def check_network(text: str, *, backend: str = DEFAULT_BACKEND) -> list[CodeFinding]:
    """Return the mistakes in the text of a network file, by line; at most 50, and none of a text that is too long.

    Args:
        text: of the file.
        backend: that the file is for; beyond syntax, only files for TensorFlow and PyTorch are checked.
    """
    if len(text) > _LONGEST:
        return []
    # Python warns of a file while it parses it, such as of an unknown escape: that would fill the log of the server.
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            return [] if _is_python_2(error) else [_of_syntax(error, text)]
        except (ValueError, RecursionError, MemoryError) as error:  # NUL characters; deeper than Python reads
            return [finding(1, 1, 1, "error", f"Python cannot read the file: {error}.")]
        framework = FRAMEWORKS.get(backend)
        if framework is None:
            return []
        try:
            return _found(text, tree, framework)
        except RecursionError:  # Python reads it, and it is too deep to be judged here
            return []


def check_syntax(text: str) -> CodeFinding | None:
    """Return why Python cannot read a text; None where it can. Nothing is executed."""
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError as error:
            advice = "It is Python 2: convert the line to Python 3." if _is_python_2(error) else ""
            return replace(_of_syntax(error, text), advice=advice)
        except (ValueError, RecursionError, MemoryError) as error:
            return finding(1, 1, 1, "error", f"Python cannot read the file: {error}.")
    return None


def _found(text: str, tree: ast.Module, framework: Framework) -> list[CodeFinding]:
    code = Code.of(tree, framework)
    suspects = [*attributes(code), *members(code), *undefined(text, code)]
    found = [*(Suspect(each) for each in contract(code)), *suspects]
    first = sorted(found, key=lambda each: (each.finding.line, each.finding.column))[:_MOST]
    return [each.complete() for each in first]


def _is_python_2(error: SyntaxError) -> bool:
    return any(str(error.msg).startswith(words) for words in _PYTHON_2)


def _of_syntax(error: SyntaxError, text: str) -> CodeFinding:
    lines = text.count("\n") + 1
    line = min(max(error.lineno or 1, 1), lines)
    column = max(error.offset or 1, 1)
    end = error.end_offset or 0
    last = end if error.end_lineno == error.lineno and end > column else column + 1
    return finding(line, column, last, "error", f"Syntax error: {error.msg}.")
