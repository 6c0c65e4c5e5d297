"""Looks at a source for guesses: each folder is listed once, and each file opened once, for all importers."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.shared.entries import is_folder_entry

__all__ = ["FolderLook", "file_ends", "files_with", "has_ending", "look_at", "looking_once"]

_MOST_NAMES: Final = 300  # of one ending in one folder; a guess needs no more
_MOST_FOLDERS: Final = 300
_END_BYTES: Final = 1 << 16  # tools write what tells their files at the start, or behind an embedded image


@dataclass
class FolderLook:
    """What is in a folder, without hidden files.

    Args:
        files: ending, in lower case → names of files, sorted; of many, some.
        folders: names of folders, sorted, links to folders among them.
        is_there: whether it is a folder that can be listed.
    """

    files: dict[str, list[str]] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    is_there: bool = True


@dataclass
class _Looks:
    folders: dict[str, FolderLook] = field(default_factory=dict)
    ends: dict[str, bytes] = field(default_factory=dict)


_KEPT: ContextVar[_Looks | None] = ContextVar("looks", default=None)


@contextmanager
def looking_once() -> Iterator[None]:
    """Keep what is seen of folders and files, so that no importer in the ``with`` block looks again."""
    if _KEPT.get() is not None:
        yield
        return
    token = _KEPT.set(_Looks())
    try:
        yield
    finally:
        _KEPT.reset(token)


def look_at(folder: Path) -> FolderLook:
    """Return what is in a folder; nothing where it cannot be listed."""
    kept = _KEPT.get()
    place = str(folder)
    if kept is None:
        return _listed(place)
    if place not in kept.folders:
        kept.folders[place] = _listed(place)
    return kept.folders[place]


def files_with(source: Path, endings: Sequence[str], *, depth: int = 2) -> Iterator[str]:
    """Yield paths below a source of files with one of some endings, the nearest folders first, with ``/``.

    Args:
        source: a folder.
        endings: in lower case, with their dots.
        depth: how many folders deep.
    """
    level = [""]
    seen = 0
    for _ in range(depth + 1):
        inner: list[str] = []
        for folder in level:
            look = look_at(source / folder if folder else source)
            for ending in endings:
                yield from (posixpath.join(folder, name) for name in look.files.get(ending, ()))
            inner += [posixpath.join(folder, name) for name in look.folders]
            seen += 1
            if seen >= _MOST_FOLDERS:
                return
        level = inner


def has_ending(source: Path, endings: Sequence[str], *, depth: int = 2) -> bool:
    """Tell whether a source is no folder, or has files with one of some endings; see ``files_with``."""
    return not look_at(source).is_there or next(files_with(source, endings, depth=depth), None) is not None


def file_ends(path: Path) -> bytes:
    """Return the first and the last 64 KiB of a file without zero bytes, which UTF-16 has; empty if unreadable."""
    kept = _KEPT.get()
    place = str(path)
    if kept is None:
        return _ends(place)
    if place not in kept.ends:
        kept.ends[place] = _ends(place)
    return kept.ends[place]


def _listed(folder: str) -> FolderLook:
    look = FolderLook()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith((".", "__MACOSX")):
                    continue
                if is_folder_entry(entry):
                    look.folders.append(entry.name)
                    continue
                names = look.files.setdefault(os.path.splitext(entry.name)[1].lower(), [])
                if len(names) < _MOST_NAMES:
                    names.append(entry.name)
    except OSError:
        return FolderLook(is_there=False)
    look.folders.sort()
    for names in look.files.values():
        names.sort()
    return look


def _ends(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            start = file.read(_END_BYTES)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(_END_BYTES, size - _END_BYTES))
            return (start + file.read(_END_BYTES)).replace(b"\0", b"")
    except OSError:
        return b""
