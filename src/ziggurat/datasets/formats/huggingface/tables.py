"""Tables beside images: metadata files of Hugging Face, and the CSV files of Kaggle with their image columns."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ziggurat.datasets.formats.shared.detection_import import IMAGE_FOLDERS, folders_below, split_within
from ziggurat.datasets.formats.shared.folder_walk import has_image_name, split_folders
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.records.offered_folders import check_source_file

__all__ = ["FILE_COLUMN", "MetadataFile", "find_metadata", "image_tables", "label_column", "table_rows"]

FILE_COLUMN: Final = "file_name"
_NAMES: Final = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_LONGEST_BYTES: Final = 64 * 1024**2
_ROWS_AT_ONCE: Final = 1000  # so that a Parquet file of any size fits into memory

LABEL_COLUMN: Final = "label"
"""Column that rows get where several columns of 0 and 1 say their class."""

_LABELS: Final = (
    "label", "labels", "class", "classname", "classid", "category", "categoryid", "target", "breed", "species",
    "diagnosis", "level", "grade",
)  # fmt: skip
_ID: Final = re.compile(r".*(id|name|path|file)", re.IGNORECASE)
_BOX_NAMES: Final = frozenset(("bbox", "boxes", "xmin", "xmax", "x_min", "x_max", "encodedpixels"))
_NO_LABELS: Final = re.compile(r".*submission.*", re.IGNORECASE)
_HEAD_ROWS: Final = 50
_TRIED_ROWS: Final = 10  # whose images are looked for
_MOST_TABLES: Final = 8
_MOST_FOLDERS: Final = 30
_MOST_COLUMNS: Final = 40
_FOUND_SHARE: Final = 0.8  # some lists name images that were removed


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


def image_tables(source: Path) -> list[MetadataFile]:
    """Return the CSV files that name images of a source: one for each split, or the likeliest.

    Args:
        source: a folder, or one of its CSV files.
    """
    root, paths = (source, sorted(source.glob("*.csv"))) if source.is_dir() else (source.parent, [source])
    paths = [path for path in paths if path.suffix.lower() == ".csv" and not _NO_LABELS.fullmatch(path.stem)]
    folders = folders_below(root, 2)[:_MOST_FOLDERS] if paths else []
    tables = [table for path in paths[:_MOST_TABLES] if (table := _table(root, path, folders)) is not None]
    labelled = [table for table in tables if label_column(_head(table)) is not None] or tables
    by_split = {table.split: table for table in reversed(labelled) if table.split}
    if "train" in by_split:
        return [by_split[split] for split in ("train", "val", "test") if split in by_split]
    return labelled[:1]


def table_rows(table: MetadataFile) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (number from 1, row) of a table, with the image's path below the table's folder as ``file_name``.

    Raises:
        DataError: where the file cannot be read at all.
    """
    choices: Sequence[str] | None = None
    for number, row in read_rows(table.path):
        if row is None or table.column == FILE_COLUMN:
            yield number, row
            continue
        if choices is None:
            choices = _one_hot(row, table.column)
        named = {name: value for name, value in row.items() if name != table.column}
        if choices:
            marked = [name for name in choices if _is_one(row.get(name))]
            named = {LABEL_COLUMN: marked[0] if len(marked) == 1 else None}
        cell = str(row.get(table.column) or "").strip()
        yield number, {FILE_COLUMN: f"{cell}{table.suffix}" if cell else "", **named}


def label_column(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the column that holds the label, None where no column is the likeliest.

    Args:
        rows: some of a table, as ``table_rows`` yields them.
    """
    names = [name for name in (rows[0] if rows else ()) if name not in (FILE_COLUMN, "split")]
    plain = {re.sub(r"[\W_]", "", name).lower(): name for name in reversed(names)}
    usual = next((plain[name] for name in _LABELS if name in plain), None)
    return usual or (names[0] if len(names) == 1 else None)


def _head(table: MetadataFile) -> list[dict[str, Any]]:
    return [row for _, row in itertools.islice(table_rows(table), _HEAD_ROWS) if row is not None]


def _table(root: Path, path: Path, folders: Sequence[str]) -> MetadataFile | None:
    try:
        rows = [row for _, row in itertools.islice(read_rows(path), _TRIED_ROWS) if row is not None]
    except DataError:
        return None
    columns = list(rows[0])[:_MOST_COLUMNS] if rows else []
    if len(columns) < 2 or _BOX_NAMES.intersection(name.strip().lower() for name in columns):
        return None  # boxes and masks in tables have several rows for an image
    columns.sort(key=lambda name: not _ID.fullmatch(name.strip()))
    for folder in sorted(folders, key=lambda folder: _likelihood(folder, path.stem)):
        suffixes = _suffixes(root / folder)
        for column, suffix in itertools.product(columns, ("", *suffixes)):
            cells = [str(row.get(column) or "").strip() for row in rows]
            if _are_there(root / folder, [f"{cell}{suffix}" for cell in cells if cell]):
                return MetadataFile(split_within(path.stem), folder, path, column, suffix)
    return None


def _likelihood(folder: str, stem: str) -> tuple[int, int, str]:
    """Return what folders are sorted by: that of the table's own name first, then those of images by their names."""
    name = folder.rpartition("/")[2].lower()
    own = name == stem.lower() or (bool(split_within(name)) and split_within(name) == split_within(stem))
    return (0 if own else 1 if name in IMAGE_FOLDERS else 2, folder.count("/"), folder)


def _suffixes(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, 200)]
    except OSError:
        return []
    return sorted({os.path.splitext(name)[1] for name in names if has_image_name(name)})


def _are_there(folder: Path, names: Sequence[str]) -> bool:
    """Tell whether most of some names are images below a folder; no other place is looked at."""
    names = [name for name in names if not name.startswith("/") and ".." not in name.split("/")]
    if not names or not has_image_name(names[0]) or not _is_file(folder / names[0]):
        return False
    return sum(_is_file(folder / name) for name in names) >= _FOUND_SHARE * len(names)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or holds a zero
        return False


def _one_hot(row: Mapping[str, Any], column: str) -> list[str]:
    """Return the columns of 0 and 1 of which one is 1; none where there are other columns, too."""
    names = [name for name in row if name not in (column, "split")]
    marks = [str(row[name]).strip() for name in names]
    is_one_hot = len(names) > 1 and set(marks) <= {"0", "1", "0.0", "1.0"} and sum(map(_is_one, marks)) == 1
    return names if is_one_hot else []


def _is_one(cell: Any) -> bool:
    return str(cell).strip() in ("1", "1.0")
