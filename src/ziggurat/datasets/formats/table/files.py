"""Files of a table, one in all or one for each split, and a reader for their raw rows."""

from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from ziggurat.datasets.formats.shared.text_encoding import encoding_of, head_lines
from ziggurat.datasets.formats.table.dialect import Dialect, guess_dialect, guess_header, parse_rows
from ziggurat.errors import DataError

__all__ = ["Row", "TableFile", "TableReader", "TextTable", "is_table_file", "split_of", "table_files"]

_HEAD_ROWS: Final = 500
_LEAST_ROWS: Final = 3
_GOOD_SHARE: Final = 0.95
_MOST_SNIFFED: Final = 8
_NO_TABLES: Final = re.compile(r"(read\W?me|licen[cs]e|copying|notice|authors|change\w*|make\w*|docker\w*)\b.*", re.I)
_LARGEST_CELL: Final = 1 << 24
_SPLITS: Final = {
    "train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val",
    "test": "test", "testing": "test",
}  # fmt: skip


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
    """

    place: str
    cells: Sequence[Any]
    reason: str = ""


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
        DataError: where a folder has none, or several and nobody chose.
    """
    if not source.is_dir():
        return [TableFile(source, "")]
    names = sorted(entry.name for entry in os.scandir(source) if entry.is_file() and not entry.name.startswith("."))
    if chosen:
        if chosen not in names:
            raise DataError("`file` names a file of the source's folder.", received=f"`{chosen}`; there: {names[:20]}")
        return [TableFile(source / chosen, "")]
    known = set(suffixes)
    bare = [name for name in names if not Path(name).suffix]
    names = [name for name in names if Path(name).suffix.lower() in known]
    if not names:
        names = [name for name in bare[:_MOST_SNIFFED] if is_table_file(source / name, known)]
    by_split = {split: name for name in reversed(names) if (split := split_of(Path(name).stem))}
    if by_split:
        return [TableFile(source / by_split[split], split) for split in ("train", "val", "test") if split in by_split]
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
        expected: names that somebody used for columns: a first row with one of them is a header.

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
    ) -> None:
        self.path = path
        self._head = head_lines(path)
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
        self.names = _column_names(cells[0], self.has_header, names, self._commented_names())

    @cached_property
    def encoding(self) -> str:
        """The encoding of the file; all of it is read to find out."""
        return encoding_of(self.path)

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the header; blank lines and comments do not count."""
        with self.path.open(encoding=self.encoding, newline="") as file:
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
        if row.reason or len(row.cells) == len(self.names):
            return row
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
    """Return the number of lines above the table."""
    above = itertools.takewhile(lambda line: not line.strip() or (comment and line.startswith(comment)), lines)
    return sum(1 for _ in above)


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
    for number, name in enumerate(found, 1):
        name = re.sub(r"\s+", " ", name) or f"column-{number}"
        while name in names:
            name += "'"
        names[name] = None
    return tuple(names)
