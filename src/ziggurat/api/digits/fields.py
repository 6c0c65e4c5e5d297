"""Fields of DIGITS's forms: each is a text with DIGITS's default and limits; errors are collected."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ziggurat.specs import comma_question

__all__ = ["Fields", "FormError"]

_Value = TypeVar("_Value")
_OFF = ("", "0", "false", "n", "no", "off", "none")


class FormError(Exception):
    """A form is not valid.

    Args:
        errors: field → messages.
    """

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        self.errors = {name: list(messages) for name, messages in errors.items()}
        super().__init__(json.dumps(self.errors))


class Fields:
    """The fields of a form; ``check`` raises when all were read.

    Args:
        values: field → text, as it was sent.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {name: value.strip() for name, value in values.items()}
        self.errors: dict[str, list[str]] = {}

    def text(self, name: str, default: str = "", *, required: bool = False) -> str:
        """Return a text; the default where it is empty."""
        value = self._values.get(name) or default
        if required and not value:
            self.refuse(name, "This field is required.")
        return value

    def choice(self, name: str, default: str, known: Sequence[str]) -> str:
        """Return one of the known texts, whatever its case."""
        value = self.text(name, default)
        found = next((each for each in known if each.lower() == value.lower()), None)
        if found is None:
            self.refuse(name, f"Not a valid choice: {value}. Known: {', '.join(known)}.")
        return found or default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether a box is ticked; one that was not sent has the default."""
        return default if name not in self._values else self._values[name].lower() not in _OFF

    def whole(self, name: str, default: int, least: int = 0, most: int = 2**31) -> int:
        """Return a whole number."""
        return self._number(name, self._values.get(name, ""), default, (least, most), int)

    def real(self, name: str, default: float, least: float = 0.0, most: float = float("inf")) -> float:
        """Return a number."""
        return self._number(name, self._values.get(name, ""), default, (least, most), float)

    def maybe_whole(self, name: str, least: int = 1) -> int | None:
        """Return a whole number, or None where the field is empty."""
        return self.whole(name, least, least) if self._values.get(name) else None

    def wholes(self, name: str, least: int = 1) -> list[int]:
        """Return the numbers of a list such as ``8, 10`` or ``[8, 10]``; empty where the field is."""
        return [self._number(name, part, least, (least, 2**31), int) for part in self._parts(name)]

    def reals(self, name: str, default: float) -> list[float]:
        """Return the numbers of a list; the default alone where the field is empty."""
        question = comma_question(self._values.get(name, ""), "number")
        if question:
            self.refuse(name, question)
            return [default]
        parts = self._parts(name)
        return [self._number(name, part, default, (0.0, float("inf")), float) for part in parts] or [default]

    def refuse(self, name: str, message: str) -> None:
        """Note what is wrong with a field."""
        self.errors.setdefault(name, []).append(message)

    def check(self) -> None:
        """Raise where something is wrong.

        Raises:
            FormError: with all that is.
        """
        if self.errors:
            raise FormError(self.errors)

    def _parts(self, name: str) -> list[str]:
        text = self._values.get(name, "").strip("[]() ")
        return [part.strip() for part in text.split(",") if part.strip()]

    def _number(
        self, name: str, text: str, default: _Value, limits: tuple[Any, Any], kind: Callable[[str], _Value]
    ) -> _Value:
        if not text:
            return default
        try:
            value = kind(text)
        except ValueError:
            word = "integer" if kind is int else "float"
            question = comma_question(text, "integer" if kind is int else "number")
            self.refuse(name, f"Not a valid {word} value. {question}".strip())
            return default
        if not limits[0] <= value <= limits[1]:  # also refuses NaN
            self.refuse(name, f"Number must be from {limits[0]} to {limits[1]}.")
            return default
        return value
