"""Importer for YOLO datasets: a text file for each image, with boxes or outlines relative to the image size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import (
    ANNOTATION_FOLDERS,
    ZERO_SIZE_OPTION,
    BoxRule,
    Pair,
    folders_below,
    read_keys,
    split_of,
    text_lines,
)
from ziggurat.datasets.formats.yolo.layout import (
    looks_like_yolo,
    lost_entries,
    overlapping,
    read_description,
    walk_folder,
    yolo_folders,
)
from ziggurat.datasets.image_size import image_size
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, StateError
from ziggurat.records.objects import ImageObject, objects_to_json
from ziggurat.records.schema import Schema

__all__ = ["YoloImporter"]

_MOST_CLASSES: Final = 100_000
_OTHER_TEXTS: Final = frozenset(
    ("classes", "names", "labels", "train", "val", "valid", "test", "readme", "license", "licence", "readme.dataset",
     "readme.roboflow", "obj")
)  # fmt: skip


class YoloImporter(Importer):
    """YOLO: ``images/train``, ``labels/train``, ``data.yaml``; also one folder with ``classes.txt``."""

    name = "yolo"
    title = "YOLO (text)"
    kinds = ("detection",)
    options = (
        ImporterOption(
            name="labels", type=str, default="labels", help="Name of the folders with labels, such as `labels-seg`."
        ),
        ImporterOption(name="images", type=str, default="", help="Folder of the images. Left out: looked for."),
        ImporterOption(
            name="classes",
            type=list,
            default=[],
            help="Names of classes, in order. Left out: those of the YAML file or classes.txt.",
        ),
        ZERO_SIZE_OPTION,
    )

    def guess(self, source: Path) -> Guess | None:
        if not source.is_dir():
            return None
        for labels in _label_names(source):
            description = read_description(source, labels)
            folders = yolo_folders(source, description, labels)
            found = next((each for each in folders if looks_like_yolo(source, each)), None)
            if found is not None:
                usual = labels == "labels"
                named = 0.95 if description.splits else 0.9 if description.names else 0.7
                reason = f"Label files with relative boxes in {found.labels or found.image_place or 'the folder'}"
                reason += f", and names of classes in {description.file}." if description.file else "."
                options = {} if usual else {"labels": labels}
                confidence = named if usual else 0.6
                return Guess(format=self.name, confidence=confidence, reason=reason, kind="detection", options=options)
        return None

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        return _YoloScan(source, options)


class _YoloScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._root = source
        self._labels = options["labels"]
        self._description = read_description(source, self._labels)
        self._names = list(options["classes"]) or list(self._description.names)
        self._folders = yolo_folders(source, self._description, self._labels, options["images"])
        if not self._folders:
            raise DataError(
                "A YOLO dataset has images and text files of the same names, side by side or in `images` and "
                f"`{self._labels}`.",
                received=f"`{source}`, down to two folders deep",
                advice="Name the folders with the options `images` and `labels`.",
            )
        self._rule = BoxRule(options["zero_size_boxes"])
        self._largest = -1
        self._ended = False

    @property
    def schema(self) -> Schema:
        if not self._ended:
            raise StateError("The schema of a scan is there when the scan has ended.", advice="Iterate it to its end.")
        names = self._names or [f"class {number}" for number in range(self._largest + 1)]
        return Schema(kind="detection", class_names=tuple(names))

    def __iter__(self) -> Iterator[Sample | Problem]:
        keys = read_keys(self._root)
        seen: set[str] | None = set() if overlapping(self._folders) else None
        for entry in lost_entries(self._root, self._description):
            name = self._description.file
            yield Problem(key=name, kind="no-picture", reason=f"It names `{entry}`, which the source does not have.")
        for folder in self._folders:
            for pair in walk_folder(self._root, folder, self._labels):
                if pair.image is None or pair.size_bytes is None:
                    if pair.image or not _is_other_text(pair.stem):
                        yield _no_image(pair)
                    continue
                if seen is not None and pair.image in seen:
                    reason = "It belongs to two splits or is listed twice; the first counts."
                    yield Problem(key=pair.image, kind="duplicate-key", reason=reason, left_out=True)
                    continue
                if seen is not None:
                    seen.add(pair.image)
                split = folder.split or split_of(pair.stem.partition("/")[0])
                yield from self._sample(pair, keys.get(pair.image, pair.image), split)
        self._ended = True

    def _sample(self, pair: Pair, key: str, split: str) -> Iterator[Sample | Problem]:
        assert pair.image is not None
        label: list[ImageObject] = []
        try:
            lines = text_lines(self._root / pair.label) if pair.label else []
            size = image_size(self._root / pair.image)
        except (DataError, ValueError) as error:
            yield Problem(key=key, kind="unreadable", reason=str(error), left_out=True)
            return
        if pair.label is None:
            yield Problem(key=key, kind="no-label", reason="It has no label file.")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            found, problem = self._object(key, line, f"{pair.label}, line {number}", size)
            if problem:
                yield problem
            if found:
                label.append(found)
        yield Sample(
            key=key, parts=(pair.image,), label=objects_to_json(label), split=split, size_bytes=pair.size_bytes
        )

    def _object(
        self, key: str, line: str, where: str, size: tuple[int, int]
    ) -> tuple[ImageObject | None, Problem | None]:
        try:
            found = parse_line(line, *size)
        except ValueError as error:
            return None, Problem(key=key, kind="bad-line", reason=f"{where}: {error}.")
        number = found.class_number
        if not 0 <= number < (len(self._names) or _MOST_CLASSES):
            named = f"{len(self._names)} classes have names" if self._names else "classes are numbered from 0"
            return None, Problem(key=key, kind="unknown-class", reason=f"{where}: class {number}, and {named}.")
        stays, problem = self._rule.check(key, found.box, where, size)
        if not stays:
            return None, problem
        self._largest = max(self._largest, number)
        return found, problem


def _label_names(source: Path) -> list[str]:
    """Return names of folders that may hold labels, in the source or in its folders of splits; the usual one first."""
    places = [source, *(source / path for path in folders_below(source, 1) if path and split_of(path))]
    found = {path.name for place in places for path in place.iterdir() if path.is_dir()}
    others = sorted(name for name in found if name.lower().startswith("label") or name.lower() in ANNOTATION_FOLDERS)
    return list(dict.fromkeys(["labels", *others]))


def _is_other_text(stem: str) -> bool:
    """Whether a text file without an image is one that lies in such folders for other reasons."""
    return stem.rpartition("/")[2].lower() in _OTHER_TEXTS


def _no_image(pair: Pair) -> Problem:
    reason = "It has no image of the same name." if pair.label else "There is no such image."
    return Problem(key=pair.label or pair.image or pair.stem, kind="no-picture", reason=reason, left_out=True)


def parse_line(line: str, width: int, height: int) -> ImageObject:
    """Return the object of a line: ``class x y width height``, maybe with a score, or ``class x1 y1 x2 y2 x3 y3 …``.

    Args:
        line: numbers relative to the image; (x, y) of a box is its middle.
        width: of the image in pixels.
        height: of the image in pixels.

    Raises:
        ValueError: where it is something else.
    """
    words = line.split()
    try:
        number = float(words[0])
        values = [float(word) for word in words[1:]]
    except ValueError:
        raise ValueError("its words are no numbers") from None
    if not number.is_integer() or abs(number) > 1e9:
        raise ValueError(f"{words[0]} is no number of a class")
    if not all(map(math.isfinite, values)):
        raise ValueError("a number is infinite or none")
    if len(values) in (4, 5):
        return _box(int(number), values, width, height)
    if len(values) < 6 or len(values) % 2:
        raise ValueError(f"it has {len(words)} numbers: 5 make a box, 7, 9, 11 … an outline")
    polygon = tuple(value * (height if place % 2 else width) for place, value in enumerate(values))
    box = (min(polygon[::2]), min(polygon[1::2]), max(polygon[::2]), max(polygon[1::2]))
    return ImageObject(class_number=int(number), box=box, polygons=(polygon,))


def _box(number: int, values: list[float], width: int, height: int) -> ImageObject:
    x, y, box_width, box_height = values[:4]
    details: dict[str, Any] = {"score": values[4]} if len(values) == 5 else {}
    box = (
        (x - box_width / 2) * width,
        (y - box_height / 2) * height,
        (x + box_width / 2) * width,
        (y + box_height / 2) * height,
    )
    return ImageObject(class_number=number, box=box, details=details)
