"""Files that may be read for other people: those below folders that a studio offers, wherever links lead.

A person in a shell reads with their own rights, and links are followed as everywhere. A process that works for the
people of a studio says which folders are offered. From then on a link in a source is followed only where the file that
it leads to lies in the source, or below an offered folder; link farms work if the folder of their targets is offered.

An importer opens files in many ways, so while a source is watched an audit hook of Python sees each of its files before
it is opened. For libraries that open files by themselves ``check_source_file`` is called first.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = [
    "LEADS_OUT",
    "Watched",
    "check_file",
    "check_source_file",
    "is_below",
    "offer_folders",
    "only_offered",
    "watch",
    "watched",
    "watched_source",
]

LEADS_OUT: Final = "it leads out of the folders that this studio offers"
"""Why a file is not opened."""

_EVENTS: Final = frozenset(("open", "os.scandir", "os.listdir"))
_MOST_REFUSED: Final = 1000


@dataclass(frozen=True)
class Watched:
    """A source whose files are looked at before they are opened.

    Args:
        source: absolute path, as it was named.
        root: the same without links in it.
        offered: absolute paths of the folders that are offered.
        refused: files and folders that were not opened, the first 1000, without repetitions.
    """

    source: str
    root: str
    offered: tuple[str, ...]
    refused: dict[str, None] = field(default_factory=dict)


@dataclass
class _Process:
    """What holds in every thread that has nothing of its own."""

    offered: tuple[str, ...] | None = None
    watched: Watched | None = None
    has_hook: bool = False


_process: Final = _Process()
_offered_here: ContextVar[tuple[str, ...] | None] = ContextVar("offered", default=None)
_watched_here: ContextVar[Watched | None] = ContextVar("watched", default=None)


def offer_folders(folders: Sequence[str] | None) -> None:
    """Let this process read for others what lies below some folders; None: it reads for who started it."""
    _process.offered = None if folders is None else tuple(os.path.realpath(folder) for folder in folders)


def offered_folders() -> tuple[str, ...] | None:
    """Return the folders below which files may be read for others; None where everything may."""
    here = _offered_here.get()
    return _process.offered if here is None else here


@contextmanager
def only_offered(folders: Sequence[str]) -> Iterator[None]:
    """Read for others in this thread, in a process that does other things besides."""
    token = _offered_here.set(tuple(os.path.realpath(folder) for folder in folders))
    try:
        yield
    finally:
        _offered_here.reset(token)


def is_below(real: str, folders: Sequence[str]) -> bool:
    """Return whether a path without links is a folder or below one, and nothing hidden lies between."""
    for folder in folders:
        if real == folder:
            return True
        if real.startswith(folder.rstrip("/") + "/"):
            return not any(part.startswith(".") for part in real[len(folder) :].split("/"))
    return False


def check_file(path: str | os.PathLike[str], root: str = "") -> None:
    """Find out whether a file may be opened; it need not exist.

    Args:
        path: of the file.
        root: a folder without links in its path, below which everything may be opened; that of the watched source
            where it is not given.

    Raises:
        PermissionError: where it leads out of the offered folders; nothing was opened.
    """
    offered, source = offered_folders(), watched()
    if offered is None:
        return
    root = root or (source.root if source is not None else "")
    real = os.path.realpath(path)
    if (root and (real == root or real.startswith(root.rstrip("/") + "/"))) or is_below(real, offered):
        return
    if source is not None and len(source.refused) < _MOST_REFUSED:
        source.refused[os.path.abspath(path)] = None
    raise PermissionError(errno.EACCES, LEADS_OUT, str(path))


def watched() -> Watched | None:
    """Return the source that is watched; None where there is none."""
    return _watched_here.get() or _process.watched


@contextmanager
def watched_source(source: Path) -> Iterator[Watched | None]:
    """Watch a source while it is read, where files are read for others; yield what is watched, None where nothing is.

    Args:
        source: folder or file that was found to be offered, or was made by this process itself.
    """
    offered = offered_folders()
    if offered is None:
        yield None
        return
    place = os.path.abspath(source)
    found = Watched(place, os.path.realpath(place), offered)
    if _offered_here.get() is None:  # threads of a worker read for others as well
        before, _process.watched = _process.watched, found
        _set_hook()
        try:
            yield found
        finally:
            _process.watched = before
        return
    token = _watched_here.set(found)
    _set_hook()
    try:
        yield found
    finally:
        _watched_here.reset(token)


def watch(source: Watched | None) -> None:
    """Watch what another process watches; None for nothing."""
    _process.watched = source
    if source is not None:
        _process.offered = source.offered
        _set_hook()


def _set_hook() -> None:
    if not _process.has_hook:  # a hook stays as long as the process
        _process.has_hook = True
        sys.addaudithook(_look)


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse to open a file of the watched source that leads out of it."""
    path = arguments[0] if event in _EVENTS and arguments else None
    if isinstance(path, str | bytes | os.PathLike):
        check_source_file(os.fsdecode(path))


def check_source_file(path: str | os.PathLike[str]) -> None:
    """Find out whether a file may be opened if it is one of the watched source; libraries without audit call it.

    Raises:
        PermissionError: where it leads out of the offered folders.
    """
    source = watched()
    if source is None:
        return
    place = os.path.abspath(path)
    if any(place == each or place.startswith(f"{each}/") for each in (source.source, source.root)):
        check_file(place)
