"""Inputs of a prediction, by name: image files, frames of videos, rows of CSV and JSON files, texts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from ziggurat.dataflow.image_codec import read_file
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.standalone_preprocessing import row_of_texts
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.dataflow.video import is_video, video_frames
from ziggurat.datasets.formats.table.dialect import guess_dialect, number_of, parse_rows, separator_in
from ziggurat.errors import DataError, DatapointError, UsageError
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext
from ziggurat.worker.source import FilePath

__all__ = ["NamedInputs", "input_note", "named_inputs"]


class NamedInputs(NamedTuple):
    """What is to be predicted for.

    Args:
        found: (name, input) of each.
        failures: ``file`` and the error's JSON shape, of what cannot be read.
        notes: one sentence each on what was left out without a loss, such as columns that a network does not get.
    """

    found: list[tuple[str, Any]]
    failures: list[dict[str, Any]]
    notes: list[str]


def named_inputs(context: TaskContext, request: Mapping[str, Any]) -> NamedInputs:
    """Return everything that is to be predicted for, by name.

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
                f"`{field}` are given to a network that takes {_NOUNS.get(part, part)}.",
                advice=f"Give it {_NOUNS.get(part, part)}.",
            )
    given = request.get(inline.get(part, "")) or ()
    found: list[tuple[str, Any]] = [(str(number), each) for number, each in enumerate(given, 1)]
    failures: list[dict[str, Any]] = []
    notes: list[str] = []
    for file in request.get("images") or ():
        reader = _READERS.get(part)
        if reader is None and not is_video(file):
            found.append((file, FilePath(file)))
            continue
        try:
            if reader is None:
                found += [(frame.name(file), frame.content) for frame in video_frames(file)]
                continue
            for number, each in enumerate(reader(file, context, notes), 1):
                name = f"{file}:{number}"
                if isinstance(each, ValueError):
                    failures.append({"file": name, **DatapointError(name, str(each)).as_dict()})
                else:
                    found.append((name, each))
        except DataError as error:
            failures.append({"file": file, **error.as_dict()})
    return NamedInputs(found, failures, notes)


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


def _rows(file: str, context: TaskContext, notes: list[str]) -> Iterator[Any]:
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
        known = {column.name for column in context.schema.columns}
        _note_further(file, dict.fromkeys(name for row in rows for name in row if name not in known), notes)
        yield from ({name: value for name, value in row.items() if name in known} for row in rows)
        return
    preprocessing = context.preprocessing
    assert isinstance(preprocessing, TablePreprocessing)
    content = preprocessing.as_json()
    needed = {column["name"] for column in (*content["measured"], *content["categorical"])}
    header, rows, decimal = _cells(file, text, context.schema, needed)
    types = {column.name: column.type for column in context.schema.columns}
    _note_further(file, [name for name in header if name not in types], notes)
    for row in rows:
        cells = row if any(cell.strip() for cell in row[len(header) :]) else row[: len(header)]
        if len(cells) != len(header):
            yield ValueError(f"it has {len(row)} cells instead of {len(header)}.")
            continue
        texts = {name: cell for name, cell in zip(header, cells, strict=True) if name in types}
        texts = {name: _plain(cell, decimal) if types[name] == "number" else cell for name, cell in texts.items()}
        try:
            yield row_of_texts(content, texts)
        except ValueError as error:
            yield error


def _note_further(file: str, names: Collection[str], notes: list[str]) -> None:
    if names:
        listed = ", ".join(f"`{name}`" for name in names)
        notes.append(f"{listed} of {file} {'is no column' if len(names) == 1 else 'are no columns'} of the table.")


def _plain(cell: str, decimal: str) -> str:
    """Return a number without grouped thousands and with a point; any other cell as it is."""
    number = number_of(cell, decimal)
    return cell if number is None or "," not in cell + decimal else repr(number)


def _cells(file: str, text: str, schema: Schema, needed: Collection[str]) -> tuple[list[str], list[list[str]], str]:
    """Return column names, rows and decimal sign of a CSV file; without a header, the columns are those of the table.

    Raises:
        DataError: where it has other columns, or no row.
    """
    lines = text.splitlines(keepends=True)
    dialect = guess_dialect(lines)
    if dialect.is_decimal_open:
        raise _unusable(file, "numbers such as 1,234, which may be 1.234 or 1234,")
    if lines and separator_in(lines[0]):
        lines = lines[1:]
    lines = [line for line in lines if line.strip() and not (dialect.comment and line.startswith(dialect.comment))]
    try:
        rows = list(parse_rows(lines, dialect))
    except csv.Error as error:
        raise _unusable(file, str(error)) from None
    names = [column.name for column in schema.columns]
    first = [cell.strip() for cell in rows[0]] if rows else []
    if rows and (set(first) <= set(names) or 2 * len(set(first) & set(needed)) >= len(set(needed))):
        while first and not first[-1]:
            first.pop()
        header: list[str] | None = first
        rows = [row for row in rows if [cell.strip() for cell in row[: len(first)]] != first]
    else:
        without_target = [name for name in names if name != schema.target]
        header = next((each for each in (names, without_target) if rows and len(each) == len(rows[0])), None)
    if header is None or not rows or len(set(header)) < len(header):
        raise _unusable(file, f"{len(rows)} row(s) of {len(first)} cells for {len(names)} columns")
    return header, rows, dialect.decimal


def _lines(file: str, _context: TaskContext, _notes: list[str]) -> Iterator[str]:
    yield from (line for line in _text(file).splitlines() if line.strip())


_READERS: Final[Mapping[str, Callable[[str, TaskContext, list[str]], Iterator[Any]]]] = {"row": _rows, "text": _lines}


def _text(file: str) -> str:
    try:
        return bytes(read_file(file)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(file, f"bytes that are no UTF-8 ({error.reason})") from None


def _unusable(file: str, received: str) -> DataError:
    return DataError(
        f"{file} cannot be used: it has {received}.",
        advice="Rows come from a CSV file with headings or a JSON list of objects, texts from a file of lines.",
    )
