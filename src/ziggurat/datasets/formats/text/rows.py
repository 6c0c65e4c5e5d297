"""Labeled texts in rows of a table or of JSON lines: one column holds the texts, another the classes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from ziggurat.datasets.formats.shared.text_files import encoding_of, encoding_problems
from ziggurat.datasets.formats.table.dialect import Description, number_of
from ziggurat.datasets.formats.table.files import (
    IMAGE_ENDINGS,
    LABEL_NAMES,
    TEXT_NAMES,
    ParquetTable,
    TableFile,
    TextTable,
    is_parquet,
    signs_of,
    split_of,
    text_columns,
)
from ziggurat.datasets.importer import Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, UnknownNameError
from ziggurat.records.schema import Schema

__all__ = ["JSON_LINES_SUFFIXES", "TextRow", "TextRowScan", "json_columns", "sorted_classes"]

JSON_LINES_SUFFIXES: Final = (".jsonl", ".ndjson")
_MOST_CLASSES: Final = 10_000  # more distinct labels mean that the column is no class
_LARGEST_LINE: Final = 1 << 24  # a file without line ends must not fill the memory
_KEY: Final = "key"


class TextRow(NamedTuple):
    """One row.

    Args:
        place: where it stands.
        text: to be classified.
        label: name of its class; empty where there is none.
        split: as the row says it; empty where it does not.
        key: as the row says it; empty where it does not.
        reason: why it cannot be read; empty where it can.
        kind: of the problem that it is then.
    """

    place: str
    text: str = ""
    label: str = ""
    split: str = ""
    key: str = ""
    reason: str = ""
    kind: str = "bad-line"


class TextRowScan(Scan):
    """One walk through rows: once for the classes, once more for the samples.

    Args:
        files: of the splits, or the only one.
        options: those of ``TextImporter``.
        description: what an export of ours said of them; None for none.
    """

    def __init__(
        self, files: Sequence[TableFile], options: Mapping[str, Any], description: Description | None = None
    ) -> None:
        self._files = files
        self._options = options
        self._described = description
        self._classes: tuple[str, ...] = tuple(map(str, options["classes"]))
        self._whole: Mapping[str, str] = {}
        if description is not None:
            self._classes = description.schema.class_names

    def __iter__(self) -> Iterator[Sample | Problem]:
        """Yield the rows in their order.

        Raises:
            DataError: where no row has a class.
        """
        chosen = self._options["encoding"]
        for file in self._files:
            if not is_parquet(file.path):
                yield from encoding_problems(file.path.name, encoding_of(file.path, chosen), chosen)
        if not self._classes:
            self._classes = self._found_classes()
        for file in self._files:
            yield from self._samples(file)

    @property
    def schema(self) -> Schema:
        """What the rows mean."""
        details = {} if self._described is None else dict(self._described.schema.details)
        return Schema(kind="text-classification", class_names=self._classes, details=details)

    def _samples(self, file: TableFile) -> Iterator[Sample | Problem]:
        numbers = {name: number for number, name in enumerate(self._classes)}
        prefix = f"{file.path.stem}/" if len(self._files) > 1 else ""
        number = -1
        for row in self._rows(file.path):
            if row.reason:
                yield Problem(key=row.place, kind=row.kind, reason=row.reason, left_out=True, split=file.split)
                continue
            number += 1
            label = self._name_of(row.label)
            split = split_of(row.split) or file.split
            found = self._problem(row, label, numbers)
            if found is not None:
                yield replace(found, split=split)
                continue
            yield Sample(
                key=row.key or f"{prefix}row-{number:06d}",
                parts=(row.text.encode(),),
                label=numbers[label],
                split=split,
            )

    def _found_classes(self) -> tuple[str, ...]:
        labels: set[str] = set()
        for file in self._files:
            for row in self._rows(file.path):
                if row.label:
                    labels.add(row.label)
                if len(labels) > _MOST_CLASSES:
                    raise DataError(
                        f"The texts in `{file.path}` have more than {_MOST_CLASSES} classes.",
                        advice="Name the column with the classes with the option `label`.",
                    )
        if not labels:
            raise DataError(
                f"No row of `{self._files[0].path}` has a class.",
                advice="Name the columns with the options `text` and `label`.",
            )
        self._whole = _whole_numbers(labels)
        return sorted_classes({self._name_of(label) for label in labels})

    def _name_of(self, label: str) -> str:
        """Return the name of a class: ``1`` for ``1.0`` where all classes are whole numbers, as pandas writes them."""
        return self._whole.get(label, label)

    def _problem(self, row: TextRow, label: str, classes: Mapping[str, int]) -> Problem | None:
        """Return why a row is left out, None where it is not."""
        if not label and "" not in classes:
            return Problem(key=row.place, kind="no-label", reason="The row has no class.", left_out=True)
        if label not in classes:
            reason = f"The class {label!r} is none of those that were named."
            kind = "not-listed" if self._options["classes"] else "unknown-class"
            return Problem(key=row.place, kind=kind, reason=reason, left_out=True, class_name=label)
        if not row.text.strip() and self._described is None:
            reason = "The row has no text."
            return Problem(key=row.place, kind="empty-text", reason=reason, left_out=True, class_name=label)
        return None

    def _rows(self, path: Path) -> Iterator[TextRow]:
        if path.suffix.lower() in JSON_LINES_SUFFIXES:
            encoding = encoding_of(path, self._options["encoding"])
            return _json_rows(path, *self._columns_of_json(path, encoding), encoding)
        return self._table_rows(path)

    def _columns_of_json(self, path: Path, encoding: str) -> tuple[str, str]:
        if self._described is not None:
            return "text", "label"
        if self._options["text"] and self._options["label"]:
            return self._options["text"], self._options["label"]
        text, label = json_columns(path, encoding)
        return self._options["text"] or text, self._options["label"] or label

    def _table_rows(self, path: Path) -> Iterator[TextRow]:
        table = self._table(path)
        text, label = self._columns
        for name in (text, label):
            if name not in table.names:
                raise UnknownNameError("column of the table", name, table.names)
        split = next((name for name in table.names if name.lower() == "split"), "")
        key = _KEY if self._described is not None else ""
        for place, cells, reason, kind in table.rows():
            if reason:
                yield TextRow(place, reason=reason, kind=kind)
                continue
            values = dict(zip(table.names, ("" if cell is None else str(cell) for cell in cells), strict=True))
            name = values[label] if self._described is not None else values[label].strip()
            yield TextRow(place, values[text], name, values.get(split, ""), values.get(key, ""))

    def _table(self, path: Path) -> TextTable | ParquetTable:
        if is_parquet(path):
            return ParquetTable(path)
        if self._described is not None:
            return TextTable(path, self._described.dialect, header="yes", names=self._described.column_names)
        header = self._options["header"]
        if header == "guess" and path != self._files[0].path:
            header = "no" if isinstance(self._first, TextTable) and not self._first.has_header else "yes"
        expected = {self._options["text"], self._options["label"]} - {""}
        return TextTable(path, header=header, expected=expected, encoding=self._options["encoding"])

    @cached_property
    def _first(self) -> TextTable | ParquetTable:
        """The table of the first file; those of other splits are written like it."""
        return self._table(self._files[0].path)

    @cached_property
    def _columns(self) -> tuple[str, str]:
        """The names of the columns with the texts and with their classes."""
        if self._described is not None:
            return "text", "label"
        text, label = self._options["text"], self._options["label"]
        if text and label:
            return text, label
        found = text_columns(signs_of(self._first).profiles)
        if found is None:
            raise DataError(
                "A table of texts has a column with texts and one with their classes.",
                received=f"`{self._first.path}` with the columns {', '.join(self._first.names)}",
                advice="Name them with the options `text` and `label`.",
            )
        return text or found[0], label or found[1]


def sorted_classes(labels: set[str]) -> tuple[str, ...]:
    """Return names of classes in the order of their numbers: whole numbers by size, all others by letter."""
    numbers = {label: number_of(label) for label in labels}
    if all(isinstance(number, int) for number in numbers.values()):
        return tuple(sorted(labels, key=lambda label: (numbers[label], label)))
    return tuple(sorted(labels))


def _whole_numbers(labels: set[str]) -> Mapping[str, str]:
    """Return label → the whole number that it is, if all are and some are written as 1.0; else nothing."""
    numbers = {label: number_of(label) for label in labels}
    if not all(isinstance(number, int) or (number is not None and number.is_integer()) for number in numbers.values()):
        return {}
    floats = any(isinstance(number, float) for number in numbers.values())
    return {label: str(int(number or 0)) for label, number in numbers.items()} if floats else {}


def json_columns(path: Path, encoding: str) -> tuple[str, str]:
    """Return the fields of JSON lines with the text and with the class.

    Args:
        path: of the file.
        encoding: of the file.

    Raises:
        DataError: where the first line has none of the usual names, or names an image.
    """
    first = next((content for _, content in _objects(path, encoding) if isinstance(content, dict)), {})
    if any(isinstance(value, str) and value.lower().endswith(IMAGE_ENDINGS) for value in first.values()):
        raise DataError("JSON lines of texts name no images.", received=f"`{path}` with {', '.join(first)}")
    lower = {str(name).lower(): str(name) for name in reversed(first)}
    text = next((lower[name] for name in TEXT_NAMES if name in lower), "")
    label = next((lower[name] for name in LABEL_NAMES if name in lower), "")
    if not text or not label:
        raise DataError(
            f"`{path}` has {', '.join(first) or 'no object'}, and no fields `text` and `label` or others "
            "of the usual names.",
            advice="Name the fields with the options `text` and `label`.",
        )
    return text, label


def _json_rows(path: Path, text: str, label: str, encoding: str) -> Iterator[TextRow]:
    for place, content in _objects(path, encoding):
        if not isinstance(content, dict) or not isinstance(content.get(text), str):
            yield TextRow(place, reason=f"The line is no JSON object with a text in `{text}`.")
            continue
        name = content.get(label)
        if isinstance(name, list | dict):
            yield TextRow(place, reason=f"`{label}` is no single class, but {str(name)[:80]!r}.", kind="no-label")
            continue
        yield TextRow(
            place,
            content[text],
            "" if name is None else str(name),
            str(content.get("split") or ""),
            str(content.get(_KEY) or ""),
        )


def _objects(path: Path, encoding: str) -> Iterator[tuple[str, Any]]:
    with path.open(encoding=encoding, newline="\n") as file:
        number = 0
        while line := file.readline(_LARGEST_LINE):
            number += 1
            if not line.strip():
                continue
            try:
                yield f"{path.name}:{number}", json.loads(line)
            except (ValueError, RecursionError):
                yield f"{path.name}:{number}", None
