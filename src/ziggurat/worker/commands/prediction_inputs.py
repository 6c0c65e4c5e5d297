"""Inputs of a prediction, by name: image files, rows of CSV and JSON files, texts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.dataflow.image_codec import read_file
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
            found += [(f"{file}:{number}", each) for number, each in enumerate(reader(file), 1)]
        except DataError as error:
            failures.append({"file": file, **error.as_dict()})
    return found, failures


_NOUNS: Final[Mapping[str, str]] = {"image": "images", "row": "rows of a table", "text": "texts"}


def _rows(file: str) -> Iterator[Mapping[str, Any]]:
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
    lines = text.splitlines()
    if len(lines) < 2:
        raise _unusable(file, f"{len(lines)} line(s)")
    try:
        dialect: Any = csv.Sniffer().sniff("\n".join(lines[:20]), delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    for row in csv.DictReader(lines, dialect=dialect):
        row.pop(None, None)  # pyright: ignore[reportArgumentType, reportCallIssue]
        yield row


def _lines(file: str) -> Iterator[str]:
    yield from (line for line in _text(file).splitlines() if line.strip())


_READERS: Final[Mapping[str, Callable[[str], Iterator[Any]]]] = {"row": _rows, "text": _lines}


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
