"""Recognition of class folders, their location in a source, and signs that other files hold the labels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.shared.folder_walk import (
    ImageWalk,
    folders_in,
    has_image_name,
    holds_images,
    split_folders,
)
from ziggurat.datasets.formats.shared.looks import file_ends
from ziggurat.datasets.formats.table.files import table_signs
from ziggurat.datasets.importer import Guess
from ziggurat.datasets.samples import SPLIT_NAMES, Problem
from ziggurat.errors import DataError

__all__ = [
    "ClassPlace",
    "class_places",
    "data_files",
    "guess_class_folders",
    "label_files",
    "listed_classes",
    "write_classes",
]

CLASSES_NAME: Final = "ziggurat-classes.json"
"""File of an export that names all classes in order, those without images too."""

_OF_OTHERS: Final = re.compile(
    r"jpegimages|imagesets?|images?(_?\d+)?|imgs?|pictures|photos|frames|rgb|annotations?|annots?|\w*annot|xmls?|"
    r"labels?(\W\w*|_?\d+|txt)?|labels-\S*|masks?|\w+_masks?|segmentation\w*|ground_?truth|gt\w*|calib|velodyne|inputs?|"
    r"targets?|outputs?|left|right|[hl]r|before|after|(train|test|val)[ab]|\w*_db|docs?|assets|screenshots|figures",
    re.IGNORECASE,
)
"""Names of folders that say what is in a part of a sample, not of which class it is."""

_NAMES_OF_PAIRS: Final = frozenset(("a", "b", "x", "y", "low", "high", "source", "target"))
"""Names that two classes may have, and the inputs and targets of pairs."""

_SIDE_FILES: Final = frozenset([".xml", ".json", ".jsonl", ".csv", ".tsv", ".parquet", ".yaml", ".yml", ".mdb", ".txt"])
_LOOKED_AT: Final = 30  # classes, so that ImageNet is recognized as fast as a source of two classes
_FEW_CLASSES_SURE: Final = 0.6

_MOST_FOLDERS: Final = 60
_MOST_ENTRIES: Final = 300
_DEEPEST: Final = 3
_MOST_OPENED: Final = 8  # files are opened to find labels in them; a guess must not take seconds
_ALWAYS: Final = frozenset((".cls", ".mat", ".record", ".tfrecord"))
_MARKS: Final = {
    ".xml": (b"<annotation", b"<object"),
    ".json": (
        b'"annotations"',
        b'"bbox"',
        b'"categories"',
        b'"regions"',
        b'"shapes"',
        b'"objects"',
        b'"geometry"',
        b'"polygon"',
        b'"points"',
        b'"boxes"',
        b'"box2d"',
        b'"keypoints"',
        b'"_via_',
        b'"labels"',
        b'"xmin"',
    ),
}
_TABLES: Final = frozenset((".csv", ".tsv"))


@dataclass(frozen=True)
class ClassPlace:
    """A folder whose folders are classes.

    Args:
        split: that it stands for; empty where the source has no splits.
        folder: below the source; empty for the source itself.
        classes: names of the folders in it, sorted.
    """

    split: str
    folder: str
    classes: tuple[str, ...]

    def path_of(self, name: str) -> str:
        """Return the path of a class's folder below the source."""
        return f"{self.folder}/{name}" if self.folder else name


def class_places(source: Path, splits: str) -> list[ClassPlace]:
    """Return the folders of the splits, ``train`` first; the source itself where it has none.

    Args:
        source: a folder.
        splits: ``yes``, ``no``, or ``auto``: they are splits where train stands beside val or test, or where every
            folder with images has the name of a split, and there are several or they have folders with images.

    Raises:
        DataError: where there must be splits and are none.
    """
    named = [] if splits == "no" else split_folders(source)
    if splits == "yes" and not named:
        raise DataError(f"`{source}` has no folder that is named train, val or test.")
    if named and (splits == "yes" or _are_splits(source, named)):
        return [ClassPlace(split, name, tuple(folders_in(source / name))) for split, name in named]
    return [ClassPlace("", "", tuple(folders_in(source)))]


def listed_classes(source: Path) -> dict[str, str] | None:
    """Return folder → name of the classes that an export lists; None where the source is none of our exports.

    Raises:
        DataError: where the list is damaged.
    """
    path = source / CLASSES_NAME
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text("utf-8"))
        found = {entry["folder"]: entry["name"] for entry in content["classes"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"`{path}` does not list the classes of an export: {type(error).__name__}.",
            advice="Delete it to take the folders' names as classes.",
        ) from None
    if not all(isinstance(text, str) for pair in found.items() for text in pair):
        raise DataError(f"`{path}` has something else than texts for folders and names.")
    return found


def write_classes(folder: Path, classes: Mapping[str, str]) -> None:
    """Write the list of an export's classes, folder → name."""
    content = {"version": 1, "classes": [{"folder": name, "name": text} for name, text in classes.items()]}
    folder.joinpath(CLASSES_NAME).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _are_splits(source: Path, named: list[tuple[str, str]]) -> bool:
    names = {name for _, name in named}
    found = {split for split, _ in named}
    others = (name for name in folders_in(source) if name not in names)
    if not any(holds_images(source / name / inner) for name in names for inner in folders_in(source / name)[:10]):
        # Images right in Train and Test have no classes; a class called train stands beside others.
        is_split = len(found) > 1 and not any(holds_images(source / name) for name in others)
        return is_split or source.joinpath(CLASSES_NAME).is_file()
    return ("train" in found and len(found) > 1) or not any(holds_images(source / name) for name in others)


def guess_class_folders(format_name: str, source: Path) -> Guess | None:
    """Return a guess for a folder of class folders, or one of images only; None for everything else."""
    if not source.is_dir() or any(source.glob("metadata.*")):
        return None
    places = class_places(source, "auto")
    found = [(place, _classes_with_images(source, place)) for place in places]
    most = max(found, key=lambda pair: len(pair[1]))
    if source.joinpath(CLASSES_NAME).is_file():
        reason = f"{CLASSES_NAME} of an export lists the classes"
        return Guess(format=format_name, confidence=0.97, reason=reason, kind="image-classification")
    classes = most[1]
    if len(classes) < (1 if most[0].split else 2):
        return _guess_flat(format_name, source)
    reason = f"{_count(source, most)} folders with images"
    if most[0].split:
        reason += f" in each of {', '.join(place.folder for place in places)}"
    confidence = _confidence(source, most[0], classes)
    if confidence < _FEW_CLASSES_SURE and _same_names_in(source, most[0], classes):
        reason += "; their images have the same names, so they may be pairs"
    return Guess(
        format=format_name,
        confidence=confidence,
        reason=reason,
        kind="image-classification",
        loses=_lost(source, of_classes=True),
    )


def _confidence(source: Path, place: ClassPlace, classes: list[str]) -> float:
    splits = sum(map(_is_split, classes))
    if splits > 1 or 2 * splits >= len(classes) or any(_is_strange(source / place.folder, name) for name in classes):
        return 0.1
    if _same_names_in(source, place, classes):
        # Two parts of the same samples look like that, and so do two classes with numbered images.
        return 0.4 if _NAMES_OF_PAIRS.issuperset(name.lower() for name in classes) else 0.5
    if any(_side_files(source / place.folder / name) for name in classes[:3]) or _lists(source):
        return 0.3
    if place.split:
        return 0.85 if len(classes) > 1 else 0.3
    return 0.7 if len(classes) > 2 else _FEW_CLASSES_SURE


def _is_strange(folder: Path, name: str) -> bool:
    """Tell whether a folder is a part of samples or a whole dataset, rather than a class."""
    if _OF_OTHERS.fullmatch(name):
        return True
    inner = folders_in(folder / name)
    parts = [each for each in inner if _is_split(each) or _OF_OTHERS.fullmatch(each)]
    return any(holds_images(folder / name / each) for each in parts)


def _is_split(name: str) -> bool:
    """Tell whether a folder's name has a word for a split, such as ``Train``, ``test_images`` or ``val2017``."""
    return any(word in SPLIT_NAMES for word in re.findall(r"[a-z]+", name.lower()))


def _same_names_in(source: Path, place: ClassPlace, classes: list[str]) -> bool:
    if not len(place.classes) == 2 == len(classes):
        return False
    return _same_names(source / place.folder / classes[0], source / place.folder / classes[1])


def _lost(source: Path, *, of_classes: bool) -> str:
    """Return which labels class folders would not read; empty where there are none."""
    found = next(label_files(source, of_classes=of_classes), "")
    return f"labels such as those in `{found}`" if found else ""


def _guess_flat(format_name: str, source: Path) -> Guess | None:
    """Return a guess for images without anything that says what they show."""
    if not holds_images(source) or any(_OF_OTHERS.fullmatch(name) for name in folders_in(source)):
        return None
    return Guess(
        format=format_name,
        confidence=0.15 if _side_files(source) else 0.3,
        reason="images without classes, each of which would be its own target",
        kind="image-to-image",
        options={"classes": "none"},
        loses=_lost(source, of_classes=False),
    )


def _classes_with_images(source: Path, place: ClassPlace) -> list[str]:
    return [name for name in place.classes[:_LOOKED_AT] if holds_images(source / place.path_of(name))]


def _count(source: Path, found: tuple[ClassPlace, list[str]]) -> str:
    place, classes = found
    return f"{len(place.classes)}" if len(place.classes) > _LOOKED_AT else f"{len(classes)}"


def _same_names(one: Path, other: Path) -> bool:
    """Tell whether two folders have images of the same names."""
    stems = [{os.path.splitext(name)[0] for name in _first_images(folder)} for folder in (one, other)]
    return len(stems[0]) > 1 and stems[0] == stems[1]


def _first_images(folder: Path) -> list[str]:
    found = islice(ImageWalk(folder).images(nested=False), 2 * _LOOKED_AT)
    return [each.path for each in found if not isinstance(each, Problem)]


def _side_files(folder: Path) -> bool:
    """Tell whether a good part of a folder's files may say something of its images."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, 200)]
    beside = sum(os.path.splitext(name)[1].lower() in _SIDE_FILES for name in names)
    return beside > 0.3 * sum(has_image_name(name) for name in names)


def _lists(source: Path) -> bool:
    return any(source.joinpath(f"{name}.txt").is_file() for name in SPLIT_NAMES)


def label_files(source: Path, *, of_classes: bool = False) -> Iterator[str]:
    """Yield the paths of some files that hold labels of images, below a folder.

    Args:
        source: the folder; a limited number of its entries is looked at, and a few files are opened.
        of_classes: whether the images lie in folders of classes: then tables and texts say what the folders say.
    """
    opened = 0
    for folder, names in _folders(source, ()):
        images = {os.path.splitext(name)[0] for name in names if has_image_name(name)}
        for name in names:
            stem, ending = os.path.splitext(name)
            ending, path = ending.lower(), source / folder / name
            if ending in _MARKS or (ending in _TABLES and not of_classes):
                if opened == _MOST_OPENED:
                    continue
                opened += 1
                is_label = _names_images(path) if ending in _TABLES else _has_mark(path, _MARKS[ending])
            else:
                by_name = stem in images or (stem[:1] != "." and has_image_name(stem))
                is_label = not of_classes and (ending in _ALWAYS or (ending == ".txt" and by_name))
            if is_label:
                yield os.path.join(folder, name)


def data_files(source: Path, *, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the paths of some images and label files below a folder.

    Args:
        source: the folder.
        without: names of folders in it that are not entered.
    """
    for folder, names in _folders(source, without):
        if images := [name for name in names if has_image_name(name)]:
            yield os.path.join(folder, images[0])
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
    ends = file_ends(path)
    return any(mark in ends for mark in marks)


def _names_images(path: Path) -> bool:
    try:
        return table_signs(path).has_images
    except DataError:
        return False
