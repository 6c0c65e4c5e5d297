"""Folder layout of YOLO datasets, and the YAML file that names their classes and splits."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from ziggurat.datasets.formats.shared.detection_import import (
    IMAGE_FOLDERS,
    Pair,
    clean_json,
    first_file,
    folders_below,
    is_image,
    read_class_names,
    some_files,
    split_of,
    text_lines,
    walk_pairs,
)
from ziggurat.errors import DataError

__all__ = ["looks_like_yolo", "lost_entries", "overlapping", "read_description", "walk_folder", "yolo_folders"]

_LARGEST_BYTES: Final = 1 << 20  # of a description; a larger file is something else
_MOST_CLASSES: Final = 100_000  # a wrong `nc` must not fill the memory
_NAME_FILES: Final = ("classes.txt", "obj.names", "names.txt", "_darknet.labels", "labels.txt")
_SPLIT_KEYS: Final = ("train", "val", "valid", "validation", "test")


@dataclass(frozen=True, kw_only=True)
class YoloFolder:
    """Images of one split.

    Args:
        image_place: folder below the source, or a text file that lists images.
        labels: folder of their labels below the source; the same where both lie together.
        split: of them all; empty if not given.
        listed: whether ``image_place`` is a text file.
    """

    image_place: str
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
                found.append(YoloFolder(image_place=place, labels=own, split=split, listed=listed))
    if found:
        return [each for each in found if each.listed or has_labels(root, each)] or found
    return _usual_folders(root, labels)


def lost_entries(root: Path, description: YoloDescription) -> Iterator[str]:
    """Yield what the YAML file says of splits and the source does not have."""
    for entries in description.splits.values():
        yield from (entry for entry in entries if _place_in(root, description.base, entry) is None)


def overlapping(folders: Sequence[YoloFolder]) -> bool:
    """Return whether an image may be in two of the folders."""
    names = [f"{each.image_place}/" for each in folders]
    nested = (a.startswith(b) or b in ("/", a) for i, a in enumerate(names) for j, b in enumerate(names) if i != j)
    return any(each.listed for each in folders) or any(nested)


def labels_of(root: Path, image_place: str, labels: str) -> str:
    """Return the folder of labels for a folder of images: the last ``images`` in its path becomes ``labels``."""
    parts = image_place.split("/")
    for place in range(len(parts) - 1, -1, -1):
        if parts[place].lower() in IMAGE_FOLDERS:
            found = "/".join([*parts[:place], labels, *parts[place + 1 :]])
            if (root / found).is_dir():
                return found
    inner = posixpath.join(image_place, labels)
    return inner if (root / inner).is_dir() else image_place


def walk_folder(root: Path, folder: YoloFolder, labels: str) -> Iterator[Pair]:
    """Yield images and label files of a folder or a list, in order."""
    if not folder.listed:
        yield from walk_pairs(root, folder.image_place, folder.labels, ".txt")
        return
    for line in text_lines(root / folder.image_place):
        entry = line.strip()
        if not entry:
            continue
        place = _place_in(root, posixpath.dirname(folder.image_place), entry) or _place_in(root, "", entry)
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
        if posixpath.basename(path).lower() in IMAGE_FOLDERS:
            found += _split_folders(root, path, labels)
    if not found:
        places = [path for path in every if path.count("/") == 0 and _has_images(root / path)]
        found = [YoloFolder(image_place=path, labels=path, split=split_of(path)) for path in places]
    return [each for each in found if has_labels(root, each)]


def _split_folders(root: Path, image_place: str, labels: str) -> list[YoloFolder]:
    """Return the folders of splits inside a folder of images, or itself."""
    inner = [path for path in folders_below(root / image_place, 1) if path and split_of(path)]
    if inner:
        places = [(posixpath.join(image_place, path), split_of(path)) for path in inner]
    else:
        places = [(image_place, split_of(posixpath.basename(posixpath.dirname(image_place))))]
    return [YoloFolder(image_place=path, labels=labels_of(root, path, labels), split=split) for path, split in places]


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


def _has_images(folder: Path) -> bool:
    try:
        with os.scandir(folder) as listing:
            return any(is_image(entry.name) for entry in listing)
    except OSError:
        return False


@dataclass(frozen=True, kw_only=True)
class YoloDescription:
    """What was found.

    Args:
        file: name of the file that says it; empty where there is none.
        names: by class number.
        base: folder that ``splits`` are relative to, as it is written; empty for that of the file.
        splits: split → folders or lists of images, as they are written.
    """

    file: str = ""
    names: tuple[str, ...] = ()
    base: str = ""
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_description(source: Path, labels: str = "labels") -> YoloDescription:
    """Return what the YAML file of a folder says, or its list of names; nothing where it has neither.

    Args:
        source: the folder.
        labels: name of a folder in it, which may hold the list too.
    """
    for path in sorted(_files(source)):
        if path.suffix.lower() in (".yaml", ".yml"):
            found = _described(path)
            if found is not None:
                return found
    for folder in (source, source / labels, source / "train"):
        for name in _NAME_FILES:
            names = read_class_names(folder / name)
            if names:
                return YoloDescription(file=name, names=tuple(names))
    return YoloDescription()


def _described(path: Path) -> YoloDescription | None:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return None
        content = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    names = _names(content.get("names"), content.get("nc"))
    splits: dict[str, tuple[str, ...]] = {}
    for key in _SPLIT_KEYS:
        value = content.get(key)
        entries = value if isinstance(value, list) else [value]
        texts = tuple(each for each in entries if isinstance(each, str) and each)
        if texts:
            splits[split_of(key)] = splits.get(split_of(key), ()) + texts
    if not names or not (splits or "nc" in content or path.stem.lower() == "data"):
        return None
    base = content.get("path")
    return YoloDescription(file=path.name, names=names, base=base if isinstance(base, str) else "", splits=splits)


def _names(value: Any, count: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_name(number, name) for number, name in enumerate(value))
    if isinstance(value, dict) and value and all(type(number) is int and number >= 0 for number in value):
        size = max(value) + 1
        if size > _MOST_CLASSES:
            return ()
        return tuple(_name(number, value.get(number)) for number in range(size))
    if type(count) is int and 0 < count <= _MOST_CLASSES:
        return tuple(_name(number, None) for number in range(count))
    return ()


def _name(number: int, value: Any) -> str:
    """Return the name of a class; lists are no names, and with YAML's references they may be larger than they look."""
    return str(clean_json(value)) if isinstance(value, str | int | float) else f"class {number}"


def _files(source: Path) -> list[Path]:
    found = []
    try:
        with os.scandir(source) as listing:
            for entry in listing:
                if entry.name.lower().endswith((".yaml", ".yml")):
                    found.append(Path(entry.path))
                    if len(found) == 50:
                        break
    except OSError:
        return []
    return found
