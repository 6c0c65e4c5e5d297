"""Parser of numeric filters for jobs: ``learning_rate > 0.01 and val/accuracy > 0.98``."""

from __future__ import annotations

import re
from typing import Any, Final

from ziggurat.errors import UsageError

__all__ = ["parse_conditions"]

_CONDITION: Final = re.compile(r"\s*([A-Za-z_][\w./:\- ]*?)\s*(<=|>=|!=|==|=|<|>)\s*(.*\S)\s*")
_WORDS: Final = {"true": True, "false": False}


def parse_conditions(text: str) -> tuple[tuple[str, str, Any], ...]:
    """Return the conditions of a text, all of which must hold, as ``ziggurat.entities.JobFilter`` has them.

    Args:
        text: names of a spec's field or of a curve, an operator (``<``, ``<=``, ``=``, ``!=``, ``>=``, ``>``) and a
            value; several are joined by ``and``.

    Raises:
        UsageError: where a part is no condition.
    """
    return tuple(_condition(part) for part in re.split(r"\s+and\s+", text, flags=re.IGNORECASE) if part.strip())


def _condition(text: str) -> tuple[str, str, Any]:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(
            "A condition is a name, an operator and a value.",
            received=f"`{text.strip()}`",
            advice="As in `learning_rate > 0.01 and val/accuracy > 0.98`.",
        )
    name, operator, value = found.groups()
    return name, "=" if operator == "==" else operator, _value(value)


def _value(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
