"""Findings of the instant checks: a mistake at its place, with what was meant."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from ziggurat.errors import nearest_names

__all__ = ["CodeFinding", "Level", "Suspect", "at", "finding"]

Level = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class CodeFinding:
    """A mistake in a network file.

    Args:
        line: from 1.
        column: from 1, of its first character.
        end_column: from 1, after its last character.
        level: ``error`` where the file cannot work, ``warning`` where a line cannot.
        rule: what holds, in one sentence.
        advice: what to do; empty where that is plain.
        missing_code: lines that mend it at the end of the file; empty where no lines are known to.
    """

    line: int
    column: int
    end_column: int
    level: Level
    rule: str
    advice: str = ""
    missing_code: str = ""

    @property
    def sentence(self) -> str:
        """Rule and advice."""
        return f"{self.rule} {self.advice}".strip()


def finding(line: int, column: int, end_column: int, level: Level, rule: str, advice: str = "") -> CodeFinding:
    """Return a finding at columns of a line, all from 1."""
    return CodeFinding(line=line, column=column, end_column=end_column, level=level, rule=rule, advice=advice)


def at(node: ast.expr | ast.stmt, level: Level, rule: str, advice: str = "", *, width: int = 0) -> CodeFinding:
    """Return a finding at a node: its first line, or ``width`` characters of it."""
    end = (node.end_col_offset or 0) if node.end_lineno == node.lineno else node.col_offset + max(width, 1)
    last = node.col_offset + width if width else end
    return finding(node.lineno, node.col_offset + 1, last + 1, level, rule, advice)


@dataclass(frozen=True)
class Suspect:
    """A finding whose nearest names are not searched for yet: that takes longest, and few findings are shown.

    Args:
        finding: without the question.
        name: that does not exist; empty where nothing is asked.
        known: names that exist in its place.
        owner: what they belong to, with its dot; empty for none.
    """

    finding: CodeFinding
    name: str = ""
    known: Collection[str] = ()
    owner: str = ""

    def complete(self) -> CodeFinding:
        """Return the finding with the question which name was meant."""
        nearest = nearest_names(self.name, self.known) if self.name else []
        if not nearest:
            return self.finding
        names = " or ".join(f"`{self.owner}{each}`" for each in nearest)
        return replace(self.finding, advice=f"Did you mean {names}?")
