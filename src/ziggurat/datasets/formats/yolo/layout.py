"""Folder layout of YOLO datasets: the images of each split, and their labels."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ziggurat.datasets.formats.shared.detection_files import (
    PICTURE_FOLDERS,
    Pair,
    first_file,
    folders_below,
    is_picture,
    some_files,
    split_of,
    text_lines,
    walk_pairs,
)
from ziggurat.datasets.formats.yolo.names import YoloDescription
from ziggurat.errors import DataError

__all__ = [
    "YoloFolder",
    "has_labels",
    "labels_of",
    "looks_like_yolo",
    "lost_entries",
    "overlapping",
    "walk_folder",
    "yolo_folders",
]


@dataclass(frozen=True, kw_only=True)
class YoloFolder:
    """Images of one split.

    Args:
        pictures: folder below the source, or a text file that lists images.
        labels: folder of their labels below the source; the same where both lie together.
        split: of them all; empty if not given.
        listed: whether ``pictures`` is a text file.
    """

    pictures: str
    labels: str
    split: str
    listed: bool = False


def yolo_folders(root: Path, description: YoloDescription, labels: str, images: str = "") -> list[YoloFolder]:
    """Return where the images of a source are: as its YAML file says, or by the usual names of folders.

    Args:
        root: the source.
        description: what its files say.
        labels: name of the folders with labels.
        images: folder of the images, below the source; empty to look for it.
    """
    if images:
        return _split_folders(root, images.strip("/"), labels)
    found = []
    for split, entries in description.splits.items():
        for entry in entries:
            place = _place_in(root, description.base, entry)
            if place is not None:
                listed = (root / place).is_file()
                own = "" if listed else labels_of(root, place, labels)
                found.append(YoloFolder(pictures=place, labels=own, split=split, listed=listed))
    if found:
        return [each for each in found if each.listed or has_labels(root, each)] or found
    return _usual_folders(root, labels)


def lost_entries(root: Path, description: YoloDescription) -> Iterator[str]:
    """Yield what the YAML file says of splits and the source does not have."""
    for entries in description.splits.values():
        yield from (entry for entry in entries if _place_in(root, description.base, entry) is None)


def overlapping(folders: Sequence[YoloFolder]) -> bool:
    """Return whether an image may be in two of the folders."""
    names = [f"{each.pictures}/" for each in folders]
    nested = (a.startswith(b) or b in ("/", a) for i, a in enumerate(names) for j, b in enumerate(names) if i != j)
    return any(each.listed for each in folders) or any(nested)


def labels_of(root: Path, pictures: str, labels: str) -> str:
    """Return the folder of labels for a folder of images: the last ``images`` in its path becomes ``labels``."""
    parts = pictures.split("/")
    for place in range(len(parts) - 1, -1, -1):
        if parts[place].lower() in PICTURE_FOLDERS:
            found = "/".join([*parts[:place], labels, *parts[place + 1 :]])
            if (root / found).is_dir():
                return found
    inner = posixpath.join(pictures, labels)
    return inner if (root / inner).is_dir() else pictures


def walk_folder(root: Path, folder: YoloFolder, labels: str) -> Iterator[Pair]:
    """Yield images and label files of a folder or a list, in order."""
    if not folder.listed:
        yield from walk_pairs(root, folder.pictures, folder.labels, ".txt")
        return
    for line in text_lines(root / folder.pictures):
        entry = line.strip()
        if not entry:
            continue
        place = _place_in(root, posixpath.dirname(folder.pictures), entry) or _place_in(root, "", entry)
        if place is None or not (root / place).is_file():
            yield Pair(entry, entry, None, None)
            continue
        stem = posixpath.splitext(posixpath.basename(place))[0]
        label = posixpath.join(labels_of(root, posixpath.dirname(place), labels), f"{stem}.txt")
        known = (root / label).is_file()
        yield Pair(posixpath.splitext(place)[0], place, (root / place).stat().st_size, label if known else None)


def has_labels(root: Path, folder: YoloFolder) -> bool:
    """Return whether labels of a folder are there."""
    return folder.listed or first_file(root / folder.labels, ".txt") is not None


def looks_like_yolo(root: Path, folder: YoloFolder) -> bool:
    """Say by some label files whether their lines are those of YOLO."""
    if folder.listed:
        return True
    for path in some_files(root / folder.labels, ".txt"):
        try:
            lines = [line.split() for line in text_lines(path) if line.strip()]
        except DataError:
            continue
        if lines and _is_yolo(lines[0]):  # such folders may have other texts too
            return True
    return False


def _is_yolo(words: list[str]) -> bool:
    try:
        values = [float(word) for word in words[1:]]
    except ValueError:
        return False
    return words[0].isdigit() and len(values) >= 4 and all(-0.5 <= value <= 1.5 for value in values)


def _usual_folders(root: Path, labels: str) -> list[YoloFolder]:
    every = folders_below(root, 2)
    found = []
    for path in every:
        if posixpath.basename(path).lower() in PICTURE_FOLDERS:
            found += _split_folders(root, path, labels)
    if not found:
        places = [path for path in every if path.count("/") == 0 and _has_pictures(root / path)]
        found = [YoloFolder(pictures=path, labels=path, split=split_of(path)) for path in places]
    return [each for each in found if has_labels(root, each)]


def _split_folders(root: Path, pictures: str, labels: str) -> list[YoloFolder]:
    """Return the folders of splits inside a folder of images, or itself."""
    inner = [path for path in folders_below(root / pictures, 1) if path and split_of(path)]
    if inner:
        places = [(posixpath.join(pictures, path), split_of(path)) for path in inner]
    else:
        places = [(pictures, split_of(posixpath.basename(posixpath.dirname(pictures))))]
    return [YoloFolder(pictures=path, labels=labels_of(root, path, labels), split=split) for path, split in places]


def _place_in(root: Path, base: str, entry: str) -> str | None:
    """Return a path of a YAML file or a list as one below the source, None where it is not there.

    Such files come from other machines: what they say is tried below their base and below the source. Steps upwards are
    passed over, and of an absolute path any ending may be meant.
    """
    entry = entry.replace("\\", "/")
    parts = [part for part in entry.split("/") if part not in ("", ".", "..")]
    inside = [posixpath.join(base, entry), entry] if not base.startswith("/") and not entry.startswith("/") else []
    absolute = [_relative_to(root, entry), _relative_to(root, posixpath.join(base, entry))]
    shorter = len(parts) if base.startswith("/") or entry.startswith("/") or entry[1:3] == ":/" else 1
    for path in [*inside, *absolute, *("/".join(parts[start:]) for start in range(shorter))]:
        normal = posixpath.normpath(path) if path else ""
        if normal and not normal.startswith(("..", "/")) and "\0" not in normal and os.path.exists(root / normal):
            return "" if normal == "." else normal
    return None


def _relative_to(root: Path, path: str) -> str:
    top = root.absolute().as_posix() + "/"
    return path[len(top) :] if path.startswith(top) else ""


def _has_pictures(folder: Path) -> bool:
    try:
        with os.scandir(folder) as listing:
            return any(is_picture(entry.name) for entry in listing)
    except OSError:
        return False
