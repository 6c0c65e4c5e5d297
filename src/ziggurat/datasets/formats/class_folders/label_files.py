"""Signs of labels in a source: files that say something of its images, whatever format they are of."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.shared.folder_walk import has_picture_name
from ziggurat.datasets.formats.table.evidence import table_signs
from ziggurat.errors import DataError

__all__ = ["data_files", "label_files"]

_MOST_FOLDERS: Final = 60
_MOST_ENTRIES: Final = 300
_DEEPEST: Final = 3
_MOST_OPENED: Final = 8
_HEAD_BYTES: Final = 1 << 16
_ALWAYS: Final = frozenset((".cls", ".mat", ".record", ".tfrecord"))
_MARKS: Final = {
    ".xml": (b"<annotation", b"<object"),
    ".json": (b'"annotations"', b'"bbox"', b'"categories"', b'"regions"', b'"shapes"'),
}
_TABLES: Final = frozenset((".csv", ".tsv"))


def label_files(source: Path, *, of_classes: bool = False) -> Iterator[str]:
    """Yield the paths of some files that hold labels of images, below a folder.

    Args:
        source: the folder; a limited number of its entries is looked at, and a few files are opened.
        of_classes: whether the images lie in folders of classes: then tables and texts say what the folders say.
    """
    opened = 0
    for folder, names in _folders(source, ()):
        pictures = {os.path.splitext(name)[0] for name in names if has_picture_name(name)}
        for name in names:
            stem, ending = os.path.splitext(name)
            ending, path = ending.lower(), source / folder / name
            if ending in _MARKS or (ending in _TABLES and not of_classes):
                if opened == _MOST_OPENED:
                    continue
                opened += 1
                is_label = _names_pictures(path) if ending in _TABLES else _has_mark(path, _MARKS[ending])
            else:
                is_label = not of_classes and (ending in _ALWAYS or (ending == ".txt" and stem in pictures))
            if is_label:
                yield os.path.join(folder, name)


def data_files(source: Path, *, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the paths of some images and label files below a folder.

    Args:
        source: the folder.
        without: names of folders in it that are not entered.
    """
    for folder, names in _folders(source, without):
        if pictures := [name for name in names if has_picture_name(name)]:
            yield os.path.join(folder, pictures[0])
        for name in names:
            ending = os.path.splitext(name)[1].lower()
            if ending in _ALWAYS or (ending in _MARKS and _has_mark(source / folder / name, _MARKS[ending])):
                yield os.path.join(folder, name)


def _folders(source: Path, without: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (path, names of files) of some folders, the nearest first."""
    waiting = [""]
    for count, folder in enumerate(waiting):
        files, folders = _listed(source / folder)
        yield folder, files
        if folder.count("/") < _DEEPEST - 1 and count < _MOST_FOLDERS:
            inner = [f"{folder}/{name}" if folder else name for name in folders]
            waiting += [path for path in inner if path not in without][: _MOST_FOLDERS - len(waiting)]


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    files, folders = [], []
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                if not entry.name.startswith("."):
                    (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
    except OSError:
        return [], []
    return sorted(files), sorted(folders)


def _has_mark(path: Path, marks: tuple[bytes, ...]) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(_HEAD_BYTES).replace(b"\0", b"")  # UTF-16
    except OSError:
        return False
    return any(mark in start for mark in marks)


def _names_pictures(path: Path) -> bool:
    try:
        return table_signs(path).has_pictures
    except DataError:
        return False
