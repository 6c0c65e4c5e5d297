"""Features of the first rows that distinguish tables from image lists and from labeled texts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.table.files import TextTable, split_of
from ziggurat.datasets.formats.table.parquet import ParquetTable, is_parquet
from ziggurat.datasets.formats.table.types import ColumnProfile

__all__ = [
    "LABEL_NAMES",
    "PICTURE_SUFFIXES",
    "TEXT_NAMES",
    "TableSigns",
    "signs_of",
    "table_signs",
    "text_columns",
]

TEXT_NAMES: Final = ("text", "sentence", "message", "review", "comment", "tweet", "content", "body", "document", "sms")
"""Usual names of the column with the text, the likeliest first."""

LABEL_NAMES: Final = ("label", "class", "category", "target", "sentiment", "topic", "intent", "y", "rating")
"""Usual names of the column with the class, the likeliest first."""

_HEAD_ROWS: Final = 200
PICTURE_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
"""How names of images end."""

_WORDS_OF_TEXT: Final = 2.5
_NAMES: Final = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", " ": "blanks"}


@dataclass(frozen=True, kw_only=True)
class TableSigns:
    """What the first rows give away.

    Args:
        profiles: of the columns.
        dialect: how it is written, in words.
        has_header: whether the first row names the columns.
        has_pictures: whether a column holds names of images.
        share_of_good_rows: from 0 to 1: those with a cell for each column.
        rows: that were looked at.
    """

    profiles: Sequence[ColumnProfile]
    dialect: str
    has_header: bool
    has_pictures: bool
    share_of_good_rows: float
    rows: int

    @property
    def is_texts(self) -> bool:
        """Whether it holds a text and its class, and nothing else but keys and splits."""
        return text_columns(self.profiles) is not None


def table_signs(path: Path, missing: Sequence[str] = ("", "?", "NA", "NaN")) -> TableSigns:
    """Look at the first rows of a file.

    Raises:
        DataError: where it is no table.
        MissingDependencyError: where the package for the file is not installed.
    """
    return signs_of(ParquetTable(path) if is_parquet(path) else TextTable(path), missing)


def signs_of(table: TextTable | ParquetTable, missing: Sequence[str] = ("", "?", "NA", "NaN")) -> TableSigns:
    """Look at the first rows of a table."""
    profiles = [ColumnProfile(name, missing, decimal=table.decimal, typed=table.typed) for name in table.names]
    rows = pictures = good = 0
    for row in itertools.islice(table.head(), _HEAD_ROWS):
        rows += 1
        good += not row.reason
        pictures += any(isinstance(cell, str) and cell.lower().endswith(PICTURE_SUFFIXES) for cell in row.cells)
        for profile, cell in zip(profiles, row.cells, strict=False):
            profile.add(cell, row.place)
    has_header, dialect = True, "Parquet"
    if isinstance(table, TextTable):
        has_header = table.has_header
        header = "a header" if has_header else "no header"
        dialect = f"{_NAMES.get(table.dialect.delimiter, repr(table.dialect.delimiter))} between them, {header}"
    return TableSigns(
        profiles=profiles,
        dialect=dialect,
        has_header=has_header,
        has_pictures=rows > 0 and pictures > rows / 2,
        share_of_good_rows=good / rows if rows else 0.0,
        rows=rows,
    )


def text_columns(profiles: Sequence[ColumnProfile]) -> tuple[str, str] | None:
    """Return the names of the columns with the text and with its class; None where it is no table of labeled texts.

    Usual names decide; else it must be a column of few values and one of several words, besides keys and splits.
    """
    by_lower = {profile.name.lower(): profile for profile in reversed(profiles)}
    text = next((by_lower[name] for name in TEXT_NAMES if name in by_lower), None)
    label = next((by_lower[name] for name in LABEL_NAMES if name in by_lower), None)
    if text is not None and label is not None and _is_text(text) and not _is_text(label):
        return text.name, label.name
    others = [profile for profile in profiles if not _names_rows(profile)]
    texts = [profile for profile in others if _is_text(profile)]
    labels = [profile for profile in others if _is_label(profile)]
    if len(others) == 2 and len(texts) == 1 and len(labels) == 1 and texts[0] is not labels[0]:
        return texts[0].name, labels[0].name
    return None


def _is_text(profile: ColumnProfile) -> bool:
    of_numbers = profile.can_be("number") or profile.can_be("time") or profile.can_be("boolean")
    return bool(profile.values) and not of_numbers and profile.words >= _WORDS_OF_TEXT * profile.values


def _is_label(profile: ColumnProfile) -> bool:
    distinct = profile.distinct or 0
    return (
        1 <= distinct <= max(2, profile.values // 4)
        and profile.words < 2 * profile.values + 2
        and (profile.is_integer or not profile.can_be("number"))
    )


def _names_rows(profile: ColumnProfile) -> bool:
    values = profile.categories()
    return profile.type() == "identifier" or (bool(values) and all(split_of(value) for value in values))
