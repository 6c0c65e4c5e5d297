"""Inputs of a prediction, by name: image files, rows of CSV and JSON files, texts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.dataflow.image_codec import read_file
from ziggurat.datasets.formats.table.columns import BOOLEANS
from ziggurat.datasets.formats.table.dialect import guess_dialect, number_of, parse_rows
from ziggurat.errors import DataError, UsageError
from ziggurat.tasks import TaskContext
from ziggurat.worker.source import FilePath

__all__ = ["named_inputs"]


def named_inputs(
    context: TaskContext, request: Mapping[str, Any]
) -> tuple[list[tuple[str, Any]], list[dict[str, Any]]]:
    """Return (name, input) of everything that is to be predicted for, and the files that cannot be read.

    Args:
        context: of the job.
        request: ``images`` (paths), ``rows`` and ``texts``, each where it is given.

    Raises:
        UsageError: where the network takes something else.
    """
    part = context.schema.parts[0]
    inline: Mapping[str, str] = {"row": "rows", "text": "texts"}
    for kind, field in inline.items():
        if request.get(field) and kind != part:
            raise UsageError(
                f"`{field}` are for a network that takes {field}.",
                received=f"a network that takes {_NOUNS.get(part, part)}",
                advice=f"Give it {_NOUNS.get(part, part)}.",
            )
    given = request.get(inline.get(part, "")) or ()
    found: list[tuple[str, Any]] = [(str(number), each) for number, each in enumerate(given, 1)]
    failures: list[dict[str, Any]] = []
    for file in request.get("images") or ():
        reader = _READERS.get(part)
        if reader is None:
            found.append((file, FilePath(file)))
            continue
        try:
            found += [(f"{file}:{number}", each) for number, each in enumerate(reader(file, context), 1)]
        except DataError as error:
            failures.append({"file": file, **error.as_dict()})
    return found, failures


_MISSING: Final = ("", "?", "NA", "N/A", "NaN", "nan", "null", "None")
_NOUNS: Final[Mapping[str, str]] = {"image": "images", "row": "rows of a table", "text": "texts"}


def _rows(file: str, context: TaskContext) -> Iterator[Any]:
    """Yield the rows of a CSV or JSON file: column → value, or a list in the order of the columns without a header."""
    text = _text(file)
    if Path(file).suffix.lower() == ".json":
        try:
            content = json.loads(text)
        except ValueError as error:
            raise _unusable(file, f"no JSON: {error}") from None
        rows = content if isinstance(content, list) else [content]
        if not all(isinstance(row, dict) for row in rows):
            raise _unusable(file, "JSON that is no list of objects")
        yield from rows
        return
    lines = text.splitlines(keepends=True)
    dialect = guess_dialect(lines)
    lines = [line for line in lines if line.strip() and not (dialect.comment and line.startswith(dialect.comment))]
    try:
        rows = list(parse_rows(lines, dialect))
    except csv.Error as error:
        raise _unusable(file, str(error)) from None
    columns = context.schema.columns
    names = [column.name for column in columns]
    if rows and {cell.strip() for cell in rows[0]} <= set(names):
        header = [cell.strip() for cell in rows.pop(0)]
    else:
        without_target = [name for name in names if name != context.schema.target]
        header = next((each for each in (names, without_target) if rows and len(each) == len(rows[0])), None)
    if header is None or not rows:
        raise _unusable(file, f"{len(rows)} row(s) of {len(rows[0]) if rows else 0} cells for {len(names)} columns")
    types = {column.name: column.type for column in columns}
    for row in rows:
        named = zip(header, row, strict=False)
        yield {name: _cell(cell, types[name], dialect.decimal) for name, cell in named}


def _cell(cell: str, column_type: str, decimal: str) -> Any:
    """Return the value that a cell of a CSV file holds; the text where it is none of its column."""
    if cell.strip() in _MISSING:
        return None
    if column_type == "number":
        number = number_of(cell, decimal)
        return cell if number is None else number
    if column_type == "boolean":
        return BOOLEANS.get(cell.strip().lower(), {"0": False, "1": True}.get(cell.strip(), cell))
    return cell.strip()


def _lines(file: str, _context: TaskContext) -> Iterator[str]:
    yield from (line for line in _text(file).splitlines() if line.strip())


_READERS: Final[Mapping[str, Callable[[str, TaskContext], Iterator[Any]]]] = {"row": _rows, "text": _lines}


def _text(file: str) -> str:
    try:
        return bytes(read_file(file)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(file, f"bytes that are no UTF-8 ({error.reason})") from None


def _unusable(file: str, received: str) -> DataError:
    return DataError(
        "Rows come from a CSV file with a line of headings, or a JSON list of objects; texts from a file of lines.",
        received=f"{received} in {file}",
        advice="Mend the file.",
    )
