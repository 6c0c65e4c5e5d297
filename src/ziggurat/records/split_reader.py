"""Reader of one dataset split: any sample by its row, whatever files hold the records, with changed labels."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from ziggurat.errors import DataError, DatapointError, UnknownNameError
from ziggurat.layout import present_path, workspace_of
from ziggurat.records.base import DataFile, RecordIndexError, RecordReader
from ziggurat.records.codec import FileReference, Part, Record, unpack_record
from ziggurat.records.manifest import Manifest
from ziggurat.records.offered_folders import check_file
from ziggurat.records.stores import open_records, present_store

__all__ = ["SplitReader"]


class SplitReader:
    """Reads the records of a split; memory does not grow with their number.

    It may be used by several threads and be sent to another process, which opens the files by itself.

    Args:
        folder: of the dataset.
        split: ``train``, ``val`` or ``test``.
        manifest: of the dataset, where it was read already.

    Raises:
        UnknownNameError: where the dataset has no such split.
        DataError: where a file is missing or damaged.
    """

    def __init__(self, folder: Path, split: str, manifest: Manifest | None = None) -> None:
        self.folder = Path(folder)
        self.split = split
        self.manifest = manifest or Manifest.load(self.folder)
        if split not in self.manifest.splits:
            raise UnknownNameError("split", split, self.manifest.splits)
        self._open()

    def __len__(self) -> int:
        return self.manifest.splits[self.split].count

    def key(self, row: int) -> str:
        """Return the key of a sample."""
        reader, number = self._place(row)
        return reader.key(number)

    def label(self, row: int) -> Any:
        """Return the label of a sample."""
        return self._labels[row] if row in self._labels else self.record(row).label

    def record(self, row: int) -> Record:
        """Return a sample's parts as they are stored, and its label.

        Raises:
            RecordIndexError: where the split has no such row.
            DatapointError: where the record is damaged.
        """
        reader, number = self._place(row)
        record = unpack_record(reader.get(number))
        return record._replace(label=self._labels[row]) if row in self._labels else record

    def sample(self, row: int) -> tuple[str, tuple[bytes | str | np.ndarray, ...], Any]:
        """Return key, parts and label of a sample; parts that stand in files of the source are read.

        Raises:
            RecordIndexError: where the split has no such row.
            DatapointError: where the record is damaged, or a file is gone or has changed.
        """
        reader, number = self._place(row)
        key, value = reader.item(number)
        parts, label = unpack_record(value)
        if row in self._labels:
            label = self._labels[row]
        return key, tuple(self._content(part, key) for part in parts), label

    def close(self) -> None:
        """Close the files; the next read opens them again."""
        for reader in self._readers:
            reader.close()
        self._readers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "split": self.split, "manifest": self.manifest}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def _open(self) -> None:
        note = self.manifest.splits[self.split]
        self._readers: list[RecordReader] = []
        self._ends = np.cumsum([store.count for store in note.stores], dtype=np.int64)
        self._rows = _chosen_rows(self.folder / note.rows) if note.rows else None
        self._labels: Mapping[int, Any] = ChangedLabels(self.folder / note.labels) if note.labels else {}
        source = self.manifest.source
        self._root = _present_root(source.root, self.folder) if source is not None and source.root else None

    def _place(self, row: int) -> tuple[RecordReader, int]:
        if not 0 <= row < len(self):
            raise RecordIndexError(
                f"There is no row {row} in the split {self.split} of `{self.folder}`, which has {len(self)} samples."
            )
        if not self._readers:
            self._readers = [self._store(store.path) for store in self.manifest.splits[self.split].stores]
        number = int(row if self._rows is None else self._rows[row])
        if len(self._readers) == 1:
            return self._readers[0], number
        at = int(np.searchsorted(self._ends, number, side="right"))
        return self._readers[at], number - int(self._ends[at - 1] if at else 0)

    def _store(self, name: str) -> RecordReader:
        path = self.folder / name
        if not path.exists():
            raise DataError(
                f"`{path}`, which the manifest of the dataset names, does not exist.",
                advice="Bring it back, or make the dataset again.",
            )
        return open_records(present_store(path))

    def _content(self, part: Part, key: str) -> bytes | str | np.ndarray:
        if not isinstance(part, FileReference):
            return part
        path = Path(part.path) if self._root is None else self._root / part.path
        try:
            check_file(path, str(self._root or ""))
            content = path.read_bytes()
        except OSError as error:
            raise DatapointError(key, f"the file `{path}` that the dataset refers to: {error.strerror}.") from error
        if len(content) != part.size_bytes:
            raise DatapointError(
                key, f"the file `{path}` had {part.size_bytes} bytes when the dataset was made, now {len(content)}."
            )
        return content


def _present_root(root: str, folder: Path) -> Path:
    """Return where referenced files are now, also where they moved with the workspace that the dataset is in."""
    workspace = workspace_of(folder)
    return Path(root if workspace is None else present_path(root, workspace))


def _chosen_rows(path: Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"The chosen rows of a split in `{path}` are damaged: {str(error).rstrip('.')}.") from None


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
