"""Shared parts of the detection importers: box checks, class numbering, and walks of image and label files."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from ziggurat.datasets.formats.shared.entries import is_folder_entry
from ziggurat.datasets.formats.shared.file_finder import RuleCounts, match_names
from ziggurat.datasets.formats.shared.text_files import decode_text
from ziggurat.datasets.importer import ImporterOption, Scan
from ziggurat.datasets.samples import SPLIT_NAMES, Problem, Sample
from ziggurat.errors import DataError, StateError
from ziggurat.records.schema import Schema

__all__ = [
    "ANNOTATION_FOLDERS",
    "DETECTION_SUFFIXES",
    "IMAGE_FOLDERS",
    "KEYS_NAME",
    "ZERO_SIZE_OPTION",
    "BoxRule",
    "NamedScan",
    "Pair",
    "clean_json",
    "first_file",
    "folders_below",
    "is_image",
    "lost_objects",
    "plain_number",
    "read_class_names",
    "read_keys",
    "same_names",
    "some_files",
    "split_of",
    "split_within",
    "text_lines",
    "walk_pairs",
    "whole_number",
]

ZERO_SIZE_OPTION: Final = ImporterOption(
    name="zero_size_boxes",
    type=str,
    default="drop",
    help="Whether boxes without area are dropped or kept; they are listed either way.",
    choices=("drop", "keep"),
)
_TOLERANCE_PX: Final = 0.5  # tools round corners, and some count the last pixel in
_LARGEST: Final = 1e9  # a coordinate beyond is damage
_DEEPEST: Final = 16  # recursion limit for details that came with a source
_IN_MEMORY_BYTES: Final = 32 << 20  # scanned samples beyond this wait on disk until the classes are known

_SAMPLE_FIELDS: Final = tuple(each.name for each in fields(Sample))
_PROBLEM_FIELDS: Final = tuple(each.name for each in fields(Problem))

Named = Sample | Problem
"""A sample whose label has names of classes (or -1) where numbers are to be, or a problem."""

DETECTION_SUFFIXES: Final = frozenset(
    (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
)
ANNOTATION_FOLDERS: Final = ("annotations", "annotation", "annots", "annot", "xmls", "xml", "labels", "label")
"""Names, in lower case, of folders with a label file for each image; the usual ones first."""

IMAGE_FOLDERS: Final = (
    "jpegimages", "images", "image", "imgs", "img", "pngimages", "pictures", "photos", "frames",
)  # fmt: skip
"""Names, in lower case, of folders of images that lie beside those of labels."""

KEYS_NAME: Final = "keys.jsonl"
"""File of our own exports: ``["path", "key"]`` for each image that a format cannot put at its key."""
_FEW_FOLDERS: Final = 20  # entered for a guess, so that a large source costs no more
_LARGEST_TEXT_BYTES: Final = 64 << 20  # of a label file; a larger one is something else


class NamedScan(Scan):
    """A scan of label files that give names of classes.

    Args:
        found: starts the walk; the ``class`` of an object is a name, or -1.
        known: names in the order of their numbers; None numbers the names that are found, sorted.
        details: of the schema.
    """

    def __init__(
        self,
        found: Callable[[], Iterator[Named]],
        known: Sequence[str] | None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self._found = found
        self._known = known
        self._details = dict(details or {})
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            raise StateError(
                "The scan has not ended, and its schema is there when it has.", advice="Iterate it to its end."
            )
        return self._schema

    def __iter__(self) -> Iterator[Sample | Problem]:
        if self._known is not None:
            yield from self._numbered(self._found(), self._known)
            return
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as kept:
            names = set()
            for each in self._found():
                if isinstance(each, Sample):
                    names.update(item["class"] for item in each.label if item["class"] != -1)
                elif each.class_name and each.objects:  # a class whose objects are all lost is a class
                    names.add(each.class_name)
                kept.write(_kept(each))
            kept.seek(0)
            yield from self._numbered(map(_unkept, kept), sorted(names))

    def _numbered(self, found: Iterable[Named], names: Sequence[str]) -> Iterator[Sample | Problem]:
        yield from same_names("classes", names)
        names = list(dict.fromkeys(names))
        numbers = {name: number for number, name in enumerate(names)}
        numbers_or_ignored: dict[Any, int] = {**numbers, -1: -1}
        for each in found:
            if isinstance(each, Problem):
                yield each
                continue
            for item in each.label:
                if item["class"] not in numbers_or_ignored:
                    name = item["class"]
                    reason = f"No class is called {name!r}."
                    yield Problem(key=each.key, kind="unknown-class", reason=reason, objects=1, class_name=name)
            label = [
                {**item, "class": numbers_or_ignored[item["class"]]}
                for item in each.label
                if item["class"] in numbers_or_ignored
            ]
            yield replace(each, label=label)
        self._schema = Schema(kind="detection", class_names=tuple(names), details=self._details)


class BoxRule:
    """Decides on boxes that cannot be right.

    Args:
        zero_size_boxes: ``drop`` or ``keep``.
    """

    def __init__(self, zero_size_boxes: str) -> None:
        self._keep = zero_size_boxes == "keep"

    def check(
        self,
        key: str,
        box: Sequence[float],
        where: str,
        size: tuple[float, float] | None = None,
        *,
        class_name: str = "",
        counts: bool = True,
    ) -> tuple[tuple[float, float, float, float] | None, list[Problem]]:
        """Return the box of an object with its corners in order, None where it cannot stay, and what is wrong with it.

        Args:
            key: of the sample.
            box: (left, top, right, bottom) in pixels.
            where: what names the object, such as "line 3".
            size: (width, height) of the image in pixels; None where it is unknown.
            class_name: of the object; empty where it is unknown.
            counts: whether the object is lost if its box cannot stay; crowds are not.
        """
        left, top, right, bottom = box
        shown = f"{where}: box {left:g}, {top:g} to {right:g}, {bottom:g}"
        if not all(math.isfinite(value) and abs(value) < _LARGEST for value in box):
            reason = f"{shown} is not made of numbers of pixels."
            return None, [Problem(key=key, kind="bad-box", reason=reason, objects=int(counts), class_name=class_name)]
        left, top, right, bottom = min(left, right), min(top, bottom), max(left, right), max(top, bottom)
        if right == left or bottom == top:
            problem = Problem(
                key=key,
                kind="zero-size-box",
                reason=f"{shown} has no area.",
                objects=int(counts and not self._keep),
                class_name=class_name,
            )
            return ((left, top, right, bottom) if self._keep else None), [problem]
        problems = []
        if (left, top, right, bottom) != tuple(box):
            reason = f"{shown} has its corners swapped: they are put in order."
            problems.append(Problem(key=key, kind="swapped-corners", reason=reason))
        beyond = size is not None and (right > size[0] + _TOLERANCE_PX or bottom > size[1] + _TOLERANCE_PX)
        if beyond or left < -_TOLERANCE_PX or top < -_TOLERANCE_PX:
            within = "" if size is None else f" of {size[0]:g} x {size[1]:g} pixels"
            problems.append(Problem(key=key, kind="box-outside", reason=f"{shown} leaves the image{within}."))
        return (left, top, right, bottom), problems


def lost_objects(
    key: str,
    kind: str,
    reason: str,
    class_names: Iterable[str],
    *,
    left_out: bool = False,
    why: str = "",
    split: str = "",
) -> Iterator[Problem]:
    """Yield the problems of a sample whose objects are lost, one for each class.

    Args:
        key: of the sample, or of the file that has its labels.
        kind: of the problems.
        reason: one sentence.
        class_names: of each object; empty where it is unknown.
        left_out: whether the sample is lost too.
        why: see ``Problem``.
        split: of the sample.
    """
    counts = Counter(class_names)
    for number, (name, count) in enumerate(counts.items() or [("", 0)]):
        is_first = number == 0
        yield Problem(
            key=key,
            kind=kind,
            reason=reason,
            left_out=left_out and is_first,
            objects=count,
            why=why,
            class_name=name,
            split=split,
        )


def whole_number(value: Any) -> int | None:
    """Return the whole number that a value means, as ``1``, ``1.0`` or ``"1"`` do; None for another value.

    Numbers with leading zeros are names.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = value.strip()
        return int(float(value)) if re.fullmatch(r"-?(0|[1-9]\d{0,14})(\.0*)?", value) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    return value if isinstance(value, int) else None


def plain_number(value: Any) -> float | None:
    """Return a number, also one that is written as a text; one that is too large becomes infinite; None for others."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    if isinstance(value, int) and abs(value) >= 10**300:
        return math.inf
    return float(value) if isinstance(value, int | float) else None


def same_names(key: str, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each name that stands for several classes, which become one.

    Args:
        key: of the problems, such as the file that has the names.
        names: of the classes as they are listed.
    """
    for name, count in Counter(names).items():
        if count > 1:
            reason = f"{count} classes are called {name!r}: they are one class."
            yield Problem(key=key, kind="same-name", reason=reason)


def clean_json(value: Any, depth: int = 0) -> Any:
    """Return a value of a stranger's file such that every store and page can hold it.

    Numbers that are infinite or none become None, whole numbers of more than 64 bits become a text that says so, halves
    of characters become question marks, and what is nested too deep becomes None.
    """
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {str(name): clean_json(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(each, depth + 1) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "a whole number of more than 64 bits"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def _kept(each: Named) -> bytes:
    names = _SAMPLE_FIELDS if isinstance(each, Sample) else _PROBLEM_FIELDS
    return json.dumps([getattr(each, name) for name in names]).encode() + b"\n"


def _unkept(line: bytes) -> Named:
    values = json.loads(line)
    if len(values) == len(_PROBLEM_FIELDS):
        return Problem(**dict(zip(_PROBLEM_FIELDS, values, strict=True)))
    given = dict(zip(_SAMPLE_FIELDS, values, strict=True))
    return Sample(**{**given, "parts": tuple(given["parts"])})


def split_of(name: str) -> str:
    """Return the split that a file or folder name means as a whole, such as ``valid`` or ``train2017``; else empty."""
    return SPLIT_NAMES.get(re.sub(r"[-_ ]?\d+$", "", name.strip().lower()), "")


def split_within(name: str) -> str:
    """Return the split that some word of a name means, such as ``instances_val2017``; else empty."""
    return next((split for word in re.split(r"[^a-zA-Z]+", name) if (split := split_of(word))), "")


def is_image(name: str) -> bool:
    """Return whether a file name ends as those of images do."""
    return os.path.splitext(name)[1].lower() in DETECTION_SUFFIXES and not name.startswith(".")


class Pair(NamedTuple):
    """An image and its label file, by the same name in two folders; one of them may be missing.

    Args:
        stem: path without the ending, below both folders.
        image: path below the source.
        size_bytes: of the image; None where it is a link that leads nowhere.
        label: path below the source.
    """

    stem: str
    image: str | None
    size_bytes: int | None
    label: str | None


def walk_pairs(
    root: Path, images: str, labels: str, suffix: str, inner: str = "", *, counts: RuleCounts | None = None
) -> Iterator[Pair]:
    """Yield images and label files by name, sorted, folder by folder; memory holds the names of one folder at a time.

    A label file without an image of its name belongs to the only image without one whose name differs in its Unicode
    form, in case, or by percent signs.

    Args:
        root: that paths are relative to.
        images: folder of images below it.
        labels: folder of label files below it; it may be the same.
        suffix: ending of label files, such as ``.xml``.
        inner: folder below both to begin with.
        counts: counts the pairs whose names differ.
    """
    yield from _walk_pairs(root, (images, labels), suffix, inner, set(), counts)


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
                elif depth and len(inner) < _FEW_FOLDERS and is_folder_entry(entry):
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
            raise DataError(f"The label file `{path.name}` is too large: it has more than {_LARGEST_TEXT_BYTES} bytes.")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"The label file `{path.name}` cannot be read: {error.strerror}.") from None
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


def _walk_pairs(
    root: Path, bases: tuple[str, str], suffix: str, inner: str, entered: set[str], counts: RuleCounts | None
) -> Iterator[Pair]:
    place = os.path.realpath(_joined(str(root), bases[0], inner))
    if place in entered:
        return
    entered.add(place)
    images: dict[str, list[os.DirEntry[str]]] = {}
    labels: dict[str, str] = {}
    folders: set[str] = set()
    for number, base in enumerate(dict.fromkeys(bases)):
        for entry in _listed(root, _joined(base, inner)):
            stem, ending = os.path.splitext(entry.name)
            if is_folder_entry(entry):
                folders |= set() if entry.name.startswith((".", "__MACOSX")) else {entry.name}
            elif number == 0 and is_image(entry.name):
                images.setdefault(stem, []).append(entry)
            if base == bases[1] and ending.lower() == suffix and not is_folder_entry(entry):
                labels[stem] = _joined(base, inner, entry.name)
    others = match_names(labels.keys() - images.keys(), images.keys() - labels.keys())
    for label_stem, (stem, rule) in sorted(others.items()):
        labels[stem] = labels.pop(label_stem)
        if counts is not None:
            counts.add(rule, labels[stem], _joined(bases[0], inner, images[stem][0].name))
    for stem in sorted({*images, *labels}):
        label = labels.get(stem)
        for entry in images.get(stem, ()):
            yield Pair(_joined(inner, stem), _joined(bases[0], inner, entry.name), _size_bytes(entry), label)
        if stem not in images:
            yield Pair(_joined(inner, stem), None, None, label)
    for name in sorted(folders):
        yield from _walk_pairs(root, bases, suffix, _joined(inner, name), entered, counts)


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
            names = sorted(entry.name for entry in listing if is_folder_entry(entry) and not entry.name.startswith("."))
    except OSError:
        return []
    return [f"{folder}/{name}" if folder else name for name in names]
