"""Dialect of a table in a text file: guessed from the first rows, or described in ``columns.json``."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from ziggurat.errors import DataError, ZigguratError
from ziggurat.records.schema import Schema

__all__ = ["Description", "Dialect", "guess_dialect", "guess_header", "number_of", "parse_rows", "separator_in"]

_SURE: Final = 0.95  # share of rows with the same number of cells
_DELIMITERS: Final = ("\t", ";", "|", ",")
_HEAD_ROWS: Final = 500  # that a guess looks at
_INTEGER: Final = re.compile(r"[+-]?(0|[1-9]\d{0,18})")
_FLOAT: Final = re.compile(r"[+-]?((0|[1-9]\d*)?\.\d+|(0|[1-9]\d*)\.?)([eE][+-]?\d{1,4})?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
_GROUPED: Final = {
    ".": re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
    ",": re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?"),
}
"""Sign of decimals → numbers whose thousands are grouped by the other sign."""
_SEPARATOR_LINE: Final = re.compile(r'"?sep=(.)"?[;,\t ]*', re.IGNORECASE)
_DATE: Final = re.compile(r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})([T ].*)?")
_TRUTHS: Final = frozenset(("true", "false", "yes", "no"))
_KIND_SHARE: Final = 0.95  # of the cells below a heading, so that a slip among them does not hide it
_LEAST_NUMBERED: Final = 5  # columns whose numbers alone tell a heading from whole numbers below it
_LARGEST: Final = 2**63  # int64 holds no larger integers
DESCRIPTION_NAME: Final = "columns.json"
_LARGEST_BYTES: Final = 1 << 26  # of a description; a larger file is something else
_VERSION: Final = 1

_USUAL_NAMES: Final = frozenset(
    [
        "label",
        "class",
        "category",
        "target",
        "text",
        "sentence",
        "message",
        "review",
        "content",
        "body",
        "comment",
        "title",
        "id",
        "key",
        "split",
        "name",
        "sentiment",
        "topic",
        "date",
        "time",
        "y",
    ]
)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a table is written.

    Args:
        delimiter: between cells; a blank stands for any number of them.
        quotes: whether cells may stand in double quotes, and so hold delimiters and line ends.
        comment: lines that begin with this are left out; empty for none.
        decimal: ``.`` or ``,``.
        skip_blanks: whether blanks after a delimiter do not count.
        is_decimal_open: whether its numbers, such as ``1,234``, may have decimals as well as grouped thousands.
    """

    delimiter: str = ","
    quotes: bool = True
    comment: str = ""
    decimal: str = "."
    skip_blanks: bool = False
    is_decimal_open: bool = False


def separator_in(line: str) -> str:
    """Return the delimiter that a line such as ``sep=;`` names, which Excel writes above a table; empty for others."""
    found = _SEPARATOR_LINE.fullmatch(line.strip(" \r\n\ufeff"))
    return found[1] if found else ""


def parse_rows(lines: Iterable[str], dialect: Dialect) -> Iterator[list[str]]:
    """Yield the cells of each row; the ``line_num`` of the iterator counts lines.

    Raises:
        csv.Error: where a row cannot be told; the next row may be asked for all the same.
    """
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.quotes else csv.QUOTE_NONE,
        skipinitialspace=dialect.skip_blanks or dialect.delimiter == " ",
    )


def guess_dialect(lines: Sequence[str], *, delimiter: str = "", comment: str = "", quotes: str = "guess") -> Dialect:
    """Return how a table is most likely written.

    Args:
        lines: first lines of the file, with their ends.
        delimiter: if given.
        comment: if given.
        quotes: ``yes``, ``no`` or ``guess``.
    """
    if lines and (named := separator_in(lines[0])):
        delimiter, lines = delimiter or named, lines[1:]
    if not comment and lines and lines[0].startswith("#"):
        comment = "#"
    lines = [line for line in lines if line.strip() and not (comment and line.startswith(comment))][:_HEAD_ROWS]
    delimiter = delimiter or _delimiter(lines)
    quoted = _is_quoted(lines, delimiter) if quotes == "guess" else quotes == "yes"
    found = Dialect(delimiter=delimiter, quotes=quoted, comment=comment)
    cells = [cell for row in _rows(lines, found) for cell in row]
    later = [cell for row in _rows(lines, found) for cell in row[1:] if cell]
    blanks = delimiter != "\t" and bool(later) and all(cell.startswith(" ") for cell in later)
    decimal, is_open = _decimal(cells, delimiter)
    return Dialect(
        delimiter=delimiter,
        quotes=quoted,
        comment=comment,
        decimal=decimal,
        skip_blanks=blanks,
        is_decimal_open=is_open,
    )


def guess_header(rows: Sequence[Sequence[str]], missing: Iterable[str] = ("", "?", "NA")) -> tuple[bool, str]:
    """Return whether the first row names the columns, and why, as one sentence.

    Args:
        rows: first rows of the table.
        missing: texts that stand for no value.
    """
    if not rows:
        return False, "the table is empty"
    first = [cell.strip() for cell in rows[0]]
    others = [row for row in rows[1:] if [cell.strip() for cell in row] != first]  # files may have been put together
    named = [cell for cell in first if cell]
    if any(number_of(cell) is not None for cell in first):
        if _numbers_columns(first, others):
            return True, "the first row numbers the columns"
        return False, "the first row holds numbers"
    if len(named) < max(1, len(first) - 1):
        return False, "the first row does not hold a name for each column"
    empty = set(missing)
    for index, cell in enumerate(first):
        below = [row[index].strip() for row in others if len(row) > index]
        kinds = Counter(map(_kind, (value for value in below if value not in empty)))
        kind, count = kinds.most_common(1)[0] if kinds else ("text", 0)
        if cell and kind != "text" == _kind(cell) and count >= _KIND_SHARE * kinds.total():
            return True, f"the first row has the text {cell!r} above {kind}s"
    if len(set(named)) < len(named):
        return False, "the first row does not hold a different name for each column"
    full = [row for row in others if len(row) == len(first)]
    repeated = [index for index, cell in enumerate(first) if any(cell == row[index].strip() for row in full)]
    if repeated:
        return False, "what the first row says comes again below it"
    if any(cell.lower() in _USUAL_NAMES for cell in first):
        return True, "the first row holds usual names of columns"
    is_alone = len(others) == len(rows) - 1
    return is_alone and _has_categories(others, len(first)), "the first row differs from all others"


def _kind(cell: str) -> str:
    if number_of(cell) is not None:
        return "number"
    if _DATE.fullmatch(cell):
        return "date"
    return "truth" if cell.lower() in _TRUTHS else "text"


def _numbers_columns(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Say whether a row with numbers counts the columns (0, 1, 2, target) or years, above cells of another kind."""
    numbers = {index: number_of(cell) for index, cell in enumerate(first)}
    counted = {index: number for index, number in numbers.items() if isinstance(number, int)}
    steps = {number - index for index, number in counted.items()}
    texts = [cell for index, cell in enumerate(first) if numbers[index] is None]
    if len(steps) != 1 or len(counted) + len(texts) < len(first) or "" in texts[1:] or _is_run(others, counted):
        return False
    least = 2 if steps <= {-1, 0, 1} else 3
    if len(counted) < least:
        return False
    below = [[row[index] for row in others if len(row) == len(first)] for index in counted]
    broken = [cells for cells in below if sum(isinstance(number_of(cell), int) for cell in cells) < len(cells) / 2]
    above = [index for index, cell in enumerate(first) if cell and numbers[index] is None]
    titled = [index for index in above if all(number_of(row[index]) is not None for row in others if len(row) > index)]
    return bool(others) and bool(broken or titled or (least == 2 and len(counted) >= _LEAST_NUMBERED))


def _is_run(rows: Sequence[Sequence[str]], counted: Iterable[int]) -> bool:
    """Say whether some row below counts as well, so that counting tells no heading from rows."""
    places = list(counted)
    for row in rows:
        numbers = [number_of(row[index]) for index in places if len(row) > index]
        if all(isinstance(number, int) for number in numbers):
            steps = {int(number or 0) - index for number, index in zip(numbers, places)}
            if len(places) > 1 and len(steps) == 1:
                return True
    return False


def number_of(cell: str, decimal: str = ".") -> int | float | None:
    """Return the number that a cell holds; None where it holds none, or one that would lose digits.

    Args:
        cell: a text; blanks around the number do not count. ``007`` is no number but a code. Thousands may be grouped
            by the other sign, as in ``1.234,5``.
        decimal: ``.`` or ``,``.
    """
    cell = cell.strip()
    if _GROUPED[decimal].fullmatch(cell):
        cell = cell.replace("," if decimal == "." else ".", "")
    if decimal != "." and "." not in cell:
        cell = cell.replace(decimal, ".")
    if _INTEGER.fullmatch(cell):
        whole = int(cell)
        return whole if -_LARGEST <= whole < _LARGEST else None
    if not _FLOAT.fullmatch(cell) or cell.lstrip("+-").isdigit():
        return None
    value = float(cell)
    return value if abs(value) != float("inf") else None


def _delimiter(lines: Sequence[str]) -> str:
    shares = {
        each: _consistency(lines, Dialect(delimiter=each, quotes=_is_quoted(lines, each))) for each in _DELIMITERS
    }
    sure = [delimiter for delimiter, share in shares.items() if share >= _SURE]
    if sure:
        return sure[0]
    blank = Dialect(delimiter=" ")
    if _consistency(lines, blank) >= _SURE and any(number_of(cell) is not None for cell in _rows(lines[:1], blank)[0]):
        return " "
    best = max(shares, key=lambda delimiter: shares[delimiter])
    return best if shares[best] else ","


def _consistency(lines: Sequence[str], dialect: Dialect) -> float:
    """Return the share of rows that have the usual number of cells; 0 where that is 1."""
    counts = Counter(len(row) for row in _rows(lines, dialect))
    if not counts:
        return 0.0
    cells, rows = counts.most_common(1)[0]
    return rows / sum(counts.values()) if cells > 1 else 0.0


def _rows(lines: Sequence[str], dialect: Dialect) -> list[list[str]]:
    try:
        return [row for row in parse_rows(lines, dialect) if row]
    except csv.Error:
        return [line.split(dialect.delimiter) for line in lines]


def _is_quoted(lines: Sequence[str], delimiter: str) -> bool:
    """Say whether quotes enclose cells; between tabs, where they rarely do, each cell that begins with one must fit."""
    if delimiter != "\t":
        return True
    opened = [
        cell
        for line in lines
        for cell in line.rstrip("\r\n").split(delimiter)
        if cell.startswith('"') and len(cell) > 1
    ]
    closed = [cell for cell in opened if cell.endswith('"') and cell[1:-1].replace('""', "").count('"') == 0]
    return bool(opened) and len(closed) == len(opened)


def _decimal(cells: Sequence[str], delimiter: str) -> tuple[str, bool]:
    """Return the sign of decimals, and whether the cells leave it open: ``1,234`` may be 1.234 and 1234."""
    cells = [cell.strip() for cell in cells]
    points = [cell for cell in cells if "." in cell and number_of(cell) is not None]
    if any(not _GROUPED[","].fullmatch(cell) for cell in points):
        return ".", False  # such as 12.5, or 1,234.5
    grouped = [cell for cell in cells if _GROUPED["."].fullmatch(cell)]
    commas = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell) and not _GROUPED["."].fullmatch(cell)]
    both = [cell for cell in cells if "," in cell and "." in cell and _GROUPED[","].fullmatch(cell)]
    if both or (commas and delimiter != ","):
        return ",", False
    if not grouped or delimiter == ",":
        return ".", False
    return ".", not points


def _has_categories(rows: Sequence[Sequence[str]], columns: int) -> bool:
    """Say whether some column repeats few values, so that a header would be told from them."""
    for index in range(columns):
        values = [row[index] for row in rows if len(row) == columns]
        if len(values) >= 4 and len(set(values)) <= len(values) // 2:
            return True
    return False


@dataclass(frozen=True, kw_only=True)
class Description:
    """What an export says of its files.

    Args:
        schema: of the dataset.
        key: name of the column with the keys of the samples.
        suffix: of the files, such as ``.csv``; their names before it are those of splits.
        missing: text that stands for no value; None where the files say that by themselves.
    """

    schema: Schema
    key: str
    suffix: str
    missing: str | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of the files, in order."""
        if self.schema.kind == "table":
            return (self.key, *(column.name for column in self.schema.columns))
        return (self.key, "label", "text")

    @property
    def dialect(self) -> Dialect:
        """How the files are written, where they are text."""
        return Dialect(delimiter="\t" if self.suffix == ".tsv" else ",")

    def save(self, folder: Path) -> None:
        """Write ``columns.json``."""
        content = {"version": _VERSION, **asdict(self), "schema": self.schema.as_json()}
        (folder / DESCRIPTION_NAME).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def is_in(cls, source: Path, kind: str) -> bool:
        """Say whether one stands in a folder that describes a dataset of a kind, and is whole."""
        try:
            return source.is_dir() and cls.load(source, kind) is not None
        except DataError:
            return False

    @classmethod
    def load(cls, source: Path, kind: str) -> Self | None:
        """Return what stands beside a table, None where nothing does, or another program's file of that name.

        Args:
            source: the folder.
            kind: of dataset that is asked for.

        Raises:
            DataError: where it is ours, and damaged.
        """
        path = source / DESCRIPTION_NAME
        content = _content(path)
        if content is None or content.get("version") != _VERSION:
            return None
        try:
            schema = Schema.from_json(content["schema"])
            found = cls(
                schema=schema,
                key=str(content["key"]),
                suffix=str(content["suffix"]),
                missing=None if content["missing"] is None else str(content["missing"]),
            )
        except (KeyError, TypeError, ZigguratError) as error:
            raise DataError(f"`{DESCRIPTION_NAME}` is read as it was written.", received=f"`{path}`: {error}") from None
        return found if schema.kind == kind else None


def _content(path: Path) -> Mapping[str, Any] | None:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return None
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("schema"), dict) else None
