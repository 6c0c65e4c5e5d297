"""Lossless writer for rows of cells as text, into an empty folder; reading gives exactly the same cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.errors import StorageError

__all__ = ["CellWriter", "can_be_written", "new_folder"]

_TO_QUOTE: Final = re.compile(r'[\r\n"]|^\s|\s$')
_NOT_WRITTEN: Final = re.compile("[\0\ud800-\udfff]")


class CellWriter:
    """Writes a CSV or TSV file, in UTF-8; it has its name when it is whole. Use it in a ``with`` statement.

    Args:
        path: of the file.
        header: names of the columns.
        delimiter: between cells.
        missing: text for no value; it is never enclosed in quotes.
    """

    def __init__(self, path: Path, header: Sequence[str], *, delimiter: str = ",", missing: str = "") -> None:
        self._target = AtomicFile(path)
        self._delimiter = delimiter
        self._missing = missing
        with storage_errors(path):
            self._file = self._target.path.open("w", encoding="utf-8", newline="")
        self.write(header)

    def write(self, cells: Iterable[str | None]) -> None:
        """Write a row; None stands for no value."""
        line = self._delimiter.join(self._missing if cell is None else self._quoted(cell) for cell in cells)
        with storage_errors(self._target.final):
            self._file.write(line + "\n")

    def _quoted(self, cell: str) -> str:
        if cell and self._delimiter not in cell and not _TO_QUOTE.search(cell):
            return cell
        return '"' + cell.replace('"', '""') + '"'

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with storage_errors(self._target.final):
                self._file.close()
            if kind is None:
                self._target.publish()
        finally:
            self._target.discard()


def can_be_written(text: str) -> bool:
    """Say whether a text file can hold a text: zero signs and halves of a surrogate pair it cannot."""
    return not _NOT_WRITTEN.search(text)


def new_folder(folder: Path) -> Path:
    """Return the folder; it is made where it is not there.

    Raises:
        StorageError: where it holds something, or cannot be made.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        occupied = next(folder.iterdir(), None)
    if occupied is not None:
        raise StorageError(
            "An export is written into a folder that is new or empty.",
            received=f"`{folder}`, which holds `{occupied.name}`",
            advice="Choose another folder.",
        )
    return folder
