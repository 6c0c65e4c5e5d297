"""Dataset catalog: one SQLite file that indexes every sample and problem, with paged queries."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import numpy as np

from ziggurat.atomic import AtomicFile, file_signature
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, StorageError, UnknownNameError
from ziggurat.records.codec import pack, unpack

__all__ = ["ORDERS", "Catalogue", "CatalogueWriter", "Entry", "SampleFilter", "SampleOrder"]

COLUMNS = (
    "number, split, row, key, parts, content, label, class, sample_group, time, source_bytes, stored_bytes, width, "
    "height, objects, content_hash, picture_hash"
)
_BLOCK: Final = 1000  # rows that are in memory at once
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
_BATCH: Final = 2000
_INSERT: Final = f"INSERT INTO samples ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})"
_PROBLEM: Final = tuple(each.name for each in fields(Problem))
_INSERT_PROBLEM: Final = f"INSERT INTO problems VALUES ({', '.join('?' * len(_PROBLEM))})"
TABLES: Final = """
CREATE TABLE samples (
    number INTEGER PRIMARY KEY,  -- from 0; in a dataset: split by split, row by row
    split TEXT NOT NULL,
    row INTEGER,                 -- number within the split; NULL before splits are made
    key TEXT NOT NULL,
    parts TEXT,                  -- JSON list of addresses; NULL where the one address is the key
    content BLOB,                -- packed parts where one of them is the content itself
    label TEXT,                  -- JSON
    class INTEGER,               -- where the label is one class
    sample_group TEXT NOT NULL,
    time REAL,
    source_bytes INTEGER,
    stored_bytes INTEGER,
    width INTEGER,
    height INTEGER,
    objects INTEGER,
    content_hash BLOB,           -- first 16 bytes of the SHA-256 of the first part as it came
    picture_hash INTEGER         -- perceptual hash, 64 bits, signed
);
CREATE TABLE object_classes (class INTEGER NOT NULL, number INTEGER NOT NULL, objects INTEGER NOT NULL);
CREATE TABLE problems (
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    left_out INTEGER NOT NULL,
    objects INTEGER NOT NULL,    -- from here on what was lost by it; 0.2 had none of these columns
    names INTEGER NOT NULL,
    why TEXT NOT NULL,
    class_name TEXT NOT NULL,
    split TEXT NOT NULL
);
CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
INDEXES: Final = """
CREATE INDEX samples_by_key ON samples (key);
CREATE INDEX samples_by_split ON samples (split, number);
-- Of all samples: SQLite counts by an index of some of them only with a look at each of their rows.
CREATE INDEX samples_by_class ON samples (class, number, split);
CREATE INDEX samples_by_group ON samples (sample_group) WHERE sample_group != '';
CREATE INDEX samples_by_content ON samples (content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX objects_by_class ON object_classes (class, number, objects);
CREATE INDEX problems_by_kind ON problems (kind, key);
CREATE INDEX problems_by_key ON problems (key);
"""

SampleOrder = Literal["row", "name", "largest", "smallest"]

ORDERS: Final[Mapping[str, str]] = {
    "row": "number",
    "name": "key, number",
    "largest": "source_bytes DESC, number",
    "smallest": "source_bytes IS NULL, source_bytes, number",
}
"""Order of samples → what SQL sorts by."""

_OF_KIND = "key IN (SELECT key FROM problems WHERE kind = ?)"

_TEXTS: Final = {"split": "split", "group": "sample_group"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What a catalog knows of one sample.

    Args:
        number: in the catalog, from 0.
        split: ``train``, ``val``, ``test``; empty before splits are made.
        row: number in its split; None before splits are made.
        key: its name in the source.
        parts: addresses or content, as in ``Sample``.
        label: in the form that the kind of the dataset says.
        class_number: where the label is one class.
        group: what must not be torn apart.
        time: seconds since 1970.
        source_bytes: size of the first part in the source.
        stored_bytes: size of the record.
        width_px: of the first image as it came.
        height_px: of the first image as it came.
        objects: number of objects in it, where the kind is detection.
        content_hash: first 16 bytes of the SHA-256 of the first part as it came.
        picture_hash: perceptual hash of the first image, 64 bits, as a signed number.
    """

    number: int
    split: str
    row: int | None
    key: str
    parts: tuple[str | bytes, ...]
    label: Any = None
    class_number: int | None = None
    group: str = ""
    time: float | None = None
    source_bytes: int | None = None
    stored_bytes: int | None = None
    width_px: int | None = None
    height_px: int | None = None
    objects: int | None = None
    content_hash: bytes | None = None
    picture_hash: int | None = None

    @classmethod
    def of_sample(cls, number: int, sample: Sample) -> Entry:
        """Return the entry of a sample that was scanned; its label decides class and number of objects."""
        label: Any = sample.label
        is_objects = isinstance(label, list) and all(isinstance(each, dict) for each in label)
        return cls(
            number=number,
            split=sample.split,
            row=None,
            key=sample.key,
            parts=sample.parts,
            label=label,
            class_number=label if type(label) is int else None,
            group=sample.group,
            time=sample.time,
            source_bytes=sample.size_bytes,
            objects=len(label) if is_objects else None,  # pyright: ignore[reportArgumentType]
        )


@dataclass(frozen=True, kw_only=True)
class SampleFilter:
    """Which samples; every condition that is given must hold.

    Args:
        split: of this split.
        class_number: of this class, or with an object of it.
        text: with this in their key, whatever its case.
        problem: with a problem of this kind; empty text for any problem.
        group: of this group.
        min_width_px: at least this wide.
        max_width_px: at most this wide.
        min_height_px: at least this high.
        max_height_px: at most this high.
        numbers: JSON list of catalog numbers; only these samples.
    """

    split: str | None = None
    class_number: int | None = None
    text: str | None = None
    problem: str | None = None
    group: str | None = None
    min_width_px: int | None = None
    max_width_px: int | None = None
    min_height_px: int | None = None
    max_height_px: int | None = None
    numbers: str | None = None


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
        try:
            self._has_objects = bool(self._all("SELECT 1 FROM object_classes LIMIT 1"))
        except BaseException:
            self.close()
            raise

    # ---- samples

    def __len__(self) -> int:
        return self._one("SELECT count(*) FROM samples")

    def count(self, chosen: SampleFilter | None = None) -> int:
        """Return the number of samples that a filter leaves."""
        condition, values = self._where(chosen)
        if not values and (total := self._gapless_total()) is not None:
            return total
        return self._one(f"SELECT count(*) FROM samples WHERE {condition}", values)

    def page(
        self, chosen: SampleFilter | None = None, *, offset: int = 0, limit: int = 50, order: SampleOrder = "row"
    ) -> list[Entry]:
        """Return some of the samples that a filter leaves.

        Args:
            chosen: which samples; None for all.
            offset: how many to leave out first.
            limit: how many to return at most.
            order: ``row`` (split by split, row by row), ``name``, ``largest`` or ``smallest`` (bytes in the source).

        Raises:
            UnknownNameError: where there is no such order.
        """
        if order not in ORDERS:
            raise UnknownNameError("order of samples", order, ORDERS)
        condition, values = self._where(chosen)
        if not values and order == "row" and (total := self._gapless_total()) is not None:
            return self.entries(range(min(offset, total), min(offset + limit, total)))
        # Only numbers are walked over; the wide rows are read for the page alone.
        numbers = f"SELECT number FROM samples WHERE {condition} ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?"
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

    def identities(self, split: str) -> Iterator[tuple[str, bytes | None, Any]]:
        """Yield key, content hash (None where it is not known) and label of the samples of a split, row by row."""
        query = "SELECT key, content_hash, label FROM samples WHERE split = ? ORDER BY number"
        for key, content, label in self._rows(query, [split]):
            yield key, content, _label_of_text(label)

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

    def split_counts(self, chosen: SampleFilter | None = None) -> dict[str, int]:
        """Return split → samples, of those that a filter leaves."""
        condition, values = self._where(chosen)
        return dict(
            self._all(f"SELECT split, count(*) FROM samples WHERE {condition} GROUP BY split ORDER BY split", values)
        )

    def class_counts_of(self, chosen: SampleFilter) -> dict[int, int]:
        """Return class number → samples that a filter leaves, or objects of theirs where samples have several."""
        condition, values = self._where(chosen)
        if self._has_objects:
            inside = f"number IN (SELECT number FROM samples WHERE {condition})"
            query = f"SELECT class, sum(objects) FROM object_classes WHERE {inside} GROUP BY class"
        else:
            query = f"SELECT class, count(*) FROM samples WHERE class IS NOT NULL AND {condition} GROUP BY class"
        return dict(self._all(query, values))

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

    def samples_with_problems(self) -> dict[str, int]:
        """Return kind of problem → how many samples of the catalog have it; what was left out does not count."""
        query = "SELECT kind, count(DISTINCT key) FROM problems WHERE NOT left_out GROUP BY kind ORDER BY kind"
        return dict(self._all(query))

    def problems(self, kind: str | None = None, *, offset: int = 0, limit: int = 100) -> list[Problem]:
        """Return some of the problems, in the order in which they were found."""
        condition, values = ("1", []) if kind is None else ("kind = ?", [kind])
        rows = self._all(
            f"SELECT {self._problem_columns} FROM problems WHERE {condition} ORDER BY rowid LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [Problem(**{**dict(zip(_PROBLEM, row, strict=True)), "left_out": bool(row[3])}) for row in rows]

    @cached_property
    def _problem_columns(self) -> str:
        known = {name for _, name, *_ in self._all("PRAGMA table_info(problems)")}
        empty = {"objects": "0", "names": "0"}
        return ", ".join(name if name in known else empty.get(name, "''") for name in _PROBLEM)

    def lost(self, kinds: Sequence[str]) -> list[tuple[str, str, str, str, int, int, int]]:
        """Return what problems lost: kind, why, class name, split, samples, objects and names, summed up.

        The split is as the source says it: that of the problem, or that of the sample before splits are made.

        Args:
            kinds: kinds of problems whose samples were left out without a loss.
        """
        wanted = f"left_out AND kind NOT IN ({', '.join('?' * len(kinds))})"
        query = (
            "SELECT kind, why, class_name, "
            "coalesce(nullif(found.split, ''), CASE WHEN samples.row IS NULL THEN samples.split END, ''), "
            "sum(wanted), sum(found.objects), sum(found.names) "
            f"FROM (SELECT rowid AS place, *, {wanted} AS wanted FROM problems) AS found "
            "LEFT JOIN samples ON samples.key = found.key "
            "WHERE wanted OR found.objects OR found.names GROUP BY 1, 2, 3, 4 ORDER BY min(place)"
        )
        return self._all(query, list(kinds))

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

    def _gapless_total(self) -> int | None:
        """Return the number of all samples where they are numbered without a gap, as in every dataset; else None.

        It is counted once for all who open the file, until it changes: SQLite counts by looking at every sample.
        """
        try:
            return _counted(self.path, file_signature(self.path))
        except (OSError, sqlite3.DatabaseError) as error:
            raise damaged_catalog(self.path, error) from None

    def _where(self, chosen: SampleFilter | None) -> tuple[str, list[Any]]:
        return where(chosen or SampleFilter(), object_classes=self._has_objects)

    def _all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise damaged_catalog(self.path, error) from None

    def _one(self, query: str, values: Sequence[Any] = ()) -> int:
        return self._all(query, values)[0][0]

    def _rows(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield rows as they are read, from a connection of its own."""
        connection = connect_for_reading(self.path)
        try:
            yield from connection.execute(query, values)
        except sqlite3.DatabaseError as error:
            raise damaged_catalog(self.path, error) from None
        finally:
            connection.close()


@lru_cache(maxsize=256)
def _counted(path: Path, _signature: tuple[int, ...]) -> int | None:
    with closing(connect_for_reading(path)) as connection:
        total, last = connection.execute("SELECT count(*), max(number) FROM samples").fetchone()
    return total if last in (None, total - 1) else None


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
        self._problems: list[tuple[Any, ...]] = []
        with sql_errors(self._target.final):
            self._connection = sqlite3.connect(self._target.path, isolation_level=None)
            try:
                self._connection.execute("PRAGMA page_size = 8192")
                # The file gets its name only when it is whole, and so needs no journal.
                self._connection.execute("PRAGMA journal_mode = OFF")
                self._connection.execute("PRAGMA synchronous = OFF")
                self._connection.executescript(TABLES)
                self._connection.execute("BEGIN")
            except BaseException:
                self.discard()
                raise

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
        self._problems.append(tuple(getattr(problem, name) for name in _PROBLEM))
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
            self._connection.executemany(_INSERT_PROBLEM, self._problems)
        self._rows, self._objects, self._problems = [], [], []


def where(chosen: SampleFilter, *, object_classes: bool) -> tuple[str, list[Any]]:
    """Return the SQL condition for a filter, with its values."""
    conditions: list[tuple[str, Any]] = []
    if chosen.class_number is not None:
        by_object = "number IN (SELECT number FROM object_classes WHERE class = ?)"
        conditions.append((by_object if object_classes else "class = ?", chosen.class_number))
    if chosen.problem is not None:
        any_kind = "key IN (SELECT key FROM problems WHERE ? = '')"
        conditions.append((any_kind if not chosen.problem else _OF_KIND, chosen.problem))
    if chosen.text:
        key = "key" if chosen.text.isascii() else "folded(key)"
        conditions.append((f"{key} LIKE ? ESCAPE '\\'", f"%{_escaped(chosen.text.casefold())}%"))
    # SQLite uses the index of samples with a group only where the condition says that there is one.
    group = "sample_group = ? AND sample_group != ''" if chosen.group else "sample_group = ?"
    plain = {
        "split = ?": chosen.split,
        group: chosen.group,
        "width >= ?": chosen.min_width_px,
        "width <= ?": chosen.max_width_px,
        "height >= ?": chosen.min_height_px,
        "height <= ?": chosen.max_height_px,
        "number IN (SELECT value FROM json_each(?))": chosen.numbers,
    }
    conditions += [(condition, value) for condition, value in plain.items() if value is not None]
    text = " AND ".join(condition for condition, _ in conditions) or "1"
    return text, [value for _, value in conditions]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def row_of_entry(entry: Entry) -> tuple[Any, ...]:
    """Return the values of ``COLUMNS`` for an entry."""
    parts, content = None, None
    if any(isinstance(part, bytes) for part in entry.parts):
        content = pack(list(entry.parts))
    elif entry.parts != (entry.key,):
        parts = json.dumps(entry.parts, ensure_ascii=False)
    return (
        entry.number, entry.split, entry.row, entry.key, parts, content,
        _label_to_text(entry.label),
        entry.class_number, entry.group, entry.time, entry.source_bytes, entry.stored_bytes, entry.width_px,
        entry.height_px, entry.objects, entry.content_hash, entry.picture_hash,
    )  # fmt: skip


def entry_of_row(row: tuple[Any, ...]) -> Entry:
    """Return the entry of a row with the values of ``COLUMNS``."""
    (number, split, place, key, parts, content, label, class_number, group, time, source_bytes, stored_bytes, width,
     height, objects, content_hash, picture_hash) = row  # fmt: skip
    if content is not None:
        parts_of = tuple(unpack(content))
    else:
        parts_of = (key,) if parts is None else tuple(json.loads(parts))
    return Entry(
        number=number, split=split, row=place, key=key, parts=parts_of,
        label=_label_of_text(label), class_number=class_number, group=group, time=time,
        source_bytes=source_bytes, stored_bytes=stored_bytes, width_px=width, height_px=height, objects=objects,
        content_hash=content_hash, picture_hash=picture_hash,
    )  # fmt: skip


def _label_to_text(label: Any) -> str | None:
    if type(label) is int:  # most are, and this is much faster
        return str(label)
    return None if label is None else json.dumps(label, ensure_ascii=False)


def _label_of_text(text: str | None) -> Any:
    if text is None:
        return None
    return int(text) if text.isdecimal() else json.loads(text)


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot write; several threads may share it, one at a time.

    Raises:
        DataError: where the file is not there or no catalog.
    """
    if not path.is_file():
        raise DataError(f"The catalog `{path}` of the dataset does not exist.")
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("SELECT number, picture_hash FROM samples LIMIT 1")
    except sqlite3.Error as error:
        connection.close()
        raise damaged_catalog(path, error) from None
    connection.create_function("folded", 1, _folded, deterministic=True)
    return connection


def damaged_catalog(path: Path, reason: object) -> DataError:
    """Return the error for a file that is no catalog, or a damaged one."""
    return DataError(
        "A catalog is read as it was written.",
        received=f"`{path}`: {reason}",
        advice="It is damaged; the records are not. Make the dataset, or a new version of it, again.",
    )


def _folded(text: object) -> str:
    """Return a text without the difference of upper and lower case in any script; SQLite knows ASCII only."""
    return str(text).casefold()


@contextmanager
def sql_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a full or refusing disk into a ``StorageError``."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(
            "A catalog needs a folder that may be written to, and free space.",
            received=f"`{path}`: {error}",
            advice="Free space or permit writing, or write to another folder.",
            details={"path": str(path)},
        ) from error
