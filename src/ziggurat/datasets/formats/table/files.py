"""Files of a table, text or Parquet, a reader for their raw rows, and the features that tell tables from lists."""

from __future__ import annotations

import csv
import decimal
import itertools
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from ziggurat.datasets.formats.shared.entries import is_file_entry
from ziggurat.datasets.formats.shared.text_encodings import is_fallback
from ziggurat.datasets.formats.shared.text_files import encoding_of, head_lines
from ziggurat.datasets.formats.table.columns import ColumnProfile
from ziggurat.datasets.formats.table.dialect import (
    Dialect,
    guess_dialect,
    guess_header,
    parse_rows,
    separator_in,
)
from ziggurat.datasets.samples import SPLIT_NAMES, SPLITS
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.records.offered_folders import check_source_file

__all__ = [
    "IMAGE_ENDINGS",
    "LABEL_NAMES",
    "PARQUET_SUFFIXES",
    "TEXT_NAMES",
    "ParquetTable",
    "TableFile",
    "TableReader",
    "TableSigns",
    "TextTable",
    "is_parquet",
    "is_table_file",
    "signs_of",
    "split_of",
    "table_files",
    "table_signs",
    "text_columns",
]

_HEAD_ROWS: Final = 500
_LEAST_ROWS: Final = 3  # fewer would make a table of any short text
_GOOD_SHARE: Final = 0.95  # of rows with a cell for each column
_MOST_SNIFFED: Final = 8  # files without a suffix that are opened to see whether they are tables
_NO_TABLES: Final = re.compile(r"(read\W?me|licen[cs]e|copying|notice|authors|change\w*|make\w*|docker\w*)\b.*", re.I)
_MOST_APOSTROPHES: Final = 10  # behind a repeated heading; thousands of them would fill the memory
_LARGEST_CELL: Final = 1 << 24  # characters; the default of the csv module cuts off articles
_SPLITS: Final = {**SPLIT_NAMES, "dev": "val"}

PARQUET_SUFFIXES: Final = (".parquet", ".pq")
_BATCH_ROWS: Final = 4096  # that are in memory at once

TEXT_NAMES: Final = ("text", "sentence", "message", "review", "comment", "tweet", "content", "body", "document", "sms")
"""Usual names of the column with the text, the likeliest first."""

LABEL_NAMES: Final = ("label", "class", "category", "target", "sentiment", "topic", "intent", "y", "rating")
"""Usual names of the column with the class, the likeliest first."""

_ROWS_SEEN: Final = 200  # that a guess looks at
IMAGE_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
"""How names of images end."""

_WORDS_OF_TEXT: Final = 2.5  # on average in a cell, from which a column holds texts and no names
_NAMES: Final = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", " ": "blanks"}


class TableFile(NamedTuple):
    """One file of a table.

    Args:
        path: where it is.
        split: that its rows are in; empty if not given.
    """

    path: Path
    split: str


class Row(NamedTuple):
    """One row of a table.

    Args:
        place: where it stands, such as ``prices.csv:12``.
        cells: its values; empty where it cannot be read.
        reason: why it cannot be read; empty where it can.
        kind: of the problem that it is then.
    """

    place: str
    cells: Sequence[Any]
    reason: str = ""
    kind: str = "bad-line"


class TableReader(Protocol):
    """Reads one file of a table, as often as it is asked.

    Args (attributes):
        names: of the columns.
        typed: whether cells have the types that the file says; else all are texts.
        decimal: sign of texts that are numbers.
    """

    names: tuple[str, ...]
    typed: bool
    decimal: str

    def rows(self) -> Iterator[Row]:
        """Yield the rows, in their order."""
        ...


def split_of(name: str) -> str:
    """Return the split that a name of a file or folder, or a text in a column, stands for; empty for none."""
    return _SPLITS.get(name.strip().lower(), "")


def table_files(source: Path, suffixes: Iterable[str], chosen: str = "") -> list[TableFile]:
    """Return the files of a table: the source itself, or a folder's files that are named after splits, or its only one.

    Args:
        source: a file or a folder.
        suffixes: of names that count, such as ``.csv``.
        chosen: name of the one file of the folder that is meant; empty for none.

    Raises:
        DataError: where a folder has none, or several and none is chosen.
    """
    if not source.is_dir():
        return [TableFile(source, "")]
    names = sorted(
        entry.name for entry in os.scandir(source) if is_file_entry(entry) and not entry.name.startswith(".")
    )
    if chosen:
        if chosen not in names:
            raise DataError(f"`file` is `{chosen}`, which is not in the source's folder; there: {names[:20]}.")
        return [TableFile(source / chosen, "")]
    known = set(suffixes)
    bare = [name for name in names if not Path(name).suffix]
    names = [name for name in names if Path(name).suffix.lower() in known]
    if not names:
        names = [name for name in bare[:_MOST_SNIFFED] if is_table_file(source / name, known)]
    by_split = [TableFile(source / name, split) for name in names if (split := split_of(Path(name).stem))]
    if by_split:
        return sorted(by_split, key=lambda file: SPLITS.index(file.split))
    if len(names) != 1:
        raise DataError(
            "A folder holds one table, or a table for each split: train, val, test.",
            received=f"`{source}` with {', '.join(names[:20]) or 'none'}",
            advice="Give the file itself, or name it with the option `file`.",
        )
    return [TableFile(source / names[0], "")]


def is_table_file(path: Path, suffixes: Iterable[str]) -> bool:
    """Say whether a file is a table by its name's suffix; one without any, by its first rows.

    Args:
        path: of the file.
        suffixes: of names that count, such as ``.csv``.
    """
    if path.suffix:
        return path.suffix.lower() in set(suffixes)
    if _NO_TABLES.fullmatch(path.name):
        return False
    try:
        table = TextTable(path)
    except DataError:
        return False
    rows = list(table.head())
    good = sum(not row.reason for row in rows)
    return len(table.names) > 1 and len(rows) >= _LEAST_ROWS and good >= _GOOD_SHARE * len(rows)


class TextTable:
    """A table in a text file.

    Args:
        path: the file.
        dialect: how it is written; None to guess it.
        header: whether its first row names the columns: ``yes``, ``no`` or ``guess``.
        names: of its columns, where the file does not say them or says them badly.
        expected: given column names: a first row with one of them is a header.
        encoding: name of the encoding; empty to detect it.

    Attributes:
        repeated_names: headings that stand above several columns; further ones got an apostrophe.

    Raises:
        DataError: where the file is empty or no text.
    """

    typed = False

    def __init__(
        self,
        path: Path,
        dialect: Dialect | None = None,
        *,
        header: str = "guess",
        names: Sequence[str] = (),
        expected: Collection[str] = (),
        encoding: str = "",
    ) -> None:
        self.path = path
        self._chosen_encoding = encoding
        self._head = head_lines(path, encoding)
        self.dialect = guess_dialect(self._head) if dialect is None else dialect
        self.decimal = self.dialect.decimal
        self.leading_lines = _leading(self._head, self.dialect.comment)
        first = list(itertools.islice(self._rows_of(iter(self._head[self.leading_lines :])), _HEAD_ROWS))
        cells = [row.cells for row in first if row.cells]
        if not cells:
            raise DataError("A table has rows.", received=f"`{path}`, which has none that can be read")
        if header == "guess":
            self.has_header = any(cell.strip() in expected for cell in cells[0]) or guess_header(cells)[0]
        else:
            self.has_header = header == "yes"
        self._heading = cells[0] if self.has_header else None
        width = _width(cells, self.has_header)
        self.names = _column_names(cells[0][:width], self.has_header, names, self._commented_names())
        counts = Counter(cell.strip() for cell in cells[0][:width] if cell.strip()) if self.has_header else Counter()
        self.repeated_names = () if names else tuple(name for name, count in counts.items() if count > 1)

    @cached_property
    def encoding(self) -> str:
        """The encoding of the file; all of it is read to find out."""
        return encoding_of(self.path, self._chosen_encoding)

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the header; blank lines and comments do not count."""
        with self.path.open(encoding=self.encoding, newline="") as file:
            if is_fallback(self.encoding) and file.read(3) != "ï»¿":  # a mark of UTF-8 before text that is none
                file.seek(0)
            yield from self._below(self._rows_of(itertools.islice(file, self.leading_lines, None)))

    def head(self) -> Iterator[Row]:
        """Yield the first rows below the header; the rest of the file is not read."""
        yield from self._below(self._rows_of(iter(self._head[self.leading_lines :])))

    def _rows_of(self, lines: Iterator[str]) -> Iterator[Row]:
        csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))  # the module's own limit cuts articles off
        reader: Any = parse_rows(_without_ends(lines, self.dialect), self.dialect)
        while True:
            cells, reason = [], ""
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                reason = f"The row cannot be read ({error})."
            if reason or not self._counts_for_nothing(cells):
                yield Row(f"{self.path.name}:{self.leading_lines + reader.line_num}", cells, reason)

    def _below(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in itertools.islice(rows, int(self.has_header), None):
            yield self._checked(row)

    def _checked(self, row: Row) -> Row:
        if row.reason:
            return row
        if row.cells == self._heading:
            return Row(row.place, [], "The row says the names of the columns again.", "repeated-header")
        count = len(self.names)
        if len(row.cells) == count:
            return row
        if len(row.cells) > count and not "".join(row.cells[count:]).strip():  # delimiters that end each line
            return row._replace(cells=row.cells[:count])
        return Row(row.place, [], f"The row has {len(row.cells)} cells, and there are {len(self.names)} columns.")

    def _counts_for_nothing(self, cells: Sequence[str]) -> bool:
        comment = self.dialect.comment
        return not cells or bool(comment and cells[0].startswith(comment))

    def _commented_names(self) -> list[str]:
        """Return the cells of the last comment above the table, which often names the columns."""
        comment = self.dialect.comment
        above = [line for line in self._head[: self.leading_lines] if comment and line.startswith(comment)]
        if not above:
            return []
        rows = list(parse_rows([above[-1].lstrip(comment).strip()], self.dialect))
        return [cell.strip() for cell in rows[0]] if rows else []


def _leading(lines: Sequence[str], comment: str) -> int:
    """Return the number of lines above the table, that of Excel with the delimiter among them."""
    named = int(bool(lines) and bool(separator_in(lines[0])))
    lines = lines[named:]
    above = itertools.takewhile(lambda line: not line.strip() or (comment and line.startswith(comment)), lines)
    return named + sum(1 for _ in above)


def _width(rows: Sequence[Sequence[str]], has_header: bool) -> int:
    """Return the number of columns without those that only a delimiter at the end of each line makes."""
    width = len(rows[0])
    while width > 1 and all(not row[width - 1].strip() for row in rows if len(row) >= width):
        if sum(len(row) < width for row in rows) > len(rows) / 2 or (has_header and not rows[1:]):
            break
        width -= 1
    return width


def _without_ends(lines: Iterable[str], dialect: Dialect) -> Iterator[str]:
    """Drop blanks at the ends of lines where blanks delimit: they would make one more cell."""
    return (line.rstrip() + "\n" for line in lines) if dialect.delimiter == " " else iter(lines)


def _column_names(
    first: Sequence[str], has_header: bool, given: Sequence[str], commented: Sequence[str]
) -> tuple[str, ...]:
    """Return a name for each column, no two the same."""
    columns = len(first)
    if given:
        if len(given) != columns or len(set(map(str, given))) != columns:
            raise DataError(
                "`names` has a name for each column, no two the same.",
                received=f"{len(given)} names for {columns} columns: {', '.join(map(str, given[:20]))}",
            )
        return tuple(map(str, given))
    found = list(commented) if len(commented) == columns and len(set(commented)) == columns else [""] * columns
    if has_header:
        found = [cell.strip() for cell in first]
    names: dict[str, None] = {}
    repeats: Counter[str] = Counter()
    for number, text in enumerate(found, 1):
        heading = name = re.sub(r"\s+", " ", text) or f"column-{number}"
        while name in names:
            repeats[heading] += 1
            name = heading + _mark_of_repeat(repeats[heading])
        names[name] = None
    return tuple(names)


def _mark_of_repeat(number: int) -> str:
    """Return what tells a column from others of its heading: apostrophes, or one and a number if these are many."""
    return "'" * number if number <= _MOST_APOSTROPHES else f"'{number}"


def is_parquet(path: Path) -> bool:
    """Say whether a file begins as Parquet does."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


class ParquetTable:
    """A table in a Parquet file.

    Columns of lists and of bytes are no cells of a table; they are named in ``left_out``.

    Args:
        path: the file.

    Raises:
        MissingDependencyError: where pyarrow is not installed.
        DataError: where the file is damaged, or has no column that a table can have.
    """

    typed = True
    decimal = "."

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: tuple[str, ...] = ()
        self.left_out: tuple[str, ...] = ()
        arrow = _arrow()
        with self._open() as file:
            fields = list(file.schema_arrow)
            self.row_count: int = file.metadata.num_rows
        plain = [field.name for field in fields if _is_plain(arrow, field.type)]
        self.names = tuple(plain)
        self.left_out = tuple(field.name for field in fields if field.name not in set(plain))
        if not plain or len(set(plain)) < len(plain):
            raise DataError(
                "A table has columns of numbers, texts or times, each with a name of its own.",
                received=f"`{path}` with {', '.join(f'{field.name}: {field.type}' for field in fields[:20])}",
            )

    def rows(self) -> Iterator[Row]:
        """Yield the rows, in their order."""
        with self._open() as file:
            number = 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(self.names)):
                columns = [[_plain(value) for value in batch.column(name).to_pylist()] for name in self.names]
                for cells in zip(*columns, strict=True):
                    yield Row(f"{self.path.name}:row {number}", cells)
                    number += 1

    def head(self) -> Iterator[Row]:
        """Yield the rows; stopping early reads little."""
        return self.rows()

    def _open(self) -> Any:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            check_source_file(self.path)
            return ParquetFile(self.path)
        except (ArrowException, OSError) as error:
            raise DataError("A Parquet file is whole.", received=f"`{self.path}`: {error}") from None


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.types
    except ImportError:
        raise MissingDependencyError("pyarrow", extra="tables", purpose="tables in Parquet files") from None
    return pyarrow


def _is_plain(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_string, types.is_large_string,
        types.is_timestamp, types.is_date, types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _plain(value: Any) -> Any:
    """Return a value as a cell holds it; infinite numbers hold nothing that can be learned from."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value


@dataclass(frozen=True, kw_only=True)
class TableSigns:
    """What the first rows give away.

    Args:
        profiles: of the columns.
        dialect: how it is written, in words.
        has_header: whether the first row names the columns.
        has_images: whether a column holds names of images.
        share_of_good_rows: from 0 to 1: those with a cell for each column.
        rows: that were looked at.
    """

    profiles: Sequence[ColumnProfile]
    dialect: str
    has_header: bool
    has_images: bool
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
    rows = images = good = 0
    for row in itertools.islice(table.head(), _ROWS_SEEN):
        rows += 1
        good += not row.reason
        images += any(isinstance(cell, str) and cell.lower().endswith(IMAGE_ENDINGS) for cell in row.cells)
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
        has_images=rows > 0 and images > rows / 2,
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
        and (profile.is_whole or not profile.can_be("number"))
    )


def _names_rows(profile: ColumnProfile) -> bool:
    values = profile.categories()
    return profile.type() == "identifier" or (bool(values) and all(split_of(value) for value in values))
