"""Catalog reader: pages of samples by filter and position, problems, counts, and columns as arrays."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from ziggurat.datasets.catalogue.entries import COLUMNS, Entry, SampleFilter, entry_of_row, where
from ziggurat.datasets.catalogue.tables import connect_for_reading, damaged_catalogue
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError, UnknownNameError

__all__ = ["Catalogue"]

_BLOCK: Final = 1000
_NUMBERS: Final[Mapping[str, tuple[str, Any]]] = {
    "number": ("number", np.int64),
    "row": ("row", np.int64),
    "class": ("class", np.int32),
    "time": ("time", np.float64),
    "source_bytes": ("source_bytes", np.int64),
    "stored_bytes": ("stored_bytes", np.int64),
    "width": ("width", np.int32),
    "height": ("height", np.int32),
    "objects": ("objects", np.int32),
    "picture_hash": ("picture_hash", np.int64),
}
_MISSING: Final = {np.int32: -1, np.int64: -1, np.float64: float("nan")}


class Catalogue:
    """Reads a catalog; memory does not grow with the number of samples, but for ``column``.

    Args:
        path: the file.

    Raises:
        DataError: where it is not there or no catalog.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._connection = connect_for_reading(self.path)
        self._lock = threading.Lock()  # a server's threads share one connection
        self._has_objects = bool(self._all("SELECT 1 FROM object_classes LIMIT 1"))

    # ---- samples

    def __len__(self) -> int:
        return self._one("SELECT count(*) FROM samples")

    def count(self, chosen: SampleFilter | None = None) -> int:
        """Return the number of samples that a filter leaves."""
        condition, values = self._where(chosen)
        return self._one(f"SELECT count(*) FROM samples WHERE {condition}", values)

    def page(self, chosen: SampleFilter | None = None, *, offset: int = 0, limit: int = 50) -> list[Entry]:
        """Return some of the samples that a filter leaves, in their order: split by split, row by row.

        Args:
            chosen: which samples; None for all.
            offset: how many to leave out first.
            limit: how many to return at most.
        """
        condition, values = self._where(chosen)
        # Only numbers are walked over; the wide rows are read for the page alone.
        numbers = f"SELECT number FROM samples WHERE {condition} ORDER BY number LIMIT ? OFFSET ?"
        found = [number for (number,) in self._all(numbers, [*values, limit, offset])]
        return self.entries(found)

    def entries(self, numbers: Sequence[int]) -> list[Entry]:
        """Return samples by number, in the order of ``numbers``.

        Raises:
            DataError: where there is no sample of a number.
        """
        found: dict[int, Entry] = {}
        for start in range(0, len(numbers), _BLOCK):
            block = [int(number) for number in numbers[start : start + _BLOCK]]
            marks = ", ".join("?" * len(block))
            for row in self._all(f"SELECT {COLUMNS} FROM samples WHERE number IN ({marks})", block):
                found[row[0]] = entry_of_row(row)
        missing = [int(number) for number in numbers if number not in found]
        if missing:
            raise DataError("Samples are chosen by numbers that they have.", received=str(missing[:10]))
        return [found[int(number)] for number in numbers]

    def walk(self, chosen: SampleFilter | None = None) -> Iterator[Entry]:
        """Yield the samples that a filter leaves, in the order of their numbers."""
        condition, values = self._where(chosen)
        after = -1
        while True:
            rows = self._all(
                f"SELECT {COLUMNS} FROM samples WHERE number > ? AND {condition} ORDER BY number LIMIT {_BLOCK}",
                [after, *values],
            )
            yield from map(entry_of_row, rows)
            if len(rows) < _BLOCK:
                return
            after = rows[-1][0]

    def find(self, key: str) -> Entry | None:
        """Return the sample of a key, None where there is none."""
        rows = self._all(f"SELECT {COLUMNS} FROM samples WHERE key = ? LIMIT 1", [key])
        return entry_of_row(rows[0]) if rows else None

    def repeated_keys(self, limit: int = 3) -> list[str]:
        """Return some of the keys that more than one sample has; a dataset has none."""
        query = "SELECT key FROM samples GROUP BY key HAVING count(*) > 1 ORDER BY key LIMIT ?"
        return [key for (key,) in self._all(query, [limit])]

    # ---- columns, for arithmetic over all samples

    def column(self, name: str, chosen: SampleFilter | None = None) -> np.ndarray:
        """Return one value of every sample that a filter leaves, in the order of their numbers.

        Args:
            name: ``number``, ``row``, ``class``, ``time``, ``source_bytes``, ``stored_bytes``, ``width``, ``height``,
                ``objects`` or ``picture_hash``: (N) numbers, -1 or NaN where there is no value; ``split`` or
                ``group``: (N) numbers of the text in ``texts(name)``.
            chosen: which samples; None for all.
        """
        condition, values = self._where(chosen)
        if name in ("split", "group"):
            numbers = {text: number for number, text in enumerate(self.texts(name))}
            rows = self._rows(f"SELECT {_TEXTS[name]} FROM samples WHERE {condition} ORDER BY number", values)
            return np.fromiter((numbers[text] for (text,) in rows), np.int32)
        if name not in _NUMBERS:
            raise UnknownNameError("column of the catalog", name, [*_NUMBERS, *_TEXTS])
        column, kind = _NUMBERS[name]
        missing = _MISSING[kind]
        rows = self._rows(f"SELECT {column} FROM samples WHERE {condition} ORDER BY number", values)
        return np.fromiter((missing if value is None else value for (value,) in rows), kind)

    def texts(self, name: str) -> list[str]:
        """Return the different texts of ``split`` or ``group``, in order."""
        if name not in _TEXTS:
            raise UnknownNameError("column of texts", name, _TEXTS)
        return [text for (text,) in self._all(f"SELECT DISTINCT {_TEXTS[name]} FROM samples ORDER BY 1")]

    # ---- counts, problems, notes

    def split_counts(self) -> dict[str, int]:
        """Return split → samples."""
        return dict(self._all("SELECT split, count(*) FROM samples GROUP BY split ORDER BY split"))

    def class_counts(self, split: str | None = None) -> dict[int, int]:
        """Return class number → samples, or objects where samples have several."""
        values = [] if split is None else [split]
        # The plus makes SQLite walk along the index by class once, instead of looking up each sample of the split.
        if self._has_objects:
            inside = "" if split is None else "WHERE +number IN (SELECT number FROM samples WHERE split = ?)"
            query = f"SELECT class, sum(objects) FROM object_classes {inside} GROUP BY class ORDER BY class"
        else:
            inside = "" if split is None else "AND +split = ?"
            query = (
                f"SELECT class, count(*) FROM samples WHERE class IS NOT NULL {inside} GROUP BY class ORDER BY class"
            )
        return dict(self._all(query, values))

    def problem_counts(self) -> dict[str, int]:
        """Return kind of problem → how many."""
        return dict(self._all("SELECT kind, count(*) FROM problems GROUP BY kind ORDER BY kind"))

    def problems(self, kind: str | None = None, *, offset: int = 0, limit: int = 100) -> list[Problem]:
        """Return some of the problems, in the order in which they were found."""
        condition, values = ("1", []) if kind is None else ("kind = ?", [kind])
        rows = self._all(
            f"SELECT key, kind, reason, left_out FROM problems WHERE {condition} ORDER BY rowid LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [Problem(key=key, kind=kind, reason=reason, left_out=bool(out)) for key, kind, reason, out in rows]

    def problems_of(self, keys: Sequence[str]) -> dict[str, list[Problem]]:
        """Return key → problems, of these keys."""
        found: dict[str, list[Problem]] = {}
        for key in keys:
            rows = self._all("SELECT kind, reason, left_out FROM problems WHERE key = ? ORDER BY rowid", [key])
            if rows:
                found[key] = [Problem(key=key, kind=kind, reason=why, left_out=bool(out)) for kind, why, out in rows]
        return found

    def note(self, name: str) -> Any:
        """Return the JSON value that was kept under a name, None where there is none."""
        rows = self._all("SELECT value FROM notes WHERE name = ?", [name])
        return json.loads(rows[0][0]) if rows else None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _where(self, chosen: SampleFilter | None) -> tuple[str, list[Any]]:
        return where(chosen or SampleFilter(), object_classes=self._has_objects)

    def _all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise damaged_catalogue(self.path, error) from None

    def _one(self, query: str, values: Sequence[Any] = ()) -> int:
        return self._all(query, values)[0][0]

    def _rows(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield rows as they are read, from a connection of its own."""
        connection = connect_for_reading(self.path)
        try:
            yield from connection.execute(query, values)
        except sqlite3.DatabaseError as error:
            raise damaged_catalogue(self.path, error) from None
        finally:
            connection.close()


_TEXTS: Final = {"split": "split", "group": "sample_group"}
