"""Metadata files beside images: CSV, JSON lines or Parquet, read a few rows at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ziggurat.datasets.formats.shared.folder_walk import split_folders
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.records.offered_folders import check_source_file

__all__ = ["FILE_COLUMN", "MetadataFile", "find_metadata", "read_rows"]

FILE_COLUMN: Final = "file_name"
_NAMES: Final = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_LONGEST_BYTES: Final = 64 * 1024**2
_ROWS_AT_ONCE: Final = 1000


class MetadataFile(NamedTuple):
    """A metadata file.

    Args:
        split: of the folder that it lies in, or that its name says; empty where that is none of a split.
        folder: that its paths are relative to, below the source; empty for the source itself.
        path: of the file.
        column: with the images' names.
        suffix: that its names lack.
    """

    split: str
    folder: str
    path: Path
    column: str = FILE_COLUMN
    suffix: str = ""


def find_metadata(source: Path) -> list[MetadataFile]:
    """Return the metadata files of a source: its own, else those in the folders of its splits, ``train`` first."""
    if not source.is_dir():
        return []
    own = [MetadataFile("", "", source / name) for name in _NAMES if (source / name).is_file()]
    if own:
        return own[:1]
    found = []
    for split, folder in split_folders(source):
        files = [source / folder / name for name in _NAMES if (source / folder / name).is_file()]
        found += [MetadataFile(split, folder, path) for path in files[:1]]
    return found


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (number from 1, row) of a metadata file; None for a row that cannot be read.

    Raises:
        DataError: where the file cannot be read at all.
        MissingDependencyError: where it is Parquet, and pyarrow is not installed.
    """
    readers = {".csv": _read_csv, ".jsonl": _read_json_lines, ".parquet": _read_parquet}
    try:
        yield from readers[path.suffix](path)
    except OSError as error:
        raise DataError("A metadata file can be read.", received=f"`{path}`: {error.strerror or error}") from None


def _read_csv(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = csv.DictReader(file)
        number = 0
        while True:
            number += 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error:
                yield number, None
                continue
            yield number, row if _is_sound(row) else None


def _is_sound(row: dict[Any, Any]) -> bool:
    """Tell whether a row has no more cells than the heading, and is UTF-8."""
    if None in row:
        return False
    try:
        "".join(text for text in row.values() if text).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(_LONGEST_BYTES):
            number += 1
            if not raw.strip():
                continue
            try:
                row = json.loads(raw.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                row = None
            yield number, row if isinstance(row, dict) else None


def _read_parquet(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingDependencyError("pyarrow", extra="tables", purpose="metadata in Parquet") from None
    number = 0
    try:
        check_source_file(path)
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except pyarrow.ArrowException as error:
        raise DataError("A metadata file is whole.", received=f"`{path}`: {error}") from None
