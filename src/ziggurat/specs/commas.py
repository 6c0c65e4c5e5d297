"""Commas in the text of number fields: between the values of a list, or a decimal or thousands separator."""

from __future__ import annotations

import itertools
import re
from typing import Final

__all__ = ["comma_question"]

_BETWEEN: Final = re.compile(r",\s+|\s+|;\s*")
"""What separates values without doubt; a comma with nothing behind it may stand inside of a number."""

_DECIMAL: Final = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_GROUPS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_GROUPS_BY_POINT: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+,\d+")
_WHOLE: Final = re.compile(r"[+-]?\d+")


def comma_question(text: str, kind: str) -> str:
    """Return the question what a text with commas means; empty where its meaning is clear.

    Args:
        text: as it was typed, such as ``0,01``.
        kind: of the field, as in ``FieldDescription``.

    >>> comma_question("0,01", "number")
    'Did you mean 0.01? Write decimals with a point, and a blank after each comma of a list.'
    >>> comma_question("0.1,0.01", "number"), comma_question("0.1, 0.01", "number"), comma_question("8,16", "integer")
    ('', '', '')
    """
    if kind not in ("integer", "number", "list") or text.startswith("["):
        return ""
    parts = [part for part in _BETWEEN.split(text.strip()) if part]
    if kind == "list" and len(parts) < 2:
        return ""  # nothing but bare commas: the values of a list
    meant = [_meant(part, kind) for part in parts]
    if all(each == part for each, part in zip(meant, parts, strict=True)):
        return ""
    question = f"Did you mean {', '.join(meant)}? " if all(meant) else ""
    return f"{question}Write decimals with a point, and a blank after each comma of a list."


def _meant(part: str, kind: str) -> str:
    """Return the number that is probably meant; the part itself where it is clear, empty where nothing is probable."""
    if "," not in part:
        return part
    if kind != "list" and _GROUPS.fullmatch(part):
        whole = part.replace(",", "")
        is_decimal = kind == "number" and _DECIMAL.fullmatch(part)
        return f"{part.replace(',', '.')} or {whole}" if is_decimal else whole
    if kind == "integer":
        return part
    if _DECIMAL.fullmatch(part):
        return part.replace(",", ".")
    if kind != "list" and _GROUPS_BY_POINT.fullmatch(part):
        return part.replace(".", "").replace(",", ".")
    values = part.split(",")
    are_unclear = any(_WHOLE.fullmatch(one) and _WHOLE.fullmatch(other) for one, other in itertools.pairwise(values))
    return "" if kind == "number" and are_unclear else part
