"""Inputs of a prediction, by name: image files, frames of videos, rows of CSV and JSON files, texts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.dataflow.image_codec import read_file
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.standalone_preprocessing import row_of_texts
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.dataflow.video import is_video, video_frames
from ziggurat.datasets.formats.table.dialect import guess_dialect, parse_rows
from ziggurat.errors import DataError, DatapointError, UsageError
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext
from ziggurat.worker.source import FilePath

__all__ = ["input_note", "named_inputs"]


def named_inputs(
    context: TaskContext, request: Mapping[str, Any]
) -> tuple[list[tuple[str, Any]], list[dict[str, Any]]]:
    """Return (name, input) of everything that is to be predicted for, and the files that cannot be read.

    Args:
        context: of the job.
        request: ``images`` (paths; a video stands for its frames), ``rows`` and ``texts``, each where it is given.

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
        if reader is None and not is_video(file):
            found.append((file, FilePath(file)))
            continue
        try:
            if reader is None:
                found += [(frame.name(file), frame.content) for frame in video_frames(file)]
                continue
            for number, each in enumerate(reader(file, context), 1):
                name = f"{file}:{number}"
                if isinstance(each, ValueError):
                    failures.append({"file": name, **DatapointError(name, str(each)).as_dict()})
                else:
                    found.append((name, each))
        except DataError as error:
            failures.append({"file": file, **error.as_dict()})
    return found, failures


def input_note(context: TaskContext, content: Any) -> dict[str, str]:
    """Return ``note``, a sentence on what an input loses when it is read; nothing for an input that loses nothing.

    Args:
        context: of the job.
        content: as its preprocessing decodes it.
    """
    preprocessing = context.preprocessing
    note = preprocessing.input_note(content) if isinstance(preprocessing, Preprocessing) else ""
    return {"note": note} if note else {}


_NOUNS: Final[Mapping[str, str]] = {"image": "images", "row": "rows of a table", "text": "texts"}


def _rows(file: str, context: TaskContext) -> Iterator[Any]:
    """Yield the rows of a CSV or JSON file as column → value; for a row that cannot be used, the ValueError."""
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
    preprocessing = context.preprocessing
    assert isinstance(preprocessing, TablePreprocessing)
    content = preprocessing.as_json()
    header, rows, decimal = _cells(file, text, context.schema)
    numbers = {column.name for column in context.schema.columns if column.type == "number"} if decimal != "." else ()
    for row in rows:
        if len(row) != len(header):
            yield ValueError(f"it has {len(row)} cells instead of {len(header)}.")
            continue
        texts = {
            name: cell.replace(decimal, ".") if name in numbers and "." not in cell else cell
            for name, cell in zip(header, row, strict=True)
        }
        try:
            yield row_of_texts(content, texts)
        except ValueError as error:
            yield error


def _cells(file: str, text: str, schema: Schema) -> tuple[list[str], list[list[str]], str]:
    """Return column names, rows and decimal sign of a CSV file; without a header, the columns are those of the table.

    Raises:
        DataError: where it has other columns, or no row.
    """
    lines = text.splitlines(keepends=True)
    dialect = guess_dialect(lines)
    lines = [line for line in lines if line.strip() and not (dialect.comment and line.startswith(dialect.comment))]
    try:
        rows = list(parse_rows(lines, dialect))
    except csv.Error as error:
        raise _unusable(file, str(error)) from None
    names = [column.name for column in schema.columns]
    if rows and {cell.strip() for cell in rows[0]} <= set(names):
        header = [cell.strip() for cell in rows.pop(0)]
    else:
        without_target = [name for name in names if name != schema.target]
        header = next((each for each in (names, without_target) if rows and len(each) == len(rows[0])), None)
    if header is None or not rows:
        raise _unusable(file, f"{len(rows)} row(s) of {len(rows[0]) if rows else 0} cells for {len(names)} columns")
    return header, rows, dialect.decimal


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
        advice="Fix the file.",
    )
