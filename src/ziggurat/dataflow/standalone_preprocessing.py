"""Encoding of rows and texts with NumPy alone: ``preprocessing.json`` says how, and exports contain this file.

    content = json.loads(Path("preprocessing.json").read_text(encoding="utf-8"))
    encode = encoder(content)
    x = finish(content, np.stack([encode(row) for row in rows]))

``TablePreprocessing`` and ``TextPreprocessing`` are made of the same functions. All errors are ``ValueError``, with the
reason as a sentence that continues "The row cannot be used: …".
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

import numpy as np

__all__ = [
    "MISSING",
    "PADDING",
    "PARTS",
    "RESERVED",
    "UNKNOWN",
    "MeasuredColumn",
    "RowOrder",
    "category_of",
    "encoder",
    "finish",
    "parts_of",
    "row_of_texts",
    "scaled",
    "tokens_of",
]

PARTS: Mapping[str, tuple[str, ...]] = {
    "number": ("value",),
    "boolean": ("value",),
    "time": ("seconds", "day_sine", "day_cosine", "week_sine", "week_cosine", "year_sine", "year_cosine"),
}
"""Type of a measured column → the numbers that are made of one cell.

A time is its seconds, and its place in the day, the week and the year: an angle, as sine and cosine, so that 23:59 is
next to 00:00.
"""

MISSING = frozenset(["", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A"])
"""Texts that stand for a missing value, in a file or a form."""

PADDING = 0
"""Number of what fills a text up to its length."""

UNKNOWN = 1
"""Number of a token that is not in the vocabulary."""

RESERVED = 2
"""Numbers before that of the first word: padding and the unknown token."""

_LARGEST = float(np.finfo(np.float32).max)
_DAY_S = 86_400
_YEAR_DAYS = 365.25
_SHOWN = 40
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


# ---- one sample


def encoder(content: Mapping[str, Any]) -> Callable[[Any], np.ndarray]:
    """Return what encodes one sample, not scaled yet; ``finish`` does the rest for a batch.

    Args:
        content: of ``preprocessing.json``, of the kind table or text.

    Returns:
        For a table, a function of a row, a list of values or name → value, that returns (F,) float64; for texts, a
        function of a text that returns (length,) int32. Both raise ValueError where the sample cannot be used.

    Raises:
        ValueError: where the content is of another kind.
    """
    if content["kind"] == "table":
        return _row_encoder(content)
    if content["kind"] == "text":
        return _text_encoder(content)
    raise ValueError(f"a preprocessing of the kind table or text is needed; received {_shown(content['kind'])}.")


def finish(content: Mapping[str, Any], batch: np.ndarray) -> np.ndarray:
    """Return a batch as the network gets it.

    Args:
        content: of ``preprocessing.json``.
        batch: (N, F) or (N, length), encoded samples.

    Returns:
        (N, F) float32, or (N, length) int32.
    """
    if content["kind"] == "text":
        return batch.astype(np.int32, copy=False)
    return scaled(batch, np.array(content["offset"], np.float64), np.array(content["matrix"], np.float64))


def scaled(batch: np.ndarray, offset: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return rows (N, F) as float32, the measured numbers scaled.

    Args:
        batch: (N, F); the first M of them are measured.
        offset: (M,), taken off.
        matrix: (M,) or (M, M), by which the result is multiplied, element by element or as a matrix product.
    """
    count = len(offset)
    centered = batch[:, :count] - offset
    measured = centered @ matrix if matrix.ndim == 2 else centered * matrix
    return np.concatenate([measured, batch[:, count:]], axis=1).astype(np.float32)


def _row_encoder(content: Mapping[str, Any]) -> Callable[[Any], np.ndarray]:
    names = [column["name"] for column in content["columns"]]
    measured = [
        MeasuredColumn(**{**each, "parts": tuple(each["parts"]), "fill": tuple(each["fill"])})
        for each in content["measured"]
    ]
    codes = {
        each["name"]: {value: code for code, value in enumerate(each["values"], 1)} for each in content["categorical"]
    }
    order = RowOrder(names, content["target"], [*(column.name for column in measured), *codes])

    def encode(row: Any) -> np.ndarray:
        cells = dict(zip(names, order.cells(row)))
        numbers = [number for column in measured for number in column.numbers(cells[column.name])[0]]
        values = ((known, category_of(name, cells[name])) for name, known in codes.items())
        return np.array([*numbers, *(known.get(value, 0) for known, value in values)], np.float64)

    return encode


def _text_encoder(content: Mapping[str, Any]) -> Callable[[Any], np.ndarray]:
    length, lower = content["length"], content["lower"]
    numbers = {word: number for number, word in enumerate(content["words"], RESERVED)}

    def encode(text: Any) -> np.ndarray:
        found = np.full(length, PADDING, np.int32)
        tokens = tokens_of(text, lower=lower)[:length]
        found[: len(tokens)] = [numbers.get(token, UNKNOWN) for token in tokens]
        return found

    return encode


# ---- rows


def row_of_texts(content: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a row whose values come as texts, from a CSV file or a form, with the values of its columns.

    Args:
        content: of the ``preprocessing.json`` of a table.
        texts: name of a column → text. One of ``MISSING`` stands for no value, unless it is a category.

    Returns:
        Name → value, for ``encoder``; what the network does not get stays a text.

    Raises:
        ValueError: where a text cannot be such a value.
    """
    types = {column["name"]: column["type"] for column in content["measured"]}
    categories = {column["name"]: column["values"] for column in content["categorical"]}
    return {name: _value_of(name, types.get(name, ""), categories.get(name, ()), text) for name, text in texts.items()}


def _value_of(name: str, type_name: str, categories: Sequence[str], text: str) -> Any:
    if text.strip() in MISSING and text not in categories:
        return None
    if type_name == "number":
        if not _NUMBER.fullmatch(text.strip()):
            raise _wrong(name, "a number such as 12.5", text)
        return float(text)
    if type_name == "boolean":
        if text.strip().lower() not in _BOOLEANS:
            raise _wrong(name, "true or false", text)
        return _BOOLEANS[text.strip().lower()]
    return text.strip() if type_name == "time" else text


@dataclass(frozen=True)
class MeasuredColumn:
    """A column that becomes measured numbers.

    Args:
        name: of the column.
        type: number, boolean or time.
        parts: which of ``PARTS`` the network gets; one that never varies in the training split is not among them.
        fill: the mean of each part in the training split, which stands for a missing value.
        has_indicator: whether a further number says if the value is missing: 1, else 0.
        origin_s: the earliest time of the training split, in seconds since 1970, from which times are counted.
    """

    name: str
    type: str
    parts: tuple[str, ...]
    fill: tuple[float, ...]
    has_indicator: bool
    origin_s: float = 0.0

    @property
    def features(self) -> tuple[str, ...]:
        """Name of each number that the network gets."""
        parts = tuple(
            self.name if part in ("value", "seconds") else f"{self.name} ({part.replace('_', ', ')})"
            for part in self.parts
        )
        return (*parts, f"{self.name} (missing)") if self.has_indicator else parts

    def numbers(self, cell: Any) -> tuple[list[float], bool]:
        """Return the numbers of a cell, and whether its value is missing.

        Raises:
            ValueError: where the cell does not have the column's type.
        """
        found = parts_of(self.name, self.type, cell)
        if found is None:
            return ([*self.fill, 1.0] if self.has_indicator else list(self.fill)), True
        by_name: dict[str, float] = dict(zip(PARTS[self.type], found))
        if self.type == "time":
            by_name["seconds"] -= self.origin_s
        numbers = [by_name[part] for part in self.parts]
        return ([*numbers, 0.0] if self.has_indicator else numbers), False


class RowOrder:
    """The values of a row in the order of the table's columns.

    Args:
        names: of the columns, the target among them.
        target: name of the column that a row need not have; empty for none.
        needed: names that a row given by name must have.
    """

    def __init__(self, names: Sequence[str], target: str, needed: Sequence[str]) -> None:
        self._names = tuple(names)
        self._known = frozenset(names)
        self._target = self._names.index(target) if target else None
        self._needed = tuple(needed)

    def cells(self, row: Any) -> Sequence[Any]:
        """Return one value for each column; what stands for the target has no meaning.

        Args:
            row: a list in the order of the columns, with or without the target; or name → value.

        Raises:
            ValueError: where the row has other columns.
        """
        if isinstance(row, Mapping):
            return self._by_name(row)
        if isinstance(row, np.ndarray):
            row = row.tolist()
        if isinstance(row, (str, bytes)) or not isinstance(row, Sequence):
            raise ValueError(f"a row is a list of values or an object; received {_shown(row)}.")
        if len(row) == len(self._names):
            return row
        if self._target is not None and len(row) == len(self._names) - 1:
            return [*row[: self._target], None, *row[self._target :]]
        without = "" if self._target is None else f", of which `{self._names[self._target]}` may be left out"
        raise ValueError(f"a row has {len(self._names)} values{without}; received {len(row)}. {self._listed()}")

    def _by_name(self, row: Mapping[Any, Any]) -> Sequence[Any]:
        for name in row:
            if name not in self._known:
                raise ValueError(f"the table has no column {_shown(name)}. {self._listed()}")
        for name in self._needed:
            if name not in row:
                raise ValueError(f"it has no value for the column `{name}`. Give null where the value is missing.")
        return [row.get(name) for name in self._names]

    def _listed(self) -> str:
        return f"Its columns: {', '.join(f'`{name}`' for name in self._names)}."


def parts_of(name: str, type_name: str, cell: Any) -> tuple[float, ...] | None:
    """Return the ``PARTS`` of a cell, times in seconds since 1970; None where the value is missing.

    Args:
        name: of the column, for errors.
        type_name: number, boolean or time.
        cell: the value; None and NaN stand for a missing one.

    Raises:
        ValueError: where the cell does not have that type.
    """
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type_name == "time":
        return _time_parts(name, value)
    if type_name == "boolean":
        if isinstance(value, (bool, int, float)) and value in (0, 1):
            return (float(value),)
        raise _wrong(name, "true or false", value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > _LARGEST:
        raise _wrong(name, "a number from -3.4e38 to 3.4e38", value)
    return (float(value),)


def category_of(name: str, cell: Any) -> str | None:
    """Return the category of a cell; None where it is missing.

    Raises:
        ValueError: where it is neither a text nor a whole number.
    """
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # an importer keeps categories as texts, also those that look like whole numbers
    raise _wrong(name, "a category, which is a text", value)


def _time_parts(name: str, value: Any) -> tuple[float, ...]:
    if isinstance(value, date):  # of which a datetime is one
        value = value.isoformat()
    try:
        when = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _wrong(name, "a time such as 2024-05-31 or 2024-05-31T14:30:00", value) from None
    moment = when if when.tzinfo else when.replace(tzinfo=timezone.utc)  # noqa: UP017  (exports run on older Pythons)
    # The angles are those of the clock as it is written: people live by it, whatever its zone.
    day = (when.hour * 3600 + when.minute * 60 + when.second + when.microsecond / 1e6) / _DAY_S
    week = (when.weekday() + day) / 7
    year = (when.timetuple().tm_yday - 1 + day) / _YEAR_DAYS
    angles = [2 * math.pi * turn for turn in (day, week, year)]
    return (moment.timestamp(), *(wave(angle) for angle in angles for wave in (math.sin, math.cos)))


def _wrong(name: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"its column `{name}` must hold {expected}; received {_shown(value)}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# ---- texts

_SPACELESS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3040-\u30ff"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
"""Letters of scripts that put no space between words."""

_JOINERS = "\u200c\u200d"
_LAST_MARK = 0x1F000  # above are emoji, and selectors of variants, which no word contains


def tokens_of(text: Any, *, lower: bool) -> list[str]:
    """Return the tokens of a text, in order.

    A token is a word, with the apostrophes within it; a number, with the points and commas within it; a single letter
    of a script without spaces; or any other single sign. Letters that look the same are the same: the text is brought
    to the Unicode form NFC first.

    Args:
        text: of any length.
        lower: whether capital letters count as small ones.

    Raises:
        ValueError: where it is no text.
    """
    if not isinstance(text, str):
        raise ValueError(f"it must be a text; received {type(text).__name__}.")
    text = unicodedata.normalize("NFC", text)
    return _token_pattern().findall(text.lower() if lower else text)


@functools.lru_cache(maxsize=None)  # noqa: UP033  (exports run on older Pythons)
def _token_pattern() -> re.Pattern[str]:
    # `\w` knows no combining marks, with which the words of most Indic scripts are written.
    marks = _JOINERS + "".join(
        chr(code) for code in range(0x300, _LAST_MARK) if unicodedata.category(chr(code)).startswith("M")
    )
    letters = rf"[^\W\d_{_SPACELESS}]"
    return re.compile(
        rf"{letters}+(?:[{marks}]{letters}*|['’]{letters}+)*"
        r"|\d+(?:[.,]\d+)*"
        rf"|[{_SPACELESS}][{marks}]*"
        r"|[^\w\s]|_"
    )
