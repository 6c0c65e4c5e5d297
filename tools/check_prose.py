"""Wording check: words that the glossary replaces, in comments, docstrings, page texts and documentation.

Code is skipped: text in backticks, names with underscores or dots, names of arguments in docstrings, addresses, tags
and template expressions.
``tools/words.py`` holds the words.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.source_tree import Finding, SourceFile, run
from tools.words import PROSE

__all__ = ["check", "complaints"]

_CODE = re.compile(
    r"^ +\w+:|\{[^{}\n]*\}|``[^`]*``|`[^`\n]*`|https?://\S+|[\w.-]*[/_][\w./-]*|\b\w+(?:\.\w+)+\b|--[\w-]+|\]\([^)]*\)",
    re.MULTILINE,
)
_MARKUP = re.compile(r"<[^>]*>|\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_WRONG = {re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE): right for pattern, right in PROSE.items()}
_GENERATED = "reference"


def check(files: Sequence[SourceFile]) -> Iterator[Finding]:
    """Yield each wrong word of the package's prose, of its templates and of the documentation beside it."""
    for file in files:
        if not file.is_network:
            for line, text in _python_prose(file.text):
                yield from _findings(file.path, line, text)
    package = files[0].path.parents[len(files[0].module.split(".")) - (1 if files[0].is_package else 2)]
    for path in sorted(package.rglob("*.html")):
        yield from _findings(path, 1, _blanked(_MARKUP, path.read_text(encoding="utf-8")))
    for path in sorted((package.parents[1] / "docs").rglob("*.md")):
        if _GENERATED not in path.parts:
            yield from _findings(path, 1, _blanked(_FENCE, path.read_text(encoding="utf-8")))


def complaints(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line from 0, complaint) for each wrong word in a text."""
    plain = _blanked(_CODE, text)
    for pattern, right in _WRONG.items():
        for found in pattern.finditer(plain):
            yield plain.count("\n", 0, found.start()), f"the glossary says {right}. Received: `{found.group()}`."


def _findings(path: Path, line: int, text: str) -> Iterator[Finding]:
    return (Finding(path, line + offset, complaint) for offset, complaint in complaints(text))


def _python_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of comments and of strings of several words."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and _is_sentence(token.string)):
            yield token.start[0], token.string


def _is_sentence(text: str) -> bool:
    """Return whether a string is more than one word, or than a list of names of classes."""
    words = text.strip("rbfu\"'").split()
    return len(words) > 1 and not all(word[0].isupper() for word in words)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Return a text with matches replaced by as many line breaks as they contain."""
    return pattern.sub(lambda match: "\n" * match.group().count("\n") or " ", text)


if __name__ == "__main__":
    sys.exit(run("prose", check, sys.argv[1:]))
