"""File helpers of the detection importers: split names, folder walks, image and label pairs, text files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ziggurat.datasets.formats.shared.text_encoding import decode_text
from ziggurat.datasets.split_names import SPLIT_NAMES
from ziggurat.errors import DataError

__all__ = [
    "ANNOTATION_FOLDERS",
    "KEYS_NAME",
    "PICTURE_FOLDERS",
    "PICTURE_SUFFIXES",
    "Pair",
    "first_file",
    "folders_below",
    "is_picture",
    "read_class_names",
    "read_keys",
    "some_files",
    "split_of",
    "split_within",
    "text_lines",
    "walk_pairs",
]

PICTURE_SUFFIXES: Final = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"))
ANNOTATION_FOLDERS: Final = ("annotations", "annotation", "annots", "annot", "xmls", "xml", "labels", "label")
"""Names, in lower case, of folders with a label file for each image; the usual ones first."""

PICTURE_FOLDERS: Final = (
    "jpegimages", "images", "image", "imgs", "img", "pngimages", "pictures", "photos", "frames",
)  # fmt: skip
"""Names, in lower case, of folders of images that lie beside those of labels."""

KEYS_NAME: Final = "keys.jsonl"
"""File of our own exports: ``["path", "key"]`` for each image that a format cannot put at its key."""
_FEW_FOLDERS: Final = 20
_LARGEST_TEXT_BYTES: Final = 64 << 20


def split_of(name: str) -> str:
    """Return the split that a file or folder name means as a whole, such as ``valid`` or ``train2017``; else empty."""
    return SPLIT_NAMES.get(re.sub(r"[-_ ]?\d+$", "", name.strip().lower()), "")


def split_within(name: str) -> str:
    """Return the split that some word of a name means, such as ``instances_val2017``; else empty."""
    return next((split for word in re.split(r"[^a-zA-Z]+", name) if (split := split_of(word))), "")


def is_picture(name: str) -> bool:
    """Return whether a file name ends as those of images do."""
    return os.path.splitext(name)[1].lower() in PICTURE_SUFFIXES and not name.startswith(".")


class Pair(NamedTuple):
    """An image and its label file, by the same name in two folders; one of them may be missing.

    Args:
        stem: path without the ending, below both folders.
        picture: path below the source.
        size_bytes: of the image; None where it is a link that leads nowhere.
        label: path below the source.
    """

    stem: str
    picture: str | None
    size_bytes: int | None
    label: str | None


def walk_pairs(root: Path, pictures: str, labels: str, suffix: str, inner: str = "") -> Iterator[Pair]:
    """Yield images and label files by name, sorted, folder by folder; memory holds the names of one folder at a time.

    Args:
        root: that paths are relative to.
        pictures: folder of images below it.
        labels: folder of label files below it; it may be the same.
        suffix: ending of label files, such as ``.xml``.
        inner: folder below both to begin with.
    """
    yield from _walk_pairs(root, (pictures, labels), suffix, inner, set())


def folders_below(root: Path, depth: int, *, at_most: int = 300) -> list[str]:
    """Return the folders down to some depth, nearest first, sorted, as paths below ``root``; ``""`` is itself."""
    found, level = [""], [""]
    for _ in range(depth):
        level = [inner for folder in level for inner in _folders_in(root, folder)]
        found += level
        if len(found) > at_most:
            break
    return found[:at_most]


def some_files(folder: Path, suffix: str, *, at_most: int = 50, depth: int = 3) -> Iterator[Path]:
    """Yield some files with an ending, in a folder or else below it, in no order; no folder is listed whole."""
    inner: list[Path] = []
    count = 0
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                if entry.name.lower().endswith(suffix) and not entry.name.startswith("."):
                    yield Path(entry.path)
                    count += 1
                    if count == at_most:
                        return
                elif depth and len(inner) < _FEW_FOLDERS and entry.is_dir():
                    inner.append(Path(entry.path))
    except OSError:
        return
    for each in sorted(inner) if not count else ():
        yield from some_files(each, suffix, at_most=at_most, depth=depth - 1)


def first_file(folder: Path, suffix: str, *, depth: int = 3) -> Path | None:
    """Return some file with an ending, in a folder or below it; None where there is none."""
    return next(some_files(folder, suffix, at_most=1, depth=depth), None)


def text_lines(path: Path) -> list[str]:
    """Return the lines of a label file in UTF-8, UTF-16 with its mark, or else Latin-1.

    Raises:
        DataError: where it cannot be read, or is too large to be one.
    """
    try:
        if path.stat().st_size > _LARGEST_TEXT_BYTES:
            raise DataError(
                "A label file is a small text.", received=f"`{path.name}`, over {_LARGEST_TEXT_BYTES} bytes"
            )
        data = path.read_bytes()
    except OSError as error:
        raise DataError("A label file can be read.", received=f"`{path.name}`: {error.strerror}") from None
    return re.split(r"\r\n|\r|\n", decode_text(data)[0])


def read_class_names(path: Path) -> list[str]:
    """Return the lines of a file of class names, without blanks around them; empty where it cannot be read."""
    try:
        return [line.strip() for line in text_lines(path) if line.strip()]
    except DataError:
        return []


def read_keys(folder: Path) -> dict[str, str]:
    """Return path → key as an export of ours wrote them; empty where it wrote none. It is held in memory."""
    try:
        with (folder / KEYS_NAME).open(encoding="utf-8", newline="\n") as file:
            pairs = [json.loads(line) for line in file]
        return {str(path): str(key) for path, key in pairs}
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


# ---- helpers


def _walk_pairs(root: Path, bases: tuple[str, str], suffix: str, inner: str, entered: set[str]) -> Iterator[Pair]:
    place = os.path.realpath(_joined(str(root), bases[0], inner))
    if place in entered:
        return
    entered.add(place)
    pictures: dict[str, list[os.DirEntry[str]]] = {}
    labels: dict[str, str] = {}
    folders: set[str] = set()
    for number, base in enumerate(dict.fromkeys(bases)):
        for entry in _listed(root, _joined(base, inner)):
            stem, ending = os.path.splitext(entry.name)
            if entry.is_dir():
                folders |= set() if entry.name.startswith((".", "__MACOSX")) else {entry.name}
            elif number == 0 and is_picture(entry.name):
                pictures.setdefault(stem, []).append(entry)
            if base == bases[1] and ending.lower() == suffix and not entry.is_dir():
                labels[stem] = _joined(base, inner, entry.name)
    for stem in sorted({*pictures, *labels}):
        label = labels.get(stem)
        for entry in pictures.get(stem, ()):
            yield Pair(_joined(inner, stem), _joined(bases[0], inner, entry.name), _size_bytes(entry), label)
        if stem not in pictures:
            yield Pair(_joined(inner, stem), None, None, label)
    for name in sorted(folders):
        yield from _walk_pairs(root, bases, suffix, _joined(inner, name), entered)


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _listed(root: Path, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / folder) as listing:
            return sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return []


def _size_bytes(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat().st_size
    except OSError:
        return None


def _folders_in(root: Path, folder: str) -> list[str]:
    try:
        with os.scandir(root / folder) as listing:
            names = sorted(entry.name for entry in listing if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return []
    return [f"{folder}/{name}" if folder else name for name in names]
