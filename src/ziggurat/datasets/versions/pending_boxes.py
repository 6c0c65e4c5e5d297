"""Store of corrected boxes that are not a version yet: one SQLite file in the folder of a dataset.

Each image has states with numbers that only rise; state 0 is the label of the dataset, which is not stored. A change
names the state that it was made on, and is refused where that is not the newest any more. Earlier states stay for Undo.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import storage_errors
from ziggurat.datasets.catalog import sql_errors
from ziggurat.datasets.versions.boxes import CorrectedBox
from ziggurat.errors import DataError, OutdatedError, UsageError

__all__ = ["PENDING_BOXES_NAME", "BoxState", "PendingBoxes"]

PENDING_BOXES_NAME: Final = "pending-boxes.sqlite"
"""File in the folder of a dataset; there once a box was corrected."""

_NOTHING: Final = -1
_KEPT_STATES: Final = 200
_PATIENCE_S: Final = 30.0
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS states (
    split TEXT NOT NULL,
    row INTEGER NOT NULL,
    version INTEGER NOT NULL,    -- from 1
    boxes TEXT,                  -- JSON list of [source, class, left, top, right, bottom]; NULL: as in the dataset
    undoes INTEGER NOT NULL,     -- the state that Undo brings back; -1 for none
    user TEXT NOT NULL,
    time REAL NOT NULL,          -- seconds since 1970
    applied TEXT NOT NULL,       -- name of the version that was made of the state before; else empty
    PRIMARY KEY (split, row, version)
) WITHOUT ROWID
"""
_NEWEST: Final = "SELECT max(version) FROM states AS other WHERE other.split = states.split AND other.row = states.row"


@dataclass(frozen=True, kw_only=True)
class BoxState:
    """The boxes of one image as they stand.

    Args:
        split: that it is in.
        row: its number in the split.
        version: number of the state, 0 where nobody changed anything.
        boxes: the corrected ones; None where they are those of the dataset.
        user: who made the state; empty where nobody is known.
        time: when, in seconds since 1970; 0 for state 0.
        applied: name of the dataset version that was made of the state before; else empty.
        can_undo: whether there is a state before it.
    """

    split: str
    row: int
    version: int = 0
    boxes: tuple[CorrectedBox, ...] | None = None
    user: str = ""
    time: float = 0.0
    applied: str = ""
    can_undo: bool = False


class PendingBoxes:
    """The corrections of one dataset; threads and processes may use them at once.

    Args:
        folder: of the dataset.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / PENDING_BOXES_NAME

    def state(self, split: str, row: int) -> BoxState:
        """Return the newest state of an image."""
        if not self._path.is_file():
            return BoxState(split=split, row=row)
        with self._opened() as database:
            return _newest(database, split, row)

    def changed(self) -> list[BoxState]:
        """Return the state of each image whose boxes are not those of the dataset, by split and row."""
        if not self._path.is_file():
            return []
        with self._opened() as database:
            found = database.execute(
                f"SELECT * FROM states WHERE boxes IS NOT NULL AND version = ({_NEWEST}) ORDER BY split, row"
            )
            return [_state(row) for row in found]

    def save(self, state: BoxState, *, on: int) -> BoxState:
        """Save a state of an image; return it with its number.

        Args:
            state: its ``version`` and ``can_undo`` are not read.
            on: version of the state that it was made of.

        Raises:
            OutdatedError: where that is not the newest one.
            StorageError: where the disk is full or refuses.
        """
        with self._changing() as database:
            current = _checked(database, state, on)
            if current.boxes == state.boxes:
                return current
            return _add(database, state, undoes=current.version)

    def undo(self, state: BoxState, *, on: int) -> BoxState:
        """Bring the state back that an image had before the newest one.

        Args:
            state: split, row, user and time.
            on: version of the newest state.

        Raises:
            OutdatedError: where there is a newer one.
            UsageError: where there is none before it.
            StorageError: where the disk is full or refuses.
        """
        with self._changing() as database:
            _checked(database, state, on)
            undoes = _undoes(database, state.split, state.row, on)
            before = None if undoes == _NOTHING else _known(database, state.split, state.row, undoes)
            if before is None:
                raise UsageError(
                    "Undo needs a change of this image that was saved.", received="no change, or none that is kept"
                )
            new = BoxState(split=state.split, row=state.row, boxes=before.boxes, user=state.user, time=state.time)
            return _add(database, new, undoes=_undoes(database, state.split, state.row, undoes))

    def note_applied(self, states: Sequence[BoxState], name: str, time: float) -> None:
        """Note that a dataset version has these states: the images are as in the dataset again, as Undo can take back.

        An image that somebody changed meanwhile keeps its newer state.

        Args:
            states: that were applied.
            name: of the version.
            time: seconds since 1970.
        """
        with self._changing() as database:
            for each in states:
                if _newest(database, each.split, each.row).version == each.version:
                    new = BoxState(split=each.split, row=each.row, user=each.user, time=time, applied=name)
                    _add(database, new, undoes=each.version)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        self._make_file()
        if not self._path.stat().st_size:  # SQLite would take it for a new database
            raise _damaged(self._path, "the file is empty")
        try:
            with (
                sql_errors(self._path),
                closing(sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None)) as database,
            ):
                database.row_factory = sqlite3.Row
                yield database
        except sqlite3.DatabaseError as error:
            raise _damaged(self._path, str(error)) from error

    def _make_file(self) -> None:
        """Make the file if it is not there, under its name only once it is complete: an empty one is damaged."""
        if self._path.is_file():
            return
        new = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            with sql_errors(self._path), closing(sqlite3.connect(new, isolation_level=None)) as database:
                database.execute(_TABLE)
            with storage_errors(self._path), suppress(FileExistsError):  # another process made it
                os.link(new, self._path)
        finally:
            new.unlink(missing_ok=True)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(
        "The corrections of boxes that are not a version yet cannot be read.",
        received=f"`{path}`: {reason}",
        advice="The file is damaged; the dataset is not. Move the file away to correct boxes again.",
    )


def _state(row: sqlite3.Row) -> BoxState:
    boxes = None if row["boxes"] is None else tuple(map(CorrectedBox.from_list, json.loads(row["boxes"])))
    return BoxState(
        split=row["split"],
        row=row["row"],
        version=row["version"],
        boxes=boxes,
        user=row["user"],
        time=row["time"],
        applied=row["applied"],
        can_undo=row["undoes"] != _NOTHING,
    )


def _newest(database: sqlite3.Connection, split: str, row: int) -> BoxState:
    found = database.execute(
        "SELECT * FROM states WHERE split = ? AND row = ? ORDER BY version DESC LIMIT 1", (split, row)
    ).fetchone()
    return BoxState(split=split, row=row) if found is None else _state(found)


def _known(database: sqlite3.Connection, split: str, row: int, version: int) -> BoxState | None:
    """Return a state by its number; None for one that is not kept any more."""
    if version == 0:
        return BoxState(split=split, row=row)
    found = database.execute(
        "SELECT * FROM states WHERE split = ? AND row = ? AND version = ?", (split, row, version)
    ).fetchone()
    return None if found is None else _state(found)


def _undoes(database: sqlite3.Connection, split: str, row: int, version: int) -> int:
    found = database.execute(
        "SELECT undoes FROM states WHERE split = ? AND row = ? AND version = ?", (split, row, version)
    ).fetchone()
    return _NOTHING if found is None else int(found[0])


def _checked(database: sqlite3.Connection, state: BoxState, on: int) -> BoxState:
    current = _newest(database, state.split, state.row)
    if current.version != on:
        raise _outdated(current, on)
    return current


def _outdated(current: BoxState, on: int) -> OutdatedError:
    """Return the error for a change that was made on a state that is not the newest."""
    who = f" by {current.user}" if current.user else ""
    return OutdatedError(
        f"The boxes of state {on} are old: state {current.version} was saved{who} meanwhile.",
        advice="Load the newer boxes and make the change on them, or save yours on state "
        f"{current.version}: the newer ones stay within reach of Undo.",
    )


def _add(database: sqlite3.Connection, state: BoxState, *, undoes: int) -> BoxState:
    version = _newest(database, state.split, state.row).version + 1
    boxes: Any = None if state.boxes is None else json.dumps([each.as_list() for each in state.boxes])
    values = (state.split, state.row, version, boxes, undoes, state.user, state.time, state.applied)
    database.execute(f"INSERT INTO states VALUES ({', '.join('?' * len(values))})", values)
    database.execute(
        "DELETE FROM states WHERE split = ? AND row = ? AND version <= ?",
        (state.split, state.row, version - _KEPT_STATES),
    )
    return _newest(database, state.split, state.row)
