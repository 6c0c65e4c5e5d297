"""Catalog writer: samples, problems and notes, written to a new file atomically."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ziggurat.atomic import AtomicFile
from ziggurat.datasets.catalogue.entries import COLUMNS, Entry, row_of_entry
from ziggurat.datasets.catalogue.tables import INDEXES, connect_for_writing, sql_errors
from ziggurat.datasets.samples import Problem

__all__ = ["CatalogueWriter"]

_BATCH: Final = 2000
_INSERT: Final = f"INSERT INTO samples ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})"


class CatalogueWriter:
    """Writes a new catalog; use it in a ``with`` statement. The same entries give the same bytes.

    Args:
        path: file to make.
        replace: whether a file that stands there may be replaced when the new one is whole.

    Raises:
        StorageError: where something stands at ``path``, or the disk is full or refuses (also from every method).
    """

    def __init__(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        self._target = AtomicFile(Path(path), replace=replace)
        self._rows: list[tuple[Any, ...]] = []
        self._objects: list[tuple[int, int, int]] = []
        self._problems: list[tuple[str, str, str, int]] = []
        with sql_errors(self._target.final):
            self._connection = connect_for_writing(self._target.path, fresh=True)
            self._connection.execute("BEGIN")

    def add(self, entry: Entry) -> None:
        """Add a sample; numbers must differ."""
        self._rows.append(row_of_entry(entry))
        if entry.objects:
            counts: dict[int, int] = {}
            for each in entry.label:
                counts[each["class"]] = counts.get(each["class"], 0) + 1
            self._objects += [(number, entry.number, count) for number, count in sorted(counts.items())]
        if len(self._rows) >= _BATCH:
            self._write_out()

    def add_problem(self, problem: Problem) -> None:
        """Add a problem."""
        self._problems.append((problem.key, problem.kind, problem.reason, int(problem.left_out)))
        if len(self._problems) >= _BATCH:
            self._write_out()

    def note(self, name: str, value: Any) -> None:
        """Keep a JSON value under a name."""
        text = json.dumps(value, ensure_ascii=False)
        with sql_errors(self._target.final):
            self._connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, text))

    def finish(self) -> None:
        """Bring everything to the disk and give the file its name; called at the end of a ``with`` block."""
        try:
            self._write_out()
            with sql_errors(self._target.final):
                self._connection.execute("COMMIT")
                self._connection.executescript(INDEXES)
                self._connection.execute("ANALYZE")
            self._connection.close()
            self._target.publish()
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Give up and delete what was written."""
        self._connection.close()
        self._target.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    def _write_out(self) -> None:
        with sql_errors(self._target.final):
            self._connection.executemany(_INSERT, self._rows)
            self._connection.executemany("INSERT INTO object_classes VALUES (?, ?, ?)", self._objects)
            self._connection.executemany("INSERT INTO problems VALUES (?, ?, ?, ?)", self._problems)
        self._rows, self._objects, self._problems = [], [], []
