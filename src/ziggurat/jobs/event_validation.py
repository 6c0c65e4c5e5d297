"""Event validation before storage: declared field types, and text that every store accepts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

from ziggurat.events import EVENT_TYPES, Event

__all__ = ["is_valid", "without_bad_characters"]

_LARGEST: Final = 2**63 - 1


def is_valid(event: Event) -> bool:
    """Return whether every field of an event has its declared type, whole numbers fit in 64 bits, and time is finite.

    A damaged or hostile line may be JSON all the same; in a store it would break the lines around it.
    """
    if not math.isfinite(event.time):
        return False
    return all(check(getattr(event, name)) for name, check in _CHECKS.get(event.type, ()))


def without_bad_characters(event: Event) -> Event:
    """Return the event with U+FFFD in the place of NUL and of halves of characters, which not every store takes."""
    return replace(event, **{part.name: _clean(getattr(event, part.name)) for part in fields(event)})


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_clean(name): _clean(part) for name, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list) else value


def _is_whole(value: Any) -> bool:
    return type(value) is int and -_LARGEST <= value <= _LARGEST


def _is_number(value: Any) -> bool:
    return type(value) is float or _is_whole(value)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_object(value: Any) -> bool:
    return type(value) is dict


def _is_scalars(value: Any) -> bool:
    return type(value) is dict and all(_is_number(part) or part in _NO_NUMBERS for part in value.values())


_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")

_BY_TYPE: Final[dict[str, Callable[[Any], bool]]] = {
    "int": _is_whole,
    "float": _is_number,
    "float | None": lambda value: value is None or _is_finite(value),
    "str": _is_text,
    "dict[str, Any]": _is_object,
    "dict[str, float]": _is_scalars,
}

_CHECKS: Final = {
    name: tuple((part.name, _BY_TYPE[str(part.type)]) for part in fields(kind)) for name, kind in EVENT_TYPES.items()
}
