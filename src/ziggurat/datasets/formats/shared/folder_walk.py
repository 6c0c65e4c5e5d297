"""Walk through image folders in a stable order, one folder at a time, without opening files.

Files come before folders, both sorted by name. Names that start with a dot are excluded. A linked folder is entered
once, and never if it contains the link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.samples import SPLITS, Problem, split_of

__all__ = [
    "FoundPicture",
    "PictureWalk",
    "folders_in",
    "has_picture_name",
    "holds_pictures",
    "split_folders",
    "walk_order",
]

_NOT_DATA: Final = ("__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information")


class FoundPicture(NamedTuple):
    """A file that has the name of an image.

    Args:
        path: below the walk's root, with ``/``.
        size_bytes: of the file.
        key: of the sample, where that is not the path.
    """

    path: str
    size_bytes: int
    key: str = ""


class PictureWalk:
    """Walks through folders below one root.

    Args:
        root: a folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._entered: set[str] = set()

    def pictures(self, below: str = "", *, nested: bool = True) -> Iterator[FoundPicture | Problem]:
        """Yield the images in a folder, and what is wrong with files and folders in it.

        Args:
            below: the folder, relative to the root.
            nested: whether folders in it are entered.
        """
        if below and os.path.islink(os.path.join(self._root, below)) and not self._enter_link(below):
            yield _loop(below)
            return
        waiting = [below]
        while waiting:
            folder = waiting.pop()
            try:
                files, folders, links = _listed(os.path.join(self._root, folder))
            except OSError as error:
                yield _problem(folder or ".", "unreadable", f"The folder cannot be read ({error.strerror}).")
                continue
            for link in links:
                into = folders if os.path.isdir(os.path.join(self._root, folder, link)) else files
                into.append(link)
            yield from self._files(folder, sorted(files))
            if nested:
                entered = yield from self._enterable(folder, sorted(folders), frozenset(links))
                waiting += reversed(entered)

    def picture(self, path: str) -> FoundPicture | Problem:
        """Return one image, or what is wrong with it."""
        return _picture(path, os.path.join(self._root, path), None)

    def _files(self, folder: str, names: list[str]) -> Iterator[FoundPicture | Problem]:
        start = f"{folder}/" if folder else ""
        others, last = 0, ""
        descriptor = os.open(os.path.join(self._root, folder), os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in names:
                if has_picture_name(name):
                    yield _picture(start + name, name, descriptor)
                else:
                    others, last = others + 1, name
        finally:
            os.close(descriptor)
        if others:
            reason = f"{others} of its files have no name of an image, such as `{_shown(last)}`."
            yield Problem(key=_shown(folder) or ".", kind="other-files", reason=reason)

    def _enterable(self, folder: str, names: list[str], links: frozenset[str]) -> Generator[Problem, None, list[str]]:
        """Yield what is wrong with folders, and return the paths of the others."""
        entered = []
        for name in names:
            path = f"{folder}/{name}" if folder else name
            if name in links and not self._enter_link(path):
                yield _loop(path)
            elif not _is_text(name):
                yield _problem(_shown(path), "bad-name", "The folder's name is not UTF-8.")
            else:
                entered.append(path)
        return entered

    def _enter_link(self, path: str) -> bool:
        """Tell whether a link may be entered, and remember that it was."""
        target = os.path.realpath(os.path.join(self._root, path))
        folders = path.split("/")[:-1]
        above = [os.path.realpath(os.path.join(self._root, *folders[:count])) for count in range(len(folders) + 1)]
        if target in self._entered or any(f"{one}/".startswith(f"{target}/") for one in above):
            return False
        self._entered.add(target)
        return True


def folders_in(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted, links to folders among them."""
    try:
        _files, folders, links = _listed(str(folder))
    except OSError:
        return []
    return sorted(folders + [link for link in links if folder.joinpath(link).is_dir()])


def holds_pictures(folder: Path, *, entries: int = 1000, depth: int = 4) -> bool:
    """Tell whether a folder holds an image, after a look at a limited number of its entries."""
    try:
        with os.scandir(folder) as found:
            inner = []
            for _, entry in zip(range(entries), found, strict=False):
                if has_picture_name(entry.name) and not entry.name.startswith("."):
                    return True
                if not entry.name.startswith(".") and entry.is_dir():
                    inner.append(entry.name)
    except OSError:
        return False
    return depth > 0 and any(holds_pictures(folder / name, depth=depth - 1) for name in sorted(inner)[:10])


def has_picture_name(name: str) -> bool:
    """Tell whether a file's name ends like that of an image."""
    dot = name.rfind(".")
    return dot > 0 and name[dot:].lower() in IMAGE_SUFFIXES


def walk_order(path: str) -> list[tuple[bool, str]]:
    """Return what paths are sorted by so that they come as in a walk.

    >>> sorted(["a/z.jpg", "b.jpg", "a.jpg"], key=walk_order)
    ['a.jpg', 'b.jpg', 'a/z.jpg']
    """
    *folders, name = path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]


def split_folders(folder: Path) -> list[tuple[str, str]]:
    """Return (split, folder's name) of the folders that are named as splits, ``train`` first."""
    found = [(split_of(name), name) for name in folders_in(folder)]
    return sorted(((split, name) for split, name in found if split), key=lambda pair: (SPLITS.index(pair[0]), pair[1]))


def _listed(folder: str) -> tuple[list[str], list[str], list[str]]:
    """Return the names of files, of folders, and of links."""
    files, folders, links = [], [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _NOT_DATA:
                continue
            if entry.is_symlink():
                links.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                files.append(entry.name)
    return files, folders, links


def _picture(path: str, place: str, descriptor: int | None) -> FoundPicture | Problem:
    """Look at a file; relative to an open folder, which is twice as fast as by its whole path."""
    if not _is_text(path):
        return _problem(_shown(path), "bad-name", "Its name is not UTF-8.")
    try:
        found = os.stat(place, dir_fd=descriptor)
    except OSError as error:
        return _problem(path, "no-picture", f"The file cannot be read ({error.strerror}).")
    if not stat.S_ISREG(found.st_mode):
        return _problem(path, "no-picture", "It is no file.")
    if not found.st_size:
        return _problem(path, "unreadable", "It is empty (0 bytes).")
    return FoundPicture(path, found.st_size)


def _is_text(name: str) -> bool:
    """Tell whether a name is UTF-8; Python smuggles other bytes through as halves of pairs."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    return name if _is_text(name) else os.fsencode(name).decode("utf-8", "backslashreplace")


def _loop(path: str) -> Problem:
    return _problem(_shown(path), "link-loop", "The folder that it links to is above it, or came by another link.")


def _problem(key: str, kind: str, reason: str) -> Problem:
    return Problem(key=key, kind=kind, reason=reason, left_out=True)
