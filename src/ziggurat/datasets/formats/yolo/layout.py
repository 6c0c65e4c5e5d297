"""Folder layout of YOLO datasets, and the YAML file that names their classes and splits."""

from __future__ import annotations

import os
import posixpath
import re
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
    split_of,
    text_lines,
    walk_pairs,
    whole_number,
)
from ziggurat.datasets.formats.shared.file_finder import FileFinder, RuleCounts, match_names
from ziggurat.datasets.samples import SPLIT_NAMES, Problem
from ziggurat.errors import DataError

__all__ = ["YoloFolder", "YoloFolders", "YoloWalk", "overlapping", "read_description", "yolo_folders"]

_LARGEST_BYTES: Final = 1 << 20  # of a description; a larger file is something else
_MOST_CLASSES: Final = 100_000  # a wrong `nc` must not fill the memory
_NAME_FILES: Final = ("classes.txt", "obj.names", "names.txt", "_darknet.labels", "labels.txt")
_BOX_LINE: Final = re.compile(r"[\d.+-]+(\s+[\d.,eE+-]+){4,}")
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


@dataclass(frozen=True, kw_only=True)
class YoloFolders:
    """Where the images of a source are.

    Args:
        folders: of images with their labels.
        notes: where a split was found by another name than the YAML file's.
        missing: split and entry of the YAML file that are not there.
    """

    folders: list[YoloFolder]
    notes: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)


def yolo_folders(root: Path, description: YoloDescription, labels: str, images: str = "") -> YoloFolders:
    """Return where the images of a source are: as its YAML file says, or by the usual names of folders.

    A split that is not where the YAML file says is the usual folder, or the list, of that split.

    Args:
        root: the source.
        description: what its files say.
        labels: name of the folders with labels.
        images: folder of the images, below the source; empty to look for it.
    """
    if images:
        return YoloFolders(folders=_split_folders(root, images.strip("/"), labels))
    usual = _usual_folders(root, labels)
    found: list[YoloFolder] = []
    notes, missing = [], []
    for split, entries in description.splits.items():
        for entry in entries:
            place = _place_in(root, description.base, entry)
            if place is None and (place := _list_of(root, split, entry)) is not None:
                notes.append(f"It names `{entry}`, which is not there: `{place}` is taken.")
            if place is not None:
                listed = (root / place).is_file()
                own = "" if listed else labels_of(root, place, labels)
                found.append(YoloFolder(image_place=place, labels=own, split=split, listed=listed))
                continue
            others = [each for each in usual if each.split == split and each not in found]
            for each in others:
                notes.append(f"It names `{entry}`, which is not there: `{each.image_place}` is taken.")
            found += others
            missing += [] if others else [(split, entry)]
    if found:
        kept = [each for each in found if each.listed or has_labels(root, each)] or found
        return YoloFolders(folders=kept, notes=notes, missing=missing)
    return YoloFolders(folders=usual, missing=missing)


def _list_of(root: Path, split: str, entry: str) -> str | None:
    """Return the list of a split by another of its names, such as ``val.txt`` for ``valid.txt``."""
    if not entry.lower().endswith(".txt"):
        return None
    folder = posixpath.dirname(entry.replace("\\", "/"))
    names = [f"{name}.txt" for name, meant in SPLIT_NAMES.items() if meant == split]
    paths = [path for name in names for path in (posixpath.join(folder, name), name)]
    return next((place for path in paths if (place := _place_in(root, "", path)) is not None), None)


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


class YoloWalk:
    """Walk through images and label files.

    Args:
        root: the source.
        labels: name of the folders with labels.
    """

    def __init__(self, root: Path, labels: str) -> None:
        self._root = root
        self._labels = labels
        self._counts = RuleCounts()
        self._images = FileFinder(root)
        self._stems: dict[str, tuple[str, ...]] = {}

    def pairs(self, folder: YoloFolder) -> Iterator[Pair]:
        """Yield images and label files of a folder or a list, in order."""
        if folder.listed:
            entries = (line.strip() for line in text_lines(self._root / folder.image_place))
            yield from (self._listed(folder, entry) for entry in entries if entry)
        else:
            yield from walk_pairs(self._root, folder.image_place, folder.labels, ".txt", counts=self._counts)

    def problems(self, key: str) -> Iterator[Problem]:
        """Yield by which rules files were found; call it after the walk."""
        for counts in (self._counts, self._images.counts):
            yield from counts.problems(key)

    def _listed(self, folder: YoloFolder, entry: str) -> Pair:
        place = _place_in(self._root, posixpath.dirname(folder.image_place), entry) or _place_in(self._root, "", entry)
        if place is None or not (self._root / place).is_file():
            found = self._images.find(entry)
            if found is None:
                return Pair(entry, entry, None, self._label(entry) if _is_inside(entry) else None)
            place = found.path
        size_bytes = (self._root / place).stat().st_size
        return Pair(posixpath.splitext(place)[0], place, size_bytes, self._label(place))

    def _label(self, image: str) -> str | None:
        stem = posixpath.splitext(posixpath.basename(image))[0]
        folder = labels_of(self._root, posixpath.dirname(image), self._labels)
        path = posixpath.join(folder, f"{stem}.txt")
        if (self._root / path).is_file():
            return path
        if folder not in self._stems:
            self._stems = {folder: _stems_in(self._root, folder)}  # lists go folder by folder
        found = match_names([stem], self._stems[folder]).get(stem)
        if found is None:
            return None
        path = posixpath.join(folder, f"{found[0]}.txt")
        self._counts.add(found[1], path, image)
        return path


def _is_inside(entry: str) -> bool:
    normal = posixpath.normpath(entry.replace("\\", "/"))
    return not normal.startswith(("..", "/")) and normal[1:3] != ":/" and "\0" not in normal


def _stems_in(root: Path, folder: str) -> tuple[str, ...]:
    """Return the names of the text files in a folder, without the ending."""
    try:
        with os.scandir(root / folder) as listing:
            return tuple(sorted(entry.name[:-4] for entry in listing if entry.name.lower().endswith(".txt")))
    except OSError:
        return ()


def has_labels(root: Path, folder: YoloFolder) -> bool:
    """Return whether labels of a folder are there."""
    return folder.listed or first_file(root / folder.labels, ".txt") is not None


def _usual_folders(root: Path, labels: str) -> list[YoloFolder]:
    every = folders_below(root, 2)
    found = []
    for path in every:
        if posixpath.basename(path).lower() in IMAGE_FOLDERS:
            found += _split_folders(root, path, labels)
    if not found:
        places: list[str] = []
        for path in every:
            if _has_images(root / path) and not any(not each or path.startswith(f"{each}/") for each in places):
                places.append(path)
        found = [YoloFolder(image_place=path, labels=path, split=_split_named(path)) for path in places]
    return [each for each in found if has_labels(root, each)]


def _split_named(path: str) -> str:
    """Return the split of a folder by its last name that means one, also as CVAT writes it: `obj_train_data`."""
    for name in reversed(path.split("/")):
        inner = re.fullmatch(r"obj_(.+)_data", name, re.IGNORECASE)
        if split := split_of(inner[1] if inner else name):
            return split
    return ""


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
        key_points: number of key points of an object, and of their numbers, 2 or 3; None where it is not said.
        problems: what is wrong with it.
    """

    file: str = ""
    names: tuple[str, ...] = ()
    base: str = ""
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    key_points: tuple[int, int] | None = None
    problems: tuple[Problem, ...] = ()


def read_description(source: Path, labels: str = "labels") -> YoloDescription:
    """Return what the YAML file of a folder says, or Darknet's `.data` file, or its list of names.

    Args:
        source: the folder.
        labels: name of a folder in it, which may hold the list too.
    """
    for path in sorted(_files(source)):
        found = _of_yaml(path) if path.suffix.lower() in (".yaml", ".yml") else _of_darknet(path, source)
        if found is not None:
            return found
    for folder in (source, source / labels, source / "train"):
        for name in _NAME_FILES:
            names = read_class_names(folder / name)
            if names and not all(map(_BOX_LINE.fullmatch, names)):  # a file of labels may have such a name, too
                return YoloDescription(file=name, names=tuple(names))
    return YoloDescription()


def _of_yaml(path: Path) -> YoloDescription | None:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return None
        content = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    names = _names(content.get("names"))
    problems: tuple[Problem, ...] = ()
    count = whole_number(content.get("nc")) or 0
    if not names and content.get("names"):
        reason = "Its `names` are no list, and no mapping of numbers: classes are called by their numbers."
        lost = count if 0 < count <= _MOST_CLASSES else 1
        why = "`names` cannot be read"
        problems = (Problem(key=path.name, kind="bad-value", reason=reason, names=lost, why=why),)
    elif not names and count <= _MOST_CLASSES:
        names = tuple(_name(number, None) for number in range(count))
    splits: dict[str, tuple[str, ...]] = {}
    for key in _SPLIT_KEYS:
        value = content.get(key)
        entries = value if isinstance(value, list) else [value]
        texts = tuple(each for each in entries if isinstance(each, str) and each)
        if texts:
            splits[split_of(key)] = splits.get(split_of(key), ()) + texts
    if not (names or problems) or not (splits or "nc" in content or path.stem.lower() == "data"):
        return None
    base = content.get("path")
    return YoloDescription(
        file=path.name,
        names=names,
        base=base if isinstance(base, str) else "",
        splits=splits,
        key_points=_shape(content.get("kpt_shape")),
        problems=problems,
    )


def _of_darknet(path: Path, source: Path) -> YoloDescription | None:
    """Return what a file such as CVAT's `obj.data` says: lines `train = data/train.txt`."""
    try:
        pairs = [line.partition("=") for line in text_lines(path)]
    except DataError:
        return None
    values = {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}
    if not values.keys() & {"train", "valid", "names"}:
        return None
    place = _place_in(source, "", values.get("names", ""))
    files = [place] if place else list(_NAME_FILES)
    names = next((found for name in files if (found := read_class_names(source / name))), [])
    splits: dict[str, tuple[str, ...]] = {}
    for key in _SPLIT_KEYS:
        value = values.get(key, "")
        if value:
            splits[split_of(key)] = (*splits.get(split_of(key), ()), value)
    return YoloDescription(file=path.name, names=tuple(names), splits=splits)


def _shape(value: Any) -> tuple[int, int] | None:
    """Return `kpt_shape`: the number of key points, and of the numbers of each."""
    numbers = [whole_number(each) for each in value] if isinstance(value, list) and len(value) == 2 else []
    points, per_point = numbers if len(numbers) == 2 else (None, None)
    return (points, per_point) if points is not None and points > 0 and per_point in (2, 3) else None


def _names(value: Any) -> tuple[str, ...]:
    """Return names by number, of a list, a mapping of numbers to names or of names to numbers, or lines of a text."""
    if isinstance(value, str):
        value = [line.strip(" -\t'\"") for line in re.split(r"[\n,]", value.strip().strip("[]")) if line.strip()]
    if isinstance(value, list):
        return tuple(_name(number, name) for number, name in enumerate(value))
    if not isinstance(value, dict):
        return ()
    by_number = {whole_number(number): name for number, name in value.items()}
    if None in by_number:
        by_number = {whole_number(number): name for name, number in value.items() if not isinstance(number, str)}
        if len(by_number) < len(value):
            return ()
    numbers = [number for number in by_number if number is not None]
    if len(numbers) < len(by_number) or not numbers or min(numbers) < 0 or max(numbers) >= _MOST_CLASSES:
        return ()
    return tuple(_name(number, by_number.get(number)) for number in range(max(numbers) + 1))


def _name(number: int, value: Any) -> str:
    """Return the name of a class; lists are no names, and with YAML's references they may be larger than they look."""
    return str(clean_json(value)) if isinstance(value, str | int | float) else f"class {number}"


def _files(source: Path) -> list[Path]:
    found = []
    try:
        with os.scandir(source) as listing:
            for entry in listing:
                if entry.name.lower().endswith((".yaml", ".yml", ".data")):
                    found.append(Path(entry.path))
                    if len(found) == 50:
                        break
    except OSError:
        return []
    return found
