"""Tables of the catalog, and its read and write connections."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ziggurat.errors import DataError, StorageError

__all__ = [
    "INDEXES",
    "TABLES",
    "connect_for_reading",
    "connect_for_writing",
    "damaged_catalogue",
    "sql_errors",
]

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
CREATE TABLE problems (key TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, left_out INTEGER NOT NULL);
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


def connect_for_writing(path: Path, *, fresh: bool) -> sqlite3.Connection:
    """Return a connection that writes.

    Args:
        path: the file.
        fresh: whether it is a new file that gets its name only when it is whole, and so needs no journal.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA page_size = 8192")
    if fresh:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(TABLES)
    return connection


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot write; several threads may share it, one at a time.

    Raises:
        DataError: where the file is not there or no catalog.
    """
    if not path.is_file():
        raise DataError("A dataset has a catalog of its samples.", received=f"`{path}`, which is not there")
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("SELECT number, picture_hash FROM samples LIMIT 1")
    except sqlite3.Error as error:
        connection.close()
        raise damaged_catalogue(path, error) from None
    connection.create_function("folded", 1, _folded, deterministic=True)
    return connection


def damaged_catalogue(path: Path, reason: object) -> DataError:
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
