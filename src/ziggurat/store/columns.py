"""Portable column types: text that every database accepts, JSON values, 64-bit integers, keys."""

from __future__ import annotations

import json
import math
from typing import Any

from sqlalchemy import BigInteger, Dialect, Double, Integer, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from ziggurat.errors import UsageError

__all__ = [
    "BIG",
    "KEY",
    "NUMBER",
    "CleanText",
    "Json",
    "clean_text",
    "is_storable_integer",
    "number_or_none",
    "short_text",
]

NUMBER = Double()
"""A float64. NaN is stored as NULL: SQLite has no NaN, and PostgreSQL's has a place in the order that it should not."""

BIG = BigInteger()
_LONGEST_INDEXED = 200
KEY: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
"""Key that the database counts up; SQLite does so only for its own INTEGER."""


class CleanText(TypeDecorator[str]):
    """Text without what some database refuses: NUL characters and lone surrogates become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Return the text as it goes into the database."""
        return None if value is None else clean_text(str(value))


class Json(TypeDecorator[Any]):
    """JSON values as ASCII text; NaN and infinities, which JSON lacks, come back as they went in."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Return the value as the text that goes into the database."""
        return None if value is None else json.dumps(value, separators=(",", ":"), default=_plain)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the value of the text that is in the database."""
        return None if value is None else json.loads(value)


def clean_text(value: str) -> str:
    """Return the text as every database takes it."""
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
    if value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def short_text(value: str, what: str) -> str:
    """Return a text that an index holds, as every database takes it.

    Args:
        value: the text.
        what: what it is, with its article, to begin the sentence of the error.

    Raises:
        UsageError: where it is longer than 200 characters; PostgreSQL cannot index texts of any length.
    """
    if len(value) > _LONGEST_INDEXED:
        shown = f"{value[:40]}… of {len(value)} characters"
        raise UsageError(f"{what} must have at most {_LONGEST_INDEXED} characters.", received=shown)
    return clean_text(value)


def is_storable_integer(value: Any) -> bool:
    """Return whether a value is a whole number of 64 bits; a bool is none."""
    return type(value) is int and -(2**63) <= value < 2**63


def number_or_none(value: float | None) -> float | None:
    """Return a float as a column takes it: None for NaN."""
    return None if value is None or math.isnan(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    if hasattr(value, "item"):
        return value.item()  # a NumPy number
    return str(value)
