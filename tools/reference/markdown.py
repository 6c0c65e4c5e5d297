"""Conversion of docstrings to Markdown: sections, literal blocks, tables and escapes."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence

__all__ = ["cell", "docstring", "documented_arguments", "first_sentence", "render", "table"]

_SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises")
_ITEM = re.compile(r"(\*{0,2}\w[\w., /*]*?)(?: \([^)]*\))?: (.*)", re.DOTALL)


def docstring(thing: object) -> str:
    """Return the docstring of a thing itself, never one that it inherits or that dataclass made up; empty for none."""
    text = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
    name = getattr(thing, "__name__", "")
    return "" if isinstance(thing, type) and text.startswith(f"{name}(") else text


def first_sentence(text: str) -> str:
    """Return the first paragraph up to its first full stop, on one line."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".") + "." if paragraph else ""


def render(text: str) -> str:
    """Return a docstring as Markdown.

    Args:
        text: with its common indentation removed.
    """
    out: list[str] = []
    for kind, block in _joined(_blocks(text)):
        if kind == "text":
            out.append(_safe(block))
        elif kind in ("literal", "doctest"):
            out.append(f"```{'text' if kind == 'literal' else 'pycon'}\n{block}\n```")
        else:
            items = _items(block)
            bullets = [f"- `{name}`: {_safe(said)}" for name, said in items] or [f"- {_safe(' '.join(block.split()))}"]
            out.append(f"**{'Arguments' if kind == 'Args' else kind}**\n\n" + "\n".join(bullets))
    return "\n\n".join(out)


def documented_arguments(text: str) -> dict[str, str]:
    """Return name → what the section ``Args`` or ``Attributes`` says of it."""
    said: dict[str, str] = {}
    for kind, block in _blocks(text):
        if kind in ("Args", "Attributes"):
            for names, meaning in _items(block):
                said.update(dict.fromkeys(re.split(r", | / ", names), meaning))
    return said


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(header)} |", "|" + " --- |" * len(header)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def cell(text: str) -> str:
    """Return a text that may stand in a table."""
    return _safe(" ".join(text.split())).replace("|", "\\|")


def _safe(text: str) -> str:
    """Escape what Markdown would take for HTML, outside of code."""
    pieces = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.DOTALL)
    return "".join(piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces)


def _blocks(text: str) -> Iterable[tuple[str, str]]:
    """Yield (kind, text): ``text``, ``literal``, ``doctest``, or the name of a section."""
    section, literal = "", False
    for block in re.split(r"\n[ \t]*\n", text):
        head, _, rest = block.partition("\n")
        if head.rstrip(":") in _SECTIONS and head.endswith(":"):
            section, literal = head.rstrip(":"), False
            yield section, textwrap.dedent(rest)
        elif literal and block.startswith("    "):
            yield "literal", textwrap.dedent(block)
        elif block.startswith(">>>"):
            yield "doctest", block
        elif section and block.startswith("    "):
            yield "text", textwrap.dedent(block)
        else:
            literal = block.endswith("::")
            yield "text", block[:-1] if literal else block


def _joined(blocks: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Make one literal block of those that only empty lines keep apart."""
    whole: list[tuple[str, str]] = []
    for kind, block in blocks:
        if kind == "literal" and whole and whole[-1][0] == "literal":
            whole[-1] = (kind, f"{whole[-1][1]}\n\n{block}")
        else:
            whole.append((kind, block))
    return whole


def _items(block: str) -> list[tuple[str, str]]:
    """Return (name, text) for each entry of a section; lines that are indented belong to the entry above."""
    entries: list[str] = []
    for line in block.splitlines():
        if line.startswith(" ") and entries:
            entries[-1] += " " + line.strip()
        elif line.strip():
            entries.append(line.strip())
    matches = [_ITEM.fullmatch(entry) for entry in entries]
    return [(match[1], match[2]) for match in matches if match] if all(matches) else []
