"""Tables beside images: metadata files of Hugging Face, and the CSV files of Kaggle with their image columns."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ziggurat.datasets.formats.shared.detection_import import IMAGE_FOLDERS, folders_below, split_within
from ziggurat.datasets.formats.shared.folder_walk import has_image_name, split_folders
from ziggurat.datasets.formats.shared.text_files import encoding_of, read_lines
from ziggurat.datasets.formats.table.files import TextTable
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.records.offered_folders import check_source_file

__all__ = [
    "FILE_COLUMN",
    "MetadataFile",
    "find_metadata",
    "image_tables",
    "label_column",
    "likely_encoding",
    "table_rows",
    "with_labels",
]

FILE_COLUMN: Final = "file_name"
REPEATED_HEADER: Final = "repeated-header"
_MARKS: Final = frozenset(("0", "1", "0.0", "1.0", "True", "False"))
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
BOX_COLUMN: Final = "bbox"
"""Column with the box of an object, as a list; each of the rows of an image has one."""

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
        labels: columns of 0 and 1, one for each label; empty where the rows say their label otherwise.
        has_several: whether a row may have several of these labels.
        encoding: name of the encoding; empty to detect it.
    """

    split: str
    folder: str
    path: Path
    column: str = FILE_COLUMN
    suffix: str = ""
    labels: tuple[str, ...] = ()
    has_several: bool = False
    encoding: str = ""


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


def read_rows(path: Path, encoding: str = "") -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (number from 1, row) of a metadata file; None for a row that cannot be read.

    Args:
        path: of the file.
        encoding: name of the encoding; empty to detect it.

    Raises:
        DataError: where the file cannot be read at all.
        MissingDependencyError: where it is Parquet, and pyarrow is not installed.
    """
    readers = {".csv": _read_csv, ".jsonl": _read_json_lines}
    try:
        if path.suffix == ".parquet":
            yield from _read_parquet(path)
        else:
            yield from readers[path.suffix](path, encoding)
    except OSError as error:
        raise DataError(f"The metadata file `{path}` cannot be read: {error.strerror or error}.") from None


def _read_csv(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    table = TextTable(path, header="yes", encoding=encoding)
    for number, row in enumerate(table.rows(), 1):
        if row.kind == REPEATED_HEADER and row.reason:
            yield number, dict(zip(table.names, table.names, strict=True))
        else:
            yield number, None if row.reason else dict(zip(table.names, row.cells, strict=True))


def _read_json_lines(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    for number, line in read_lines(path, encoding, longest_bytes=_LONGEST_BYTES):
        try:
            row = json.loads(line or "")
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


def likely_encoding(path: Path) -> str:
    """Return the encoding that a guess reads a file with: it asks for none.

    Raises:
        DataError: where the file cannot be read, or is no text.
    """
    try:
        return encoding_of(path)
    except DataError as error:
        if not error.details.get("values"):
            raise
        return str(error.details["values"][0])


def image_tables(source: Path) -> list[MetadataFile]:
    """Return the CSV files that name images of a source: one for each split, or the likeliest.

    Args:
        source: a folder, or one of its CSV files.
    """
    root, paths = (source, sorted(source.glob("*.csv"))) if source.is_dir() else (source.parent, [source])
    paths = [path for path in paths if path.suffix.lower() == ".csv" and not _NO_LABELS.fullmatch(path.stem)]
    folders = folders_below(root, 2)[:_MOST_FOLDERS] if paths else []
    tables = [table for path in paths[:_MOST_TABLES] if (table := _table(root, path, folders)) is not None]
    labelled = [table for table in tables if _has_label(table)] or tables
    by_split = {table.split: table for table in reversed(labelled) if table.split}
    if "train" in by_split:
        return [by_split[split] for split in ("train", "val", "test") if split in by_split]
    return labelled[:1] or _tables_of_splits(source)


def _tables_of_splits(source: Path) -> list[MetadataFile]:
    """Return the table in the folder of each split, which names images below that folder."""
    found = []
    for split, folder in split_folders(source) if source.is_dir() else ():
        for table in image_tables(source / folder)[:1]:
            found.append(table._replace(split=split, folder=f"{folder}/{table.folder}".rstrip("/")))
    return found


def _has_label(table: MetadataFile) -> bool:
    marked = with_labels([table], _HEAD_ROWS)[0]
    return bool(marked.labels) or label_column(_head(table)) is not None


def table_rows(table: MetadataFile) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (number from 1, row) of a table, with the image's path below the table's folder as ``file_name``.

    Raises:
        DataError: where the file cannot be read at all.
    """
    for number, row in read_rows(table.path, table.encoding):
        if row is None:
            yield number, row
            continue
        cell = str(row.get(table.column) or "").strip()
        if cell == table.column:  # the heading of another file that was put behind this one
            yield number, {FILE_COLUMN: FILE_COLUMN}
            continue
        named = {name: value for name, value in row.items() if name != table.column}
        if table.labels:
            marks = [_is_one(row.get(name)) for name in table.labels]
            chosen = [name for name, is_one in zip(table.labels, marks, strict=True) if is_one]
            one = chosen[0] if len(chosen) == 1 else None
            rest = {name: value for name, value in named.items() if name not in table.labels}
            named = {**rest, LABEL_COLUMN: [int(mark) for mark in marks] if table.has_several else one}
        if table.column != FILE_COLUMN:
            named = {FILE_COLUMN: f"{cell}{table.suffix}" if cell else "", **named}
        elif FILE_COLUMN in row:
            named = {FILE_COLUMN: row[FILE_COLUMN], **named}
        yield number, named


def with_labels(tables: Sequence[MetadataFile], rows: int | None = None) -> list[MetadataFile]:
    """Return tables with the columns that say their labels, where all columns but that of the images hold 0 and 1.

    A row with several ones makes them labels of which each image may have any number.

    Args:
        tables: of the splits.
        rows: of each table that are looked at; None for all.

    Raises:
        DataError: where a file cannot be read at all.
    """
    names: list[str] = []
    most = 0
    for table in tables:
        for _, row in itertools.islice(read_rows(table.path, table.encoding), rows):
            if row is None or str(row.get(table.column)).strip() == table.column:
                continue
            names = names or [name for name in row if name not in (table.column, "split")]
            marks = [str(row.get(name)).strip() for name in names]
            if len(names) < 2 or not _MARKS.issuperset(marks) or label_column([dict.fromkeys(names)]) is not None:
                return list(tables)
            most = max(most, sum(map(_is_one, marks)))
    return [table._replace(labels=tuple(names), has_several=most > 1) for table in tables] if most else list(tables)


def label_column(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the column that holds the label, None where no column is the likeliest.

    Args:
        rows: some of a table, as ``table_rows`` yields them.
    """
    names = [name for name in (rows[0] if rows else ()) if name not in (FILE_COLUMN, "split")]
    if BOX_COLUMN in names:
        return BOX_COLUMN
    plain = {re.sub(r"[\W_]", "", name).lower(): name for name in reversed(names)}
    usual = next((plain[name] for name in _LABELS if name in plain), None)
    return usual or (names[0] if len(names) == 1 else None)


def _head(table: MetadataFile) -> list[dict[str, Any]]:
    return [row for _, row in itertools.islice(table_rows(table), _HEAD_ROWS) if row is not None]


def _table(root: Path, path: Path, folders: Sequence[str]) -> MetadataFile | None:
    try:
        encoding = likely_encoding(path)
        rows = [row for _, row in itertools.islice(read_rows(path, encoding), _TRIED_ROWS) if row is not None]
    except DataError:
        return None
    columns = list(rows[0])[:_MOST_COLUMNS] if rows else []
    if len(columns) < 2:
        return None
    named_boxes = _BOX_NAMES.intersection(name.strip().lower() for name in columns)
    has_lists = BOX_COLUMN in columns and all(_is_list(row.get(BOX_COLUMN)) for row in rows)
    if named_boxes - ({BOX_COLUMN} if has_lists else set()):
        return None  # columns for each side, or masks: other formats
    columns.sort(key=lambda name: not _ID.fullmatch(name.strip()))
    for folder in sorted(folders, key=lambda folder: _likelihood(folder, path.stem)):
        suffixes = _suffixes(root / folder)
        for column, suffix in itertools.product(columns, ("", *suffixes)):
            cells = [str(row.get(column) or "").strip() for row in rows]
            if _are_there(root / folder, [f"{cell}{suffix}" for cell in cells if cell]):
                return MetadataFile(split_within(path.stem), folder, path, column, suffix, encoding=encoding)
    return None


def _is_list(cell: Any) -> bool:
    return str(cell or "").strip()[:1] in ("[", "")


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


def _is_one(cell: Any) -> bool:
    return str(cell).strip() in ("1", "1.0", "True")
