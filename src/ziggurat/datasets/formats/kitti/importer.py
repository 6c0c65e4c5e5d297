"""Importer for KITTI datasets: a text file of 15 columns for each image."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import (
    ZERO_SIZE_OPTION,
    BoxRule,
    NamedScan,
    Pair,
    folders_below,
    lost_objects,
    read_class_names,
    read_keys,
    some_files,
    split_of,
    text_lines,
    walk_pairs,
)
from ziggurat.datasets.formats.shared.file_finder import RuleCounts
from ziggurat.datasets.formats.shared.frames import FRAME_OPTIONS, Frame, FrameRule
from ziggurat.datasets.image_size import stored_size_of_file
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject

__all__ = ["DONT_CARE", "KittiImporter", "type_names"]

DONT_CARE: Final = "DontCare"
DIGITS: Final = "digits"
_DIGITS_NAMES: Final = (
    "dontcare", "car", "van", "truck", "bus", "pickup", "vehicle-with-trailer", "special-vehicle", "person",
    "person-fa", "person?", "people", "cyclist", "tram", "person_sitting", "misc",
)  # fmt: skip
_DIGITS_ALIASES: Final = {"pedestrian": "person"}

_IMAGES: Final = ("image_2", "images", "image", "jpegimages", "imgs", "img")
_COLUMNS: Final = 15


class KittiImporter(Importer):
    """KITTI: ``training/label_2/*.txt`` and ``training/image_2``, or ``train/labels`` and ``train/images``."""

    name = "kitti"
    markers = (".txt",)
    title = "KITTI (text)"
    kinds = ("detection",)
    options = (
        ImporterOption(
            name="classes",
            type=list,
            default=[],
            help="Classes, in order; other types become DontCare. `digits` numbers them as DIGITS did. Left out: "
            "classes.txt; else the types that are found, sorted.",
        ),
        ImporterOption(
            name="class_map", type=dict, default={}, help="Type to class, looked at before `classes`; '' is DontCare."
        ),
        ImporterOption(
            name="min_box_px",
            type=float,
            default=0.0,
            help="Boxes of the split val with a shorter side become DontCare. DIGITS took 25.",
        ),
        ImporterOption(name="labels", type=str, default="", help="Folder of the label files. Left out: looked for."),
        ImporterOption(name="images", type=str, default="", help="Folder of the images. Left out: looked for."),
        ZERO_SIZE_OPTION,
        *FRAME_OPTIONS[:1],
    )

    def guess(self, source: Path) -> Guess | None:
        found = kitti_folders(source) if source.is_dir() else []
        if not found:
            return None
        reason = f"Label files of 15 columns in {found[0].labels}."
        options = {} if len({each.labels.rpartition("/")[2] for each in found}) == 1 else {"labels": found[0].labels}
        confidence = 0.96 if found[0].sure else 0.75
        return Guess(format=self.name, confidence=confidence, reason=reason, kind="detection", options=options)

    def obstacle(self, source: Path) -> str:
        """Name a line of a label file that has other columns."""
        return next(filter(None, map(_other_columns, _label_files(source))), "")

    def checked_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options; ``classes`` may also be one text with commas, or a dict, which is a ``class_map``."""
        classes = given.get("classes")
        if isinstance(classes, str):
            given = {**given, "classes": [name.strip() for name in classes.split(",") if name.strip()]}
        elif isinstance(classes, Mapping):
            names = list(dict.fromkeys(name for name in classes.values() if name))
            given = {**given, "classes": names, "class_map": dict(classes)}
        return super().checked_options(given)

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        folders = kitti_folders(source, options["labels"], options["images"]) if source.is_dir() else []
        if not folders:
            raise DataError(
                "A KITTI dataset has label files of 15 columns in a folder beside that of the images.",
                received=f"`{source}`, down to three folders deep",
                advice="Name the folders with the options `labels` and `images`.",
            )
        names = options["classes"] or read_class_names(source / "classes.txt")
        classes = KittiClasses(names, options["class_map"])
        found = partial(_found, source, folders, classes, options)
        return NamedScan(found, classes.names)


def _found(
    root: Path, folders: Sequence[KittiFolder], classes: KittiClasses, options: Mapping[str, Any]
) -> Iterator[Sample | Problem]:
    rules = KittiRules(classes, options)
    counts = RuleCounts()
    keys = read_keys(root)
    for path in unlabelled_folders(root, list(folders)):
        reason = "Its images have no labels; none of them is in the dataset."
        yield Problem(key=path, kind="no-label", reason=reason, left_out=True)
    for folder in folders:
        for pair in walk_pairs(root, folder.image_folder, folder.labels, ".txt", counts=counts):
            split = folder.split or split_of(pair.stem.partition("/")[0])
            if pair.image is None or pair.size_bytes is None:
                reason = "It has no image of the same name." if pair.label else "It is a link that leads nowhere."
                name = pair.label or pair.image or pair.stem
                names = rules.lost_names(root / pair.label) if pair.label else ()
                yield from lost_objects(name, "no-picture", reason, names, left_out=True, split=split)
                continue
            yield from _sample(root, pair, keys.get(pair.image, pair.image), split, rules)
    yield from counts.problems("label files")


class KittiRules:
    """What becomes of the lines of label files.

    Args:
        classes: decides on types.
        options: of the importer.
    """

    def __init__(self, classes: KittiClasses, options: Mapping[str, Any]) -> None:
        self.box = BoxRule(options["zero_size_boxes"])
        self.frame = FrameRule({**options, "scale_boxes": False})
        self.classes = classes
        self._smallest_px = options["min_box_px"]

    def name_of(self, line: KittiLine, split: str) -> str | None:
        """Return the class of a line; None for a region that counts for nothing."""
        left, top, right, bottom = line.box
        is_small = min(abs(right - left), abs(bottom - top)) < (self._smallest_px if split == "val" else 0)
        return None if is_small else self.classes.name_of(line.type)

    def lost_names(self, path: Path) -> list[str]:
        """Return the classes of the objects in a file that are lost, regions that count for nothing left aside."""
        try:
            words = [line.split() for line in text_lines(path) if line.strip()]
        except DataError:
            return []
        return [name for each in words if (name := self.classes.name_of(each[0])) is not None]


def _sample(root: Path, pair: Pair, key: str, split: str, rules: KittiRules) -> Iterator[Sample | Problem]:
    assert pair.image is not None
    label: list[dict[str, Any]] = []
    try:
        lines = text_lines(root / pair.label) if pair.label else []
    except DataError as error:
        yield Problem(key=key, kind="unreadable", reason=str(error), left_out=True, split=split)
        return
    if pair.label is None:
        yield Problem(key=key, kind="no-label", reason="It has no label file.")
    frame = rules.frame.of(key, partial(stored_size_of_file, root / pair.image), None, labelled=any(lines))
    yield from frame.problems
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        where = f"{pair.label}, line {number}"
        try:
            line = parse_line(text)
        except ValueError as error:
            name = rules.classes.name_of(text.split()[0])
            reason, lost = f"{where}: {error}.", int(name is not None)
            yield Problem(key=key, kind="bad-line", reason=reason, objects=lost, class_name=name or "")
            continue
        name = rules.name_of(line, split)
        box, problems = rules.box.check(
            key, line.box, f"{where} ({line.type})", frame.size, class_name=name or "", counts=name is not None
        )
        yield from problems
        if box is not None:
            label.append(_labelled(line, name, box, frame))
    yield Sample(key=key, parts=(pair.image,), label=label, split=split, size_bytes=pair.size_bytes)


def _labelled(
    line: KittiLine, name: str | None, box: tuple[float, float, float, float], frame: Frame
) -> dict[str, Any]:
    written = line.type != (DONT_CARE if name is None else name)
    details = {"type": line.type, **line.details} if written else line.details
    found = frame.moved(ImageObject(class_number=-1, box=box, details=details))
    return {**found.as_json(), "class": -1 if name is None else name}


class KittiClasses:
    """Decides on types. Regions of the type ``DontCare`` belong to no class, whatever the list says.

    Args:
        names: classes in order; empty: every type that is found is a class. ``["digits"]`` numbers them as DIGITS did:
            car is 1, and 0 stays free. Types that are not in the list are ``DontCare``; case does not matter.
        mapping: type → class, looked at first; an empty class means ``DontCare``.
    """

    def __init__(self, names: Sequence[str], mapping: Mapping[str, str]) -> None:
        self._mapping = {kind.lower(): name for kind, name in mapping.items()}
        if list(names) == [DIGITS]:
            names = _DIGITS_NAMES
            self._mapping = {**_DIGITS_ALIASES, **self._mapping}
        self.names = list(names) or None
        known = list(zip(type_names(names), names, strict=True))
        self._exact = dict(reversed(known))
        self._folded = {kind.lower(): name for kind, name in reversed(known)}

    def name_of(self, kind: str) -> str | None:
        """Return the class of a type, None where it is to be ignored."""
        name = self._mapping.get(kind.lower(), kind)
        if not name or name.lower() == DONT_CARE.lower():
            return None
        if self.names is None:
            return name
        return self._exact.get(name) or self._folded.get(name.lower()) or (name if name in self.names else None)


def type_names(names: Sequence[str]) -> list[str]:
    """Return the type that is written for each class: one word, no two alike, and none that means ``DontCare``."""
    taken = {DONT_CARE.lower()}
    found = []
    for name in names:
        word = re.sub(r"\s+", "_", name.strip()) or "_"
        free, count = word, 1
        while free.lower() in taken:
            count += 1
            free = f"{word}_{count}"
        taken.add(free.lower())
        found.append(free)
    return found


@dataclass(frozen=True, kw_only=True)
class KittiFolder:
    """Images and their labels.

    Args:
        image_folder: folder, below the source.
        labels: folder, below the source.
        split: that its name means, or empty.
        sure: whether the folder has KITTI's own name.
    """

    image_folder: str
    labels: str
    split: str
    sure: bool = False


@dataclass(frozen=True, kw_only=True)
class KittiLine:
    """One line of a label file.

    Args:
        type: as it is written.
        box: (left, top, right, bottom) in pixels.
        details: the other columns, by name; dimensions are height, width and length in metres, location is x, y and z
            in metres in the camera's coordinates, angles are in radians.
    """

    type: str
    box: tuple[float, float, float, float]
    details: dict[str, Any]


def kitti_folders(root: Path, labels: str = "", images: str = "") -> list[KittiFolder]:
    """Return the KITTI folders of a source down to two folders deep, in order.

    Args:
        root: the source.
        labels: name of the folders with labels; empty for those that begin with ``label``.
        images: name of the folders with images; empty for the usual names.
    """
    every = folders_below(root, 3)
    found = []
    for path in every:
        folder, name = posixpath.split(path)
        fits = name == labels or path == labels if labels else name.lower().startswith("label")
        lines_fit = _has_kitti_lines(root / path, any_class=name == "label_2") if path and fits else False
        if not (lines_fit or (lines_fit is None and name == "label_2")):
            continue
        image_folder = _images_beside(every, folder, images)
        if image_folder is not None:
            split = split_of(posixpath.basename(folder))
            sure = name == "label_2"
            found.append(KittiFolder(image_folder=image_folder, labels=path, split=split, sure=sure))
    sure_only = [each for each in found if each.sure]
    return sure_only or found


def unlabelled_folders(root: Path, known: list[KittiFolder]) -> Iterator[str]:
    """Yield the folders ``image_2`` that have no labels, such as that of ``testing``."""
    used = {each.image_folder for each in known}
    for path in folders_below(root, 3):
        if posixpath.basename(path) == "image_2" and path not in used:
            yield path


def parse_line(line: str) -> KittiLine:
    """Return what a line of 15 columns says, or of 16 with a score; columns behind them are ignored.

    Raises:
        ValueError: where it says something else.
    """
    words = line.split()
    if len(words) < _COLUMNS:
        raise ValueError(f"it has {len(words)} columns, and {_COLUMNS} are needed")
    try:
        values = [float(word) for word in words[1 : _COLUMNS + 1]]
    except ValueError:
        raise ValueError("its columns behind the first are no numbers") from None
    truncated, occluded, alpha, left, top, right, bottom = values[:7]
    others = (truncated, occluded, alpha, *values[7:])
    if not all(map(math.isfinite, others)):
        raise ValueError("a column is infinite or no number")
    details: dict[str, Any] = {
        "truncated": truncated,
        "occluded": int(occluded) if occluded == int(occluded) and abs(occluded) < 1e9 else occluded,
        "alpha": alpha,
        "dimensions": values[7:10],
        "location": values[10:13],
        "rotation_y": values[13],
    }
    if len(values) > _COLUMNS - 1:
        details["score"] = values[14]
    return KittiLine(type=words[0], box=(left, top, right, bottom), details=details)


def _has_kitti_lines(folder: Path, *, any_class: bool) -> bool | None:
    """Look into some label files for a line that fits; None where all are empty.

    A class may be called `7` where the folder's own name says what it is; elsewhere such a line may be one of YOLO's.
    """
    empty = True
    for path in some_files(folder, ".txt"):
        try:
            lines = [line for line in text_lines(path) if line.strip()]
        except DataError:
            continue
        if any(_is_kitti(line, any_class=any_class) for line in lines[:100]):
            return True
        empty = empty and not lines
    return None if empty else False


def _is_kitti(line: str, *, any_class: bool) -> bool:
    words = line.split()
    has_name = len(words) >= _COLUMNS and (any_class or not _is_number(words[0]))
    return has_name and all(map(_is_number, words[1:_COLUMNS]))


def _label_files(source: Path) -> Iterator[Path]:
    """Yield a label file of each folder that may be one of KITTI, with images in a folder beside it."""
    every = folders_below(source, 3) if source.is_dir() else []
    for path in every:
        folder, name = posixpath.split(path)
        if name.lower().startswith("label") and _images_beside(every, folder, "") is not None:
            yield from sorted(some_files(source / path, ".txt"))[:1]


def _other_columns(path: Path) -> str:
    """Return what is wrong with the first line of a file, where it is none of KITTI."""
    try:
        lines = [(number, line) for number, line in enumerate(text_lines(path), 1) if line.strip()]
    except DataError:
        return ""
    for number, line in lines[:1]:
        try:
            parse_line(line)
            fault = "its first column is no name of a class"
        except ValueError as error:
            fault = str(error)
        return f"`{path.name}` in `{path.parent.name}`, line {number}: {fault}"
    return ""


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _images_beside(every: list[str], folder: str, images: str) -> str | None:
    beside = {posixpath.basename(each).lower(): each for each in every if each and posixpath.dirname(each) == folder}
    if images:
        return images if images in every else beside.get(images.lower())
    return next((beside[name] for name in _IMAGES if name in beside), None)
