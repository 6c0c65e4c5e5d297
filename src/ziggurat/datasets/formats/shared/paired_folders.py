"""Matching of paired files: two folders with the same file names, walked in parallel.

Memory holds the names of one folder at a time, so that a million pairs need no more memory.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.samples import Problem
from ziggurat.datasets.split_names import SPLIT_NAMES

__all__ = [
    "Match",
    "Pairing",
    "first_picture",
    "folder_named",
    "folders_of",
    "matches",
    "pairings",
    "split_of",
]


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


def split_of(name: str) -> str:
    """Return the split that a folder or file with this name is; empty where it says none."""
    return SPLIT_NAMES.get(name.lower(), "")


def folders_of(root: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted, without hidden ones; none where it cannot be read."""
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return []


def pairings(
    root: Path, pictures: Iterable[str], partners: Iterable[str], endings: Iterable[str] = ()
) -> list[Pairing]:
    """Return the pairs of folders in a source, by the names that such folders have.

    Three layouts are known: ``images/train`` and ``masks/train``, ``train/images`` and ``train/masks``, and ``train``
    and ``train_masks``; the first two also without splits.

    Args:
        root: the source.
        pictures: names of folders of images, in lower case.
        partners: names of folders of partners, in lower case.
        endings: what a split's name ends in where the folder holds its partners, such as ``_masks``.
    """
    names = folders_of(root)
    by_ending = _by_ending(names, list(endings))
    if by_ending:
        return by_ending
    side_by_side = _side_by_side(root, "", pictures, partners)
    if side_by_side:
        return side_by_side
    return [
        pairing._replace(split=split_of(name))
        for name in names
        if split_of(name)
        for pairing in _side_by_side(root, name, pictures, partners)
    ]


def matches(root: Path, pairing: Pairing, *, ending: str = "") -> Iterator[Match | Problem]:
    """Yield the files of two folders and of the folders in them, in the order of their names.

    Args:
        root: the source.
        pairing: which folders.
        ending: what the partner's stem has behind the image's, such as ``_mask``.
    """
    yield from _walk(root, pairing.first, pairing.second, ending, ())


def first_picture(root: Path, folder: str) -> str:
    """Return the path of the first image in a folder or below it, relative to ``root``; empty for none."""
    found = (match for match in matches(root, Pairing(folder, None)) if isinstance(match, Match))
    return next(found, Match("", "", None)).first


# ---- layouts


def _by_ending(names: list[str], endings: list[str]) -> list[Pairing]:
    lower = {name.lower(): name for name in names}
    found: list[Pairing] = []
    for name in names:
        partner = next((lower[name.lower() + end] for end in endings if name.lower() + end in lower), None)
        if split_of(name) and partner:
            found.append(Pairing(name, partner, split_of(name)))
    return found


def _side_by_side(root: Path, below: str, pictures: Iterable[str], partners: Iterable[str]) -> list[Pairing]:
    lower = {name.lower(): _joined(below, name) for name in folders_of(root / below)}
    first = next((lower[name] for name in pictures if name in lower), None)
    second = next((lower[name] for name in partners if name in lower), None)
    if first is None or second is None:
        return []
    partners = {split_of(name): name for name in folders_of(root / second) if split_of(name)}
    inside = [name for name in folders_of(root / first) if split_of(name)]
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


# ---- walking


@dataclass
class _Listing:
    """What is in one folder: names of images in order, names of folders, and what cannot be used."""

    pictures: list[tuple[str, int | None]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def _walk(
    root: Path, first: str, second: str | None, ending: str, above: tuple[tuple[int, int], ...]
) -> Iterator[Match | Problem]:
    mine, theirs = _listing(root, first), _Listing() if second is None else _listing(root, second)
    yield from (*mine.problems, *theirs.problems)
    partners: dict[str, str] = {}
    for name, _size in theirs.pictures:
        partners.setdefault(os.path.splitext(name)[0], name)
    used: set[str] = set()
    for name, size_bytes in mine.pictures:
        stem = os.path.splitext(name)[0] + ending
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
        yield from _walk(root, _joined(first, name), inside, ending, (*above, *([here] if here else [])))


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
    found.pictures.sort()
    found.folders.sort()
    return found


def _sort_in(found: _Listing, folder: str, entry: os.DirEntry[str]) -> None:
    path = _joined(folder, entry.name)
    is_picture = os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES
    if is_picture and not _is_text(entry.name):
        shown = path.encode("utf-8", "backslashreplace").decode()
        found.problems.append(_unreadable(shown, "Its name is not UTF-8, so no list can hold it; give it another."))
    elif entry.is_dir():
        found.folders.append(entry.name)
    elif is_picture and entry.is_file():
        found.pictures.append((entry.name, entry.stat().st_size))
    elif is_picture:
        found.problems.append(_unreadable(path, "It is a link to a file that is not there."))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


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
