"""Recognition of class folders, as distinct from the data folders of other formats."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.class_folders.label_files import label_files
from ziggurat.datasets.formats.class_folders.layout import CLASSES_NAME, ClassPlace, class_places
from ziggurat.datasets.formats.shared.folder_walk import PictureWalk, folders_in, has_picture_name, holds_pictures
from ziggurat.datasets.importer import Guess
from ziggurat.datasets.samples import Problem
from ziggurat.datasets.split_names import SPLIT_NAMES

__all__ = ["guess_class_folders"]

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
_LOOKED_AT: Final = 30
_FEW_CLASSES_SURE: Final = 0.6


def guess_class_folders(format_name: str, source: Path) -> Guess | None:
    """Return a guess for a folder of class folders, or one of images only; None for everything else."""
    if not source.is_dir() or any(source.glob("metadata.*")):
        return None
    places = class_places(source, "auto")
    found = [(place, _classes_with_pictures(source, place)) for place in places]
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
    return any(holds_pictures(folder / name / each) for each in parts)


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
    if not holds_pictures(source) or any(_OF_OTHERS.fullmatch(name) for name in folders_in(source)):
        return None
    return Guess(
        format=format_name,
        confidence=0.15 if _side_files(source) else 0.3,
        reason="images without classes, each of which would be its own target",
        kind="image-to-image",
        options={"classes": "none"},
        loses=_lost(source, of_classes=False),
    )


def _classes_with_pictures(source: Path, place: ClassPlace) -> list[str]:
    return [name for name in place.classes[:_LOOKED_AT] if holds_pictures(source / place.path_of(name))]


def _count(source: Path, found: tuple[ClassPlace, list[str]]) -> str:
    place, classes = found
    return f"{len(place.classes)}" if len(place.classes) > _LOOKED_AT else f"{len(classes)}"


def _same_names(one: Path, other: Path) -> bool:
    """Tell whether two folders have images of the same names."""
    stems = [{os.path.splitext(name)[0] for name in _first_pictures(folder)} for folder in (one, other)]
    return len(stems[0]) > 1 and stems[0] == stems[1]


def _first_pictures(folder: Path) -> list[str]:
    found = islice(PictureWalk(folder).pictures(nested=False), 2 * _LOOKED_AT)
    return [each.path for each in found if not isinstance(each, Problem)]


def _side_files(folder: Path) -> bool:
    """Tell whether a good part of a folder's files may say something of its images."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, 200)]
    beside = sum(os.path.splitext(name)[1].lower() in _SIDE_FILES for name in names)
    return beside > 0.3 * sum(has_picture_name(name) for name in names)


def _lists(source: Path) -> bool:
    return any(source.joinpath(f"{name}.txt").is_file() for name in SPLIT_NAMES)
