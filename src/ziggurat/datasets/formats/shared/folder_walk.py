"""Walks through image folders in a stable order, one folder at a time, and through pairs of folders in parallel."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.formats.shared.entries import is_file_entry, is_folder_entry
from ziggurat.datasets.samples import SPLITS, Problem, split_of

__all__ = [
    "FoundImage",
    "ImageWalk",
    "Match",
    "Pairing",
    "first_image",
    "folder_named",
    "folders_in",
    "has_image_name",
    "holds_images",
    "matches",
    "pairings",
    "split_folders",
    "walk_order",
]

_NOT_DATA: Final = ("__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information")


_OTHER_PARTNER: Final = "another file of that name is their image's partner"


class FoundImage(NamedTuple):
    """A file that has the name of an image.

    Args:
        path: below the walk's root, with ``/``.
        size_bytes: of the file.
        key: of the sample, where that is not the path.
    """

    path: str
    size_bytes: int
    key: str = ""


class ImageWalk:
    """Walks through folders below one root.

    Args:
        root: a folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._entered: set[str] = set()

    def images(self, below: str = "", *, nested: bool = True) -> Iterator[FoundImage | Problem]:
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

    def image(self, path: str) -> FoundImage | Problem:
        """Return one image, or what is wrong with it."""
        return _image(path, os.path.join(self._root, path), None)

    def _files(self, folder: str, names: list[str]) -> Iterator[FoundImage | Problem]:
        start = f"{folder}/" if folder else ""
        others, last = 0, ""
        descriptor = os.open(os.path.join(self._root, folder), os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in names:
                if has_image_name(name):
                    yield _image(start + name, name, descriptor)
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


def holds_images(folder: Path, *, entries: int = 1000, depth: int = 4) -> bool:
    """Tell whether a folder holds an image, after a look at a limited number of its entries."""
    try:
        with os.scandir(folder) as found:
            inner = []
            for _, entry in zip(range(entries), found, strict=False):
                if has_image_name(entry.name) and not entry.name.startswith("."):
                    return True
                if not entry.name.startswith(".") and is_folder_entry(entry):
                    inner.append(entry.name)
    except OSError:
        return False
    return depth > 0 and any(holds_images(folder / name, depth=depth - 1) for name in sorted(inner)[:10])


def has_image_name(name: str) -> bool:
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


class Pairing(NamedTuple):
    """Two folders whose files belong together.

    Args:
        first: folder of the images, relative to the source, with ``/``; empty for the source itself.
        second: folder of what belongs to them; None where there is none.
        split: that both are; empty if not given.
    """

    first: str
    second: str | None
    split: str = ""


class Match(NamedTuple):
    """An image and what belongs to it.

    Args:
        first: path of the image, relative to the source; empty where only the second was found.
        second: path of its partner; empty where only the image was found.
        size_bytes: of the image's file; None where there is none.
    """

    first: str
    second: str
    size_bytes: int | None


def folder_named(option: str) -> str:
    """Return the folder that an option names, as a ``Pairing`` has it: without ``./``, empty for the source itself."""
    clean = posixpath.normpath(option)
    return "" if clean == "." else clean


def pairings(root: Path, images: Iterable[str], partners: Iterable[str], endings: Iterable[str] = ()) -> list[Pairing]:
    """Return the pairs of folders in a source, by the names that such folders have.

    Three layouts are known: ``images/train`` and ``masks/train``, ``train/images`` and ``train/masks``, and ``train``
    and ``train_masks``; the first two also without splits.

    Args:
        root: the source.
        images: names of folders of images, in lower case.
        partners: names of folders of partners, in lower case.
        endings: what a split's name ends in where the folder holds its partners, such as ``_masks``.
    """
    names = folders_in(root)
    by_ending = _by_ending(names, list(endings))
    if by_ending:
        return by_ending
    side_by_side = _side_by_side(root, "", images, partners)
    if side_by_side:
        return side_by_side
    return [
        pairing._replace(split=split_of(name))
        for name in names
        if split_of(name)
        for pairing in _side_by_side(root, name, images, partners)
    ]


def matches(root: Path, pairing: Pairing, *, ending: str = "", own_ending: str = "") -> Iterator[Match | Problem]:
    """Yield the files of two folders and of the folders in them, in the order of their names.

    Args:
        root: the source.
        pairing: which folders.
        ending: what the partner's stem has behind the image's, such as ``_mask``.
        own_ending: what the image's stem has in that place, such as ``_image``.
    """
    yield from _walk(root, pairing.first, pairing.second, (own_ending, ending), ())


def first_image(root: Path, folder: str) -> str:
    """Return the path of the first image in a folder or below it, relative to ``root``; empty for none."""
    found = (match for match in matches(root, Pairing(folder, None)) if isinstance(match, Match))
    return next(found, Match("", "", None)).first


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


def _image(path: str, place: str, descriptor: int | None) -> FoundImage | Problem:
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
    return FoundImage(path, found.st_size)


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


def _problem(key: str, kind: str, reason: str, *, why: str = "") -> Problem:
    return Problem(key=key, kind=kind, reason=reason, left_out=True, why=why)


def _by_ending(names: list[str], endings: list[str]) -> list[Pairing]:
    lower = {name.lower(): name for name in names}
    found: list[Pairing] = []
    for name in names:
        partner = next((lower[name.lower() + end] for end in endings if name.lower() + end in lower), None)
        if split_of(name) and partner:
            found.append(Pairing(name, partner, split_of(name)))
    return found


def _side_by_side(root: Path, below: str, images: Iterable[str], partners: Iterable[str]) -> list[Pairing]:
    lower = {name.lower(): _joined(below, name) for name in folders_in(root / below)}
    first = next((lower[name] for name in images if name in lower), None)
    second = next((lower[name] for name in partners if name in lower), None)
    if first is None or second is None:
        return []
    partners = {split_of(name): name for name in folders_in(root / second) if split_of(name)}
    inside = [name for name in folders_in(root / first) if split_of(name)]
    if not inside or not partners:
        return [Pairing(first, second)]
    return [
        Pairing(
            _joined(first, name),
            _joined(second, partners[split_of(name)]) if split_of(name) in partners else None,
            split_of(name),
        )
        for name in inside
    ]


@dataclass
class _Listing:
    """What is in one folder: names of images in order, names of folders, and what cannot be used."""

    images: list[tuple[str, int | None]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def _walk(
    root: Path, first: str, second: str | None, endings: tuple[str, str], above: tuple[tuple[int, int], ...]
) -> Iterator[Match | Problem]:
    mine, theirs = _listing(root, first), _Listing() if second is None else _listing(root, second)
    yield from (*mine.problems, *theirs.problems)
    partners: dict[str, str] = {}
    for name, _size in theirs.images:
        stem = os.path.splitext(name)[0]
        if partners.setdefault(stem, name) != name:
            reason = f"`{_joined(second, partners[stem])}` is the partner of that name already."
            yield _problem(_joined(second, name), "no-partner", reason, why=_OTHER_PARTNER)
    used: set[str] = set()
    for name, size_bytes in mine.images:
        stem = os.path.splitext(name)[0].removesuffix(endings[0]) + endings[1]
        partner = partners.get(stem)
        used.add(stem)
        yield Match(_joined(first, name), "" if partner is None else _joined(second, partner), size_bytes)
    alone = (name for stem, name in partners.items() if stem not in used)
    yield from (Match("", _joined(second, name), None) for name in alone)
    here = _identity(root / first)
    if here in above:  # a link that leads back up
        return
    for name in sorted({*mine.folders, *theirs.folders}):
        if _joined(first, name) == second:  # the partners stand in the folder of the images
            continue
        inside = None if second is None else _joined(second, name)
        yield from _walk(root, _joined(first, name), inside, endings, (*above, *([here] if here else [])))


def _listing(root: Path, folder: str) -> _Listing:
    found = _Listing()
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    _sort_in(found, folder, entry)
    except FileNotFoundError:  # the other folder has it
        pass
    except OSError as error:
        found.problems.append(_unreadable(folder, f"The folder cannot be read ({error.strerror})."))
    found.images.sort()
    found.folders.sort()
    return found


def _sort_in(found: _Listing, folder: str, entry: os.DirEntry[str]) -> None:
    path = _joined(folder, entry.name)
    is_image = os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES
    if is_image and not _is_text(entry.name):
        shown = path.encode("utf-8", "backslashreplace").decode()
        found.problems.append(_unreadable(shown, "Its name is not UTF-8, so no list can hold it; give it another."))
    elif is_folder_entry(entry):
        found.folders.append(entry.name)
    elif is_image and is_file_entry(entry):
        found.images.append((entry.name, entry.stat().st_size))
    elif is_image:
        found.problems.append(_unreadable(path, "It is a link that leads to no file."))


def _unreadable(key: str, reason: str) -> Problem:
    return Problem(key=key, kind="unreadable", reason=reason, left_out=True)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _joined(folder: str | None, name: str) -> str:
    return f"{folder}/{name}" if folder else name
