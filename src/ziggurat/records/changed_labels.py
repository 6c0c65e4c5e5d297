"""Labels of a split that were changed after its creation: JSON lines, with only their offsets in memory."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.errors import DataError
from ziggurat.records.files import DataFile

__all__ = ["ChangedLabels"]


class ChangedLabels(Mapping[int, Any]):
    """Row → label, from a file of lines ``[row, label]``; costs 24 bytes a line, and a read for each label.

    Several threads may use it. Where a row stands twice, the last line counts.

    Args:
        path: the file.

    Raises:
        DataError: where it is not there, or not as written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            rows, ends = _scanned(path)
            self._file = DataFile(path)
        except (OSError, ValueError) as error:
            raise self._damaged(error) from None
        order = np.argsort(rows, kind="stable")
        self._rows, self._lines = rows[order], order
        self._ends = ends

    def __getitem__(self, row: int) -> Any:
        at = int(np.searchsorted(self._rows, row, side="right")) - 1
        if at < 0 or self._rows[at] != row:
            raise KeyError(row)
        line = int(self._lines[at])
        start = int(self._ends[line - 1]) if line else 0
        try:
            found, label = json.loads(self._file.read(start, int(self._ends[line]) - start))
        except (TypeError, ValueError) as error:
            raise self._damaged(error) from None
        if found != row:
            raise self._damaged(f"row {found} where row {row} was")
        return label

    def __contains__(self, row: object) -> bool:
        at = int(np.searchsorted(self._rows, row))  # pyright: ignore[reportArgumentType, reportCallIssue]
        return at < len(self._rows) and self._rows[at] == row

    def __iter__(self) -> Iterator[int]:
        return iter(dict.fromkeys(self._rows.tolist()))

    def __len__(self) -> int:
        return len(np.unique(self._rows))

    def _damaged(self, reason: object) -> DataError:
        return DataError("The changed labels of a split are read as written.", received=f"`{self._path}`: {reason}")


def _scanned(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and the end of each line, (N) int64 each."""
    rows, ends, place = array("q"), array("q"), 0
    with path.open("rb") as file:
        for line in file:
            if not (line.startswith(b"[") and line.rstrip().endswith(b"]")):
                raise ValueError(f"line {len(rows) + 1}: {line[:40]!r}")
            place += len(line)
            rows.append(int(line[1 : line.index(b",")]))
            ends.append(place)
    return np.array(rows, np.int64), np.array(ends, np.int64)
