"""Shared importer for the files of labeling tools: each names images and the objects in them."""

from __future__ import annotations

import json
import math
import os
import pickle
import posixpath
import re
import tempfile
from abc import abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar, Final

import numpy as np

from ziggurat.datasets.formats.shared.detection_import import (
    ANNOTATION_FOLDERS,
    ZERO_SIZE_OPTION,
    BoxRule,
    NamedScan,
    is_image,
    lost_objects,
    plain_number,
    split_of,
)
from ziggurat.datasets.formats.shared.file_finder import FileFinder, FoundFile, files_below
from ziggurat.datasets.formats.shared.folder_walk import has_image_name
from ziggurat.datasets.formats.shared.frames import FRAME_OPTIONS, Frame, FrameRule
from ziggurat.datasets.formats.shared.image_finder import image_finder, split_of_file
from ziggurat.datasets.formats.shared.looks import file_ends, files_with, look_at
from ziggurat.datasets.image_size import stored_size_of_file
from ziggurat.datasets.importer import FilePartReader, Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import SPLITS, Problem, Sample
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject
from ziggurat.records.run_lengths import run_lengths

__all__ = [
    "ToolImage",
    "ToolImporter",
    "ToolObject",
    "corners",
    "ellipse",
    "points_of",
    "read_json",
    "size_of",
    "turned_box",
]

_IN_MEMORY_BYTES: Final = 32 << 20  # what files say of images waits on disk beyond this
_LARGEST_BYTES: Final = 1 << 30  # of a file that is read whole
_LOOKED_AT: Final = 8  # files of an ending, for a guess
_CORNERS: Final = 36  # of an outline that stands for an ellipse

Box = tuple[float, float, float, float]
Outline = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ToolObject:
    """One object as a tool's file says it.

    Args:
        name: of its class; empty where it has none.
        where: what names the object, such as "shape 3".
        box: (left, top, right, bottom) in pixels, or as shares of the image; None for that around outlines and mask.
        polygons: outlines, each as (x1, y1, x2, y2, …).
        mask: (left, top, pixels of shape (H, W)); None for none.
        lost: why it cannot come, such as "they are points"; empty where it can.
        note: what is not as the tool has it, such as "a rotated box"; empty for nothing.
        difficult: whether it is hard to see.
        crowd: whether it stands for many objects.
        details: what only the tool knows, as JSON values.
    """

    name: str
    where: str
    box: Box | None = None
    polygons: tuple[Outline, ...] = ()
    mask: tuple[int, int, np.ndarray] | None = None
    lost: str = ""
    note: str = ""
    difficult: bool = False
    crowd: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def limits(self) -> Box | None:
        """Its box, else that around its outlines or its mask."""
        if self.box is not None:
            return self.box
        if self.polygons:
            x, y = [[each for one in self.polygons for each in one[start::2]] for start in (0, 1)]
            return min(x), min(y), max(x), max(y)
        if self.mask is not None and self.mask[2].any():
            left, top, pixels = self.mask
            rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
            return (
                float(left + columns[0]),
                float(top + rows[0]),
                float(left + columns[-1] + 1),
                float(top + rows[-1] + 1),
            )
        return None


@dataclass(frozen=True, kw_only=True)
class ToolImage:
    """What a tool's file says of one image; a file may speak of an image several times.

    Args:
        names: of the image's file as they are written; the first that is there counts.
        objects: in the image.
        size: (width, height) in pixels as the file says it; None where it does not.
        split: split that the file names; empty if it names none.
        shares: whether boxes and outlines are shares of the image's width and height, not pixels.
    """

    names: tuple[str, ...]
    objects: tuple[ToolObject, ...] = ()
    size: tuple[float, float] | None = None
    split: str = ""
    shares: bool = False


class ToolImporter(Importer):
    """Base of the importers for tools' files.

    Args (class attributes):
        markers: endings of the files.
        marks: patterns that are all in the first or last 64 KiB of a file.
        one_each: whether each image has its own file beside it; an image without one is a sample without objects.
    """

    kinds = ("detection",)
    options = (
        ImporterOption(name="classes", type=list, default=[], help="Names of classes, in order. Left out: as found."),
        ImporterOption(
            name="images", type=str, default="", help="Folder of the images, below the source. Left out: looked for."
        ),
        ZERO_SIZE_OPTION,
        *FRAME_OPTIONS,
    )
    marks: ClassVar[tuple[bytes, ...]] = ()
    one_each: ClassVar[bool] = False
    keeps_unlisted: ClassVar[bool] = False

    @abstractmethod
    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        """Yield what a file says of images, and what is wrong with it; nothing where it has another form.

        Args:
            root: of the source.
            path: of the file, below it.
            options: of the importer.

        Raises:
            DataError: where it cannot be read, or an option must be set: ``details["field"]`` names it then.
        """

    def class_names(self, root: Path, paths: Sequence[str]) -> list[str]:
        """Return the names of classes that the files list, used or not."""
        return []

    def has_form(self, path: Path) -> bool:
        """Tell whether a file is one of the tool's, from its start and end."""
        ends = file_ends(path)
        return bool(ends) and all(re.search(mark, ends) for mark in self.marks)

    def guess(self, source: Path) -> Guess | None:
        root = _root_of(source)
        if look_at(source).is_there:
            paths = list(files_with(source, self.markers))
        else:
            paths = (
                [source.absolute().relative_to(root).as_posix()] if source.name.lower().endswith(self.markers) else []
            )
        first = next((path for path in paths[:_LOOKED_AT] if self.has_form(root / path)), None)
        if first is None or not any(has_image_name(path) for path in files_with(root, _IMAGE_ENDINGS)):
            return None
        reason = f"files of {self.title.partition(' (')[0]}, such as {first}, beside images."
        return Guess(format=self.name, confidence=0.98, reason=reason, kind="detection")

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        root = _root_of(source)
        if not look_at(source).is_there:
            return ToolScan(self, root, [source.absolute().relative_to(root).as_posix()], options)
        paths = [path for path in files_below(root) if path.lower().endswith(self.markers)]
        if not self.one_each:
            paths = [path for path in paths if self.has_form(root / path)]
        return ToolScan(self, root, paths, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        return FilePartReader(_root_of(source))


_IMAGE_ENDINGS: Final = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def _root_of(source: Path) -> Path:
    if look_at(source).is_there:
        return source
    folder = source.absolute().parent
    return folder.parent if folder.name.lower() in ANNOTATION_FOLDERS else folder


class ToolScan(NamedScan):
    """A scan of tools' files: they are read once, and what they say of an image comes together.

    Args:
        tool: the importer.
        root: of the source.
        paths: of the files, below it.
        options: of the importer.
    """

    def __init__(self, tool: ToolImporter, root: Path, paths: Sequence[str], options: Mapping[str, Any]) -> None:
        super().__init__(lambda: iter(()), None)
        if not paths:
            raise DataError(
                f"A source of {tool.title} has files of that form.",
                received=f"`{root}`, without one among its files that end in {' or '.join(tool.markers)}",
            )
        self._tool, self._root, self._paths = tool, root, paths
        self._options = options
        self._rule, self._frames = BoxRule(options["zero_size_boxes"]), FrameRule(options)

    def __iter__(self) -> Iterator[Sample | Problem]:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as texts:
            said = _Said(texts)
            yield from self._read(said)
            names = self._options["classes"]
            if not names:
                listed = list(dict.fromkeys(self._tool.class_names(self._root, self._paths)))
                names = listed + sorted(said.classes - set(listed))
            yield from self._numbered(self._samples(said), names)

    def _read(self, said: _Said) -> Iterator[Problem]:
        """Read all files, and yield what is wrong with them."""
        finders: dict[str, FileFinder] = {}
        for number, path in enumerate(self._paths):
            finder = self._finder(path, finders)
            try:
                for each in self._tool.images(self._root, path, self._options):
                    if isinstance(each, Problem):
                        yield each
                    else:
                        file = next(filter(None, (finder.find(name) for name in self._names(path, each))), None)
                        said.keep(number, path, each, file, finder)
            except DataError as error:
                if error.details.get("field"):
                    raise
                said.damaged.add(_stem(path))
                yield Problem(key=path, kind="unreadable", reason=str(error), left_out=True)
        counts = {id(finder.counts): finder.counts for finder in finders.values()}
        for counted in counts.values():
            yield from counted.problems(self._tool.title)

    def _finder(self, path: str, finders: dict[str, FileFinder]) -> FileFinder:
        """Return what finds the images of a file; one lists the source for all where each image has its file."""
        folder = "" if self._tool.one_each else path
        if folder not in finders:
            images = self._options["images"]
            if self._tool.one_each:
                finders[folder] = FileFinder(self._root, [images.strip("/")] if images else [""])
            else:
                finders[folder] = image_finder(self._root, path, split_of_file(path), images)
        return finders[folder]

    def _names(self, path: str, each: ToolImage) -> Iterator[str]:
        for name in each.names:
            plain = name.replace("\\", "/")
            is_relative = not plain.startswith("/") and "://" not in plain and ":" not in plain[:2]
            if self._tool.one_each and is_relative and not self._options["images"]:
                yield posixpath.join(posixpath.dirname(path), plain)
            else:
                yield name

    def _samples(self, said: _Said) -> Iterator[Sample | Problem]:
        for name, places in said.missing.items():
            entries = [said.entry(place) for place in places]
            names = [one.name for _, each in entries for one in each.objects]
            path = self._paths[entries[0][0]]
            reason = f"{path} names this image, and {said.why_missing[name]}."
            split = entries[0][1].split or split_of_file(path)
            yield from lost_objects(name, "no-picture", reason, names, left_out=True, split=split)
        for key, places in said.found.items():
            yield from self._sample(key, said.sizes[key], [said.entry(place) for place in places])
        yield from self._unlisted(said)

    def _sample(self, key: str, size_bytes: int, entries: list[tuple[int, ToolImage]]) -> Iterator[Sample | Problem]:
        label: list[dict[str, Any]] = []
        paths = list(dict.fromkeys(self._paths[number] for number, _ in entries))
        splits = {each.split or self._split_of(self._paths[number]) for number, each in entries} - {""}
        split = max(splits, key=SPLITS.index, default="")
        if len(splits) > 1:
            reason = f"It is in {' and in '.join(sorted(splits, key=SPLITS.index))}; {split} counts."
            yield Problem(key=key, kind="two-splits", reason=reason)
        if len(paths) > 1:
            reason = f"{', '.join(paths[:3])} name it: it is one sample, and what they say alike counts once."
            yield Problem(key=key, kind="duplicate-key", reason=reason)
        kept: Counter[str] = Counter()
        own: Counter[str] = Counter()
        last = entries[0][0]
        for number, each in entries:
            if number != last:
                own, last = Counter(), number
            for found in self._objects(key, each):
                if isinstance(found, Problem):
                    yield found
                    continue
                alike = json.dumps([found["class"], found["box"], found.get("polygons")])
                own[alike] += 1
                if own[alike] > kept[alike]:
                    kept[alike] += 1
                    label.append(found)
        if not any(each.objects for _, each in entries):
            yield Problem(key=key, kind="no-label", reason=f"{paths[0]} has no object in it.")
        yield Sample(key=key, parts=(key,), label=label, split=split, size_bytes=size_bytes)

    def _split_of(self, path: str) -> str:
        if not self._tool.one_each:
            return split_of_file(path)
        return next((split for folder in path.split("/")[:-1] if (split := split_of(folder))), "")

    def _objects(self, key: str, each: ToolImage) -> Iterator[dict[str, Any] | Problem]:
        image = partial(stored_size_of_file, self._root / key)
        frame = self._frames.of(key, image, each.size, labelled=bool(each.objects))
        yield from frame.problems
        for one in each.objects:
            shown = f"{one.where} ({one.name or 'without a name'})"
            if one.lost or not one.name:
                kind = "no-box" if one.lost else "unknown-class"
                why = one.lost or "they have no name"
                reason = f"{shown} does not come: {why}."
                yield Problem(key=key, kind=kind, reason=reason, objects=1, why=why, class_name=one.name)
                continue
            limits = one.limits
            if limits is None or (each.shares and frame.size is None):
                reason = f"{shown} has no box of four numbers in pixels."
                yield Problem(key=key, kind="bad-box", reason=reason, objects=1, class_name=one.name)
                continue
            if one.note:
                reason = f"{shown} is {one.note}: its outline and the upright box around it are taken."
                yield Problem(key=key, kind="box-of-outline", reason=reason)
            by = frame.size if each.shares and frame.size else (1.0, 1.0)
            box, problems = self._rule.check(
                key, _times(limits, by), shown, frame.size, class_name=one.name, counts=not one.crowd
            )
            yield from problems
            if box is not None:
                yield self._labelled(one, box, by, frame)

    def _labelled(self, one: ToolObject, box: Box, by: tuple[float, float], frame: Frame) -> dict[str, Any]:
        found = ImageObject(
            class_number=0,
            box=box,
            polygons=tuple(_times(outline, by) for outline in one.polygons),
            mask=None if one.mask is None or frame.size is None else _whole_mask(one.mask, frame.size),
            difficult=one.difficult,
            crowd=one.crowd,
            details=one.details,
        )
        return {**frame.moved(found).as_json(), "class": one.name}

    def _unlisted(self, said: _Said) -> Iterator[Sample | Problem]:
        """Yield the images that no file names, in the folders of those that one does."""
        folders = {posixpath.dirname(key) for key in said.found}
        for path in files_below(self._root):
            if path in said.found or posixpath.dirname(path) not in folders or not is_image(path.rpartition("/")[2]):
                continue
            if _stem(path) in said.damaged or path in said.damaged:
                continue
            if not self._tool.keeps_unlisted:
                reason = f"No file of {self._tool.title} names it."
                yield Problem(key=path, kind="not-listed", reason=reason, left_out=True)
                continue
            try:
                size_bytes = (self._root / path).stat().st_size
            except OSError:
                reason = "It is a link that leads nowhere."
                yield Problem(key=path, kind="no-picture", reason=reason, left_out=True)
                continue
            yield Problem(key=path, kind="no-label", reason=f"No file of {self._tool.title} names it.")
            yield Sample(key=path, parts=(path,), label=[], split=self._split_of(path), size_bytes=size_bytes)


class _Said:
    """What files say of images, in a temporary file; in memory is where it begins."""

    def __init__(self, texts: IO[bytes]) -> None:
        self._texts = texts
        self.classes: set[str] = set()
        self.found: dict[str, array[int]] = {}
        self.sizes: dict[str, int] = {}
        self.missing: dict[str, array[int]] = {}
        self.why_missing: dict[str, str] = {}
        self.damaged: set[str] = set()

    def keep(self, number: int, path: str, each: ToolImage, file: FoundFile | None, finder: FileFinder) -> None:
        """Keep what a file says of an image."""
        self.classes.update(one.name for one in each.objects if one.name)
        if file is not None:
            places = self.found.setdefault(file.path, array("q"))
            self.sizes[file.path] = file.size_bytes
        else:
            name = each.names[0] if each.names and each.names[0] else path
            name = name[:200].encode("utf-8", "replace").decode()
            if name not in self.missing:
                several = finder.several(name)
                self.why_missing[name] = f"it could be any of {several}" if several else "it is not there"
            places = self.missing.setdefault(name, array("q"))
        places.append(self._texts.seek(0, os.SEEK_END))
        pickle.dump((number, each), self._texts, protocol=5)

    def entry(self, place: int) -> tuple[int, ToolImage]:
        """Return number of the file and what it says."""
        self._texts.seek(place)
        return pickle.load(self._texts)


# ---- readers


def read_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        DataError: where it cannot be read, is damaged, or has more than 1 GiB.
    """
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise DataError("A JSON file of labels has at most 1 GiB.", received=f"`{path.name}`")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"`{path.name}` cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"`{path.name}` is not JSON: {str(error)[:200]}.") from None


def size_of(width: Any, height: Any) -> tuple[float, float] | None:
    """Return a size in pixels; None where the two are none."""
    numbers = plain_number(width), plain_number(height)
    if numbers[0] is None or numbers[1] is None or not 0 < min(numbers) <= max(numbers) < 1e9:  # type: ignore[type-var]
        return None
    return numbers[0], numbers[1]


def points_of(value: Any) -> Outline | None:
    """Return points, a list of pairs, as (x1, y1, x2, y2, …); None where they are none."""
    if not isinstance(value, list | tuple):
        return None
    found: list[float] = []
    for point in value:
        if not isinstance(point, list | tuple) or len(point) < 2:
            return None
        for each in point[:2]:
            number = plain_number(each)
            if number is None or not abs(number) < 1e9:
                return None
            found.append(number)
    return tuple(found)


def corners(points: Sequence[float]) -> Box | None:
    """Return the box of two corners in any order, as people draw it; None for other points."""
    if len(points) != 4:
        return None
    (left, right), (top, bottom) = sorted(points[::2]), sorted(points[1::2])
    return left, top, right, bottom


def ellipse(x: float, y: float, radii: tuple[float, float], degrees: float = 0.0) -> Outline:
    """Return the outline of an ellipse around (x, y)."""
    angles = np.linspace(0, 2 * math.pi, _CORNERS, endpoint=False)
    points = np.stack([radii[0] * np.cos(angles), radii[1] * np.sin(angles)], axis=1)
    return tuple((points @ _turn(degrees) + (x, y)).ravel().tolist())


def turned_box(box: Box, degrees: float, pivot: tuple[float, float] | None = None) -> Outline:
    """Return the outline of a box that is turned clockwise around its middle or another point."""
    left, top, right, bottom = box
    middle = np.asarray(pivot or ((left + right) / 2, (top + bottom) / 2))
    corners = np.asarray([(left, top), (right, top), (right, bottom), (left, bottom)], float) - middle
    return tuple((corners @ _turn(degrees) + middle).ravel().tolist())


def _turn(degrees: float) -> np.ndarray:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.asarray([(cosine, sine), (-sine, cosine)])


def _times(values: Iterable[float], by: tuple[float, float]) -> Any:
    return tuple(value * by[place % 2] for place, value in enumerate(values))


def _whole_mask(mask: tuple[int, int, np.ndarray], size: tuple[float, float]) -> dict[str, Any]:
    """Return a mask of a whole image; what lies outside is cut off."""
    left, top, pixels = mask
    whole = np.zeros((round(size[1]), round(size[0])), np.uint8)
    rows = slice(max(0, -top), max(0, whole.shape[0] - top))
    columns = slice(max(0, -left), max(0, whole.shape[1] - left))
    part = pixels[rows, columns]
    whole[max(0, top) : max(0, top) + part.shape[0], max(0, left) : max(0, left) + part.shape[1]] = part
    return run_lengths(whole)


def _stem(path: str) -> str:
    return os.path.splitext(path)[0]
