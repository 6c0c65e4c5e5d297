"""How people choose samples of an evaluation by what their task knows of them: fields, and what they leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.errors import UnknownNameError, UsageError

__all__ = ["SampleChoice", "SampleField", "checked_choice"]

_NEARLY: Final = 1e-9


@dataclass(frozen=True)
class SampleField:
    """A field that samples are chosen by.

    Args:
        name: in addresses and in REST.
        title: for people.
        choices: value and title of each; empty for a number.
        low: the smallest number.
        high: the largest one.
        step: between numbers that a slider stops at.
        default: the value where nothing is asked for; empty where samples are not chosen by it then.
        is_of_report: whether figures and charts depend on it, and not only which samples are left.
    """

    name: str
    title: str
    choices: Sequence[tuple[str, str]] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.05
    default: str = ""
    is_of_report: bool = False

    def document(self) -> dict[str, Any]:
        """Return JSON values: name, title and default, and choices or the range of numbers."""
        if not self.choices:
            return {
                "name": self.name,
                "title": self.title,
                "default": self.default,
                "low": self.low,
                "high": self.high,
            }
        choices = [{"value": value, "title": title} for value, title in self.choices]
        return {"name": self.name, "title": self.title, "default": self.default, "choices": choices}


@dataclass(frozen=True)
class SampleChoice:
    """The samples that are left.

    Args:
        kept: (N) bool.
        scores: (N) float64, which ranks them in place of what the results keep; None where it is that.
    """

    kept: np.ndarray
    scores: np.ndarray | None = None


def checked_choice(fields: Sequence[SampleField], asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the value of each field as text: what was asked for, else its default.

    Raises:
        UnknownNameError: where there is no such field.
        UsageError: where a value cannot be.
    """
    known = {field.name: field for field in fields}
    for name in asked:
        if name not in known:
            raise UnknownNameError("field that samples of this task are chosen by", name, known)
    return {name: _checked(field, str(asked.get(name, "")).strip()) for name, field in known.items()}


def _checked(field: SampleField, value: str) -> str:
    if value == "":
        return field.default
    if field.choices:
        if value in (each for each, _ in field.choices):
            return value
        some = ", ".join(each for each, _ in field.choices[:12] if each)
        raise UsageError(f"`{field.name}` is one of its values.", received=value[:80], advice=f"Values: {some}, ….")
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not field.low - _NEARLY <= number <= field.high + _NEARLY:
        raise UsageError(f"`{field.name}` is a number from {field.low:g} to {field.high:g}.", received=value[:80])
    return f"{number:g}"
