"""Folder layout of Pascal VOC datasets, and a reader for their XML files."""

from __future__ import annotations

import math
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ziggurat.datasets.formats.shared.detection_import import (
    ANNOTATION_FOLDERS,
    DETECTION_SUFFIXES,
    IMAGE_FOLDERS,
    clean_json,
    first_file,
    folders_below,
    is_image,
    read_class_names,
    split_of,
)
from ziggurat.datasets.formats.shared.entries import is_folder_entry
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = ["XML_ENCODING", "SplitLists", "VocFolder", "VocObject", "read_annotation", "voc_folders"]

_MASKS: Final = ("segmentationclass",)
_LISTS: Final = ("train", "val", "test", "trainval")

_LARGEST_BYTES: Final = 16 << 20  # of an annotation; a larger file is something else
XML_ENCODING: Final = re.compile(rb"""\s*<\?xml[^>]*?encoding=["']([A-Za-z0-9._-]+)["']""")
"""Start of an XML file, up to its encoding."""

_OUTLINES: Final = ("robndbox", "polygon")
_CORNERS: Final = ("xmin", "ymin", "xmax", "ymax")
_OWN_FIELDS: Final = frozenset(("name", "bndbox", "difficult"))
_DEEPEST: Final = 8  # recursion limit for fields of tools that nest them


@dataclass(frozen=True, kw_only=True)
class VocFolder:
    """One folder in the form of VOC; a source may have several, such as ``VOC2007`` and ``VOC2012``.

    Args:
        path: below the source; empty for the source itself.
        annotations: folder of XML files, below the source; where there is none, that of the images.
        image_folder: folder of images, below the source; the same where both lie together.
        masks: folder of PNG masks, below the source; empty where there is none.
    """

    path: str
    annotations: str
    image_folder: str
    masks: str = ""

    @property
    def split(self) -> str:
        """The split that its name means, or empty."""
        return split_of(posixpath.basename(self.path))


def voc_folders(root: Path, annotations: str = "", images: str = "") -> list[VocFolder]:
    """Return the VOC folders of a source down to two folders deep, in order.

    Args:
        root: the source.
        annotations: folder of XML files, below the source; empty to look for it.
        images: folder of images, below the source; empty to look for it.
    """
    if annotations:
        return [VocFolder(path="", annotations=annotations, image_folder=images or _beside(root, "", annotations))]
    found = []
    inside: set[str] = set()
    for folder in folders_below(root, 2):
        if folder in inside or any(folder.startswith(f"{each}/") for each in inside):
            continue
        own = _annotations(root, folder)
        masks = _child(root, folder, _MASKS)
        if masks or own:
            image_folder = images or _beside(root, folder, own or masks)
            own = own or image_folder
            inside |= {each for each in (own, masks, image_folder) if each != folder}
            found.append(VocFolder(path=folder, annotations=own, image_folder=image_folder, masks=masks))
        elif not own and first_file(root / folder, ".xml", depth=0) and _has_image(root / folder):
            found.append(VocFolder(path=folder, annotations=folder, image_folder=images or folder))
    return found


class SplitLists:
    """The lists in ``ImageSets``: which split each stem belongs to; held in memory.

    ``train``, ``val`` and ``test`` win over ``trainval``, which means ``train``. Of a stem in several of them, the
    later of train, val, test counts, so that nothing of a test split is trained on.

    Args:
        root: the source.
        folder: VOC folder in it.
        kind: ``Main`` or ``Segmentation``.
    """

    def __init__(self, root: Path, folder: str, kind: str) -> None:
        self.problems: list[Problem] = []
        self._path = posixpath.join(_child(root, folder, ("imagesets",)), kind)
        self._splits: dict[str, str] = {}
        self._waiting: set[str] = set()
        exact: dict[str, str] = {}
        for split in _LISTS:
            for stem in _stems(root / self._path / f"{split}.txt"):
                if split == "trainval":
                    self._splits.setdefault(stem, "train")
                    continue
                before = exact.setdefault(stem, split)
                if before != split:
                    reason = f"It is in {before}.txt and in {split}.txt; {split} counts."
                    self.problems.append(Problem(key=stem, kind="two-splits", reason=reason))
                self._splits[stem] = exact[stem] = split
        self._waiting.update(self._splits)

    def __contains__(self, stem: str) -> bool:
        return stem in self._splits

    def __len__(self) -> int:
        return len(self._splits)

    def split(self, stem: str) -> str:
        """Return the split of a stem, empty where no list has it."""
        self._waiting.discard(stem)
        return self._splits.get(stem, "")

    def missing(self) -> Iterator[Problem]:
        """Yield the stems that were not requested: there is no image of that name."""
        for stem in sorted(self._waiting):
            reason = f"{self._path} lists it, and there is no image of that name."
            split = self._splits[stem]
            yield Problem(key=stem, kind="no-picture", reason=reason, left_out=True, split=split)


def _stems(path: Path) -> Iterator[str]:
    for line in read_class_names(path):
        stem, ending = os.path.splitext(line)
        yield stem if ending.lower() in DETECTION_SUFFIXES else line


def _child(root: Path, folder: str, names: Sequence[str]) -> str:
    """Return the folder of the first of some names, whatever its case; empty where there is none."""
    try:
        with os.scandir(root / folder) as listing:
            known = {entry.name.lower(): entry.name for entry in sorted(listing, key=_name) if is_folder_entry(entry)}
    except OSError:
        return ""
    return next((posixpath.join(folder, known[name]) for name in names if name in known), "")


def _annotations(root: Path, folder: str) -> str:
    """Return the folder of XML files in a folder, by its name; empty where there is none."""
    named = (_child(root, folder, [name]) for name in ANNOTATION_FOLDERS)
    return next((path for path in named if path and first_file(root / path, ".xml")), "")


def _beside(root: Path, folder: str, annotations: str) -> str:
    return _child(root, folder, IMAGE_FOLDERS) or (annotations if _has_image(root / annotations) else folder)


def _has_image(folder: Path) -> bool:
    try:
        with os.scandir(folder) as listing:
            return any(is_image(entry.name) for entry in listing)
    except OSError:
        return False


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


@dataclass(frozen=True)
class VocObject:
    """An object as it is written.

    Args:
        name: of its class.
        corners: xmin, ymin, xmax, ymax; None where it has no box of four numbers.
        difficult: whether it does not count in an evaluation.
        details: its other fields, such as ``pose``, ``truncated``, ``occluded`` and ``part``.
        around: element of an outline or a rotated box that the corners are around; empty where they were written.
    """

    name: str
    corners: tuple[float, float, float, float] | None
    difficult: bool
    details: dict[str, Any] = field(default_factory=dict)
    around: str = ""


@dataclass(frozen=True)
class VocAnnotation:
    """What an XML file says.

    Args:
        size: (width, height) of the image in pixels; None where it is not said.
        objects: in the order of the file.
    """

    size: tuple[float, float] | None
    objects: list[VocObject]


def read_annotation(path: Path) -> VocAnnotation:
    """Return what an XML file says.

    Raises:
        DataError: where it cannot be read, is no annotation, or has entities, which could grow without end.
    """
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise _unreadable(path, f"it has more than {_LARGEST_BYTES} bytes")
        tree = fromstring(_unicode(path.read_bytes()), forbid_external=True)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except DefusedXmlException as error:
        raise _unreadable(path, f"it has entities or external parts ({type(error).__name__})") from None
    except (ParseError, ValueError, LookupError) as error:  # the last two: of an unknown encoding
        raise _unreadable(path, str(error)) from None
    if tree.tag != "annotation":
        raise _unreadable(path, f"its outermost element is <{tree.tag[:40]}>, not <annotation>")
    size = _numbers(tree.find("size"), ("width", "height"))
    known = size is not None and min(size) > 0
    return VocAnnotation(
        (size[0], size[1]) if size and known else None, [_object(each) for each in tree.findall("object")]
    )


def _unicode(content: bytes) -> bytes:
    """Return an XML file in UTF-8 where its encoding is one that the parser cannot read, such as GBK.

    Raises:
        LookupError: where there is no such encoding.
        UnicodeDecodeError: where the file has another one.
    """
    declared = XML_ENCODING.match(content)
    if declared is None or declared[1].lower().startswith((b"utf", b"iso-8859", b"latin", b"us-ascii", b"windows-12")):
        return content
    text = content[declared.end() :].decode(declared[1].decode())
    return b'<?xml version="1.0" encoding="utf-8"' + text.encode()


def _object(element: Element) -> VocObject:
    corners = _numbers(element.find("bndbox"), _CORNERS)
    around = "" if corners else next((name for name in _OUTLINES if element.find(name) is not None), "")
    if around:
        corners = _box_around(element, around)
    details: dict[str, Any] = {}
    for child in element:
        if child.tag not in _OWN_FIELDS:
            _add(details, child, 0)
    return VocObject(
        name=clean_json((element.findtext("name") or "").strip()),
        corners=(corners[0], corners[1], corners[2], corners[3]) if corners else None,
        difficult=(element.findtext("difficult") or "").strip().lower() in ("1", "true"),
        details=details,
        around=around if corners else "",
    )


def _box_around(element: Element, outline: str) -> list[float] | None:
    """Return left, top, right and bottom of what is around a rotated box or an outline; None where it has no points."""
    found = element.find(outline)
    rotated = _numbers(found, ("cx", "cy", "w", "h", "angle"))
    if rotated is not None:
        x, y, width, height, angle = rotated  # radians
        half_width = (width * abs(math.cos(angle)) + height * abs(math.sin(angle))) / 2
        half_height = (width * abs(math.sin(angle)) + height * abs(math.cos(angle))) / 2
        return [x - half_width, y - half_height, x + half_width, y + half_height]
    points: dict[str, list[float]] = {"x": [], "y": []}
    for child in () if found is None else found.iter():
        if re.fullmatch(r"[xy]\d*", child.tag):
            try:
                points[child.tag[0]].append(float(child.text or ""))
            except ValueError:
                return None
    x_values, y_values = points["x"], points["y"]
    if not x_values or len(x_values) != len(y_values):
        return None
    return [min(x_values), min(y_values), max(x_values), max(y_values)]


def _add(fields: dict[str, Any], element: Element, depth: int) -> None:
    """Put an element into a dict; one that stands there already makes a list."""
    value: Any = (element.text or "").strip()
    if len(element) and depth < _DEEPEST:
        value = {}
        for child in element:
            _add(value, child, depth + 1)
    elif value in ("0", "1"):
        value = int(value)
    if element.tag not in fields:
        fields[element.tag] = value
    elif isinstance(fields[element.tag], list):
        fields[element.tag].append(value)
    else:
        fields[element.tag] = [fields[element.tag], value]


def _numbers(element: Element | None, names: tuple[str, ...]) -> list[float] | None:
    if element is None:
        return None
    try:
        return [float((element.findtext(name) or "").strip()) for name in names]
    except ValueError:
        return None


def _unreadable(path: Path, reason: str) -> DataError:
    return DataError(f"`{path.name}` cannot be read as an annotation of VOC: {reason}.")
