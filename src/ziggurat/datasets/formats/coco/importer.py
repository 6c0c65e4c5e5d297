"""Importer for COCO datasets: JSON files with images, categories and annotations."""

from __future__ import annotations

import json
import math
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from ziggurat.datasets.formats.coco.files import (
    ImageFinder,
    annotation_files,
    coco_fault,
    json_files,
    looks_like_coco,
    root_of,
    split_of_file,
    stream_lists,
)
from ziggurat.datasets.formats.shared.detection_import import ZERO_SIZE_OPTION, BoxRule, clean_json
from ziggurat.datasets.importer import FilePartReader, Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, StateError
from ziggurat.records.objects import ImageObject, objects_to_json
from ziggurat.records.run_lengths import read_run_lengths
from ziggurat.records.schema import Schema

__all__ = ["EXACT_BOX", "KEY_FIELD", "CocoImporter"]

KEY_FIELD: Final = "ziggurat_key"
"""Field of our own exports: the key of an image that could not lie at its key."""
_IN_MEMORY_BYTES: Final = 32 << 20  # annotations beyond this wait on disk

EXACT_BOX: Final = "ziggurat_box"
"""Field of our own exports: (left, top, right, bottom), where x + width does not give right in floating point."""
_OWN_FIELDS: Final = frozenset(("image_id", "category_id", "bbox", "segmentation", "iscrowd", "difficult", EXACT_BOX))


class CocoImporter(Importer):
    """COCO's JSON files: ``instances_train.json``, ``train/_annotations.coco.json`` and their like."""

    name = "coco"
    title = "COCO (JSON)"
    kinds = ("detection",)
    options = (
        ImporterOption(name="annotations", type=list, default=[], help="JSON files, below the source. Left out: all."),
        ImporterOption(
            name="images", type=str, default="", help="Folder of the images, below the source. Left out: looked for."
        ),
        ZERO_SIZE_OPTION,
    )

    def guess(self, source: Path) -> Guess | None:
        if source.is_file() and not (source.suffix.lower() == ".json" and looks_like_coco(source)):
            return None
        found = annotation_files(source)
        if not found:
            return None
        count = "one JSON file" if len(found) == 1 else f"{len(found)} JSON files"
        reason = f"{count} with images and annotations, such as {found[0]}."
        return Guess(format=self.name, confidence=0.97, reason=reason, kind="detection")

    def obstacle(self, source: Path) -> str:
        """Say what is wrong with the first JSON file that has a list of COCO's."""
        return next(filter(None, map(coco_fault, json_files(source))), "")

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        return _CocoScan(source, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        return FilePartReader(root_of(source))


class _CocoScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._root = root_of(source)
        self._files = annotation_files(source, options["annotations"])
        if not self._files:
            raise DataError(
                "A COCO dataset has JSON files with `images` and `annotations`.",
                received=f"`{source}`, down to two folders deep",
                advice="Name them with the option `annotations`.",
            )
        self._folder = options["images"]
        self._rule = BoxRule(options["zero_size_boxes"])
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            raise StateError("The schema of a scan is there when the scan has ended.", advice="Iterate it to its end.")
        return self._schema

    def __iter__(self) -> Iterator[Sample | Problem]:
        with ExitStack() as opened:
            contents = [opened.enter_context(closing(_Content(self._root / path))) for path in self._files]
            categories = Categories([content.categories for content in contents])
            yield from categories.problems(self._files)
            keys: set[str] = set()
            for number, (path, content) in enumerate(zip(self._files, contents, strict=True)):
                yield from self._samples(path, content, categories.numbers[number], keys)
            self._schema = Schema(
                kind="detection", class_names=categories.names, details={"coco": {"categories": categories.entries}}
            )

    def _samples(
        self, path: str, content: _Content, classes: Mapping[Any, int], keys: set[str]
    ) -> Iterator[Sample | Problem]:
        split = split_of_file(path)
        finder = ImageFinder(self._root, path, split, self._folder)
        for image, written in content.images():
            found = finder.find(image.get("file_name"))
            if found is None:
                name = str(image.get("file_name"))[:200].encode("utf-8", "replace").decode()
                reason = f"{path} names this image, and it is not there."
                lost = sum(not each.get("iscrowd") for each in written)
                yield Problem(key=name, kind="no-picture", reason=reason, left_out=True, objects=lost, split=split)
                continue
            place, size_bytes = found
            key = image[KEY_FIELD] if isinstance(image.get(KEY_FIELD), str) else place
            if key in keys:
                reason = f"{path} names it, and so did an entry before."
                yield Problem(key=key, kind="duplicate-key", reason=reason, left_out=True)
                continue
            keys.add(key)
            objects, problems = self._objects(key, image, written, classes)
            yield from problems
            label = objects_to_json(objects)
            yield Sample(key=key, parts=(place,), label=label, split=split, size_bytes=size_bytes)
        yield from content.problems(path)

    def _objects(
        self, key: str, image: Mapping[str, Any], written: Sequence[Any], classes: Mapping[Any, int]
    ) -> tuple[list[ImageObject], list[Problem]]:
        width, height = image.get("width"), image.get("height")
        size = (width, height) if type(width) is int and type(height) is int and min(width, height) > 0 else None
        objects: list[ImageObject] = []
        problems: list[Problem] = []
        if not written:
            problems.append(Problem(key=key, kind="no-label", reason="It has no annotation."))
        for annotation in written:
            found, listed = object_of(annotation, classes, key=key, rule=self._rule, size=size)
            problems += listed
            objects += [found] if found else []
        return objects, problems


class _Content:
    """What one JSON file holds; texts are in a temporary file, in memory is where they begin."""

    def __init__(self, path: Path) -> None:
        self.categories: list[Any] = []
        self._texts: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - closed by close()
        self._ids: dict[Any, int] = {}
        self._seen: set[int] = set()
        self._images = (array("q"), array("q"))
        self._annotations = (array("q"), array("q"))
        self._unusable = {"images": 0, "annotations": 0}
        try:
            for name, text, value in stream_lists(path):
                self._keep(name, text, value)
        except BaseException:
            self.close()
            raise

    def images(self) -> Iterator[tuple[Mapping[str, Any], list[Any]]]:
        """Yield each image with its annotations, in the order of the file."""
        numbers, places = (np.array(column, np.int64) for column in self._annotations)
        order = np.argsort(numbers, kind="stable")
        numbers, places = numbers[order], places[order]
        for number, place in zip(*self._images, strict=True):
            start, end = np.searchsorted(numbers, [number, number + 1])
            yield self._read(place), [self._read(int(each)) for each in places[start:end]]

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield what belongs to no image."""
        for number, place in zip(*self._annotations, strict=True):
            if number not in self._seen:
                annotation = self._read(place)
                shown = f"annotation {annotation.get('id')!r:.60} is of image {annotation.get('image_id')!r:.60}"
                why = "the image that they name is not in `images`"
                reason = f"{shown}, which is not in the list."
                yield Problem(key=path, kind="no-picture", reason=reason, objects=1, why=why)
        for name, count in self._unusable.items():
            if count:
                reason = f"{count} of its {name} have no id of their own."
                lost = count if name == "annotations" else 0
                yield Problem(key=path, kind="bad-line", reason=reason, objects=lost, why="they have no usable id")

    def close(self) -> None:
        self._texts.close()

    def _keep(self, name: str, text: str, value: Any) -> None:
        if name == "categories":
            self.categories.append(value)
            return
        if name not in ("images", "annotations"):
            return
        field, columns = ("id", self._images) if name == "images" else ("image_id", self._annotations)
        identity = value.get(field) if isinstance(value, dict) else None
        if not isinstance(identity, int | str):
            self._unusable[name] += 1
            return
        number = self._ids.setdefault(identity, len(self._ids))
        if name == "images" and number in self._seen:  # an annotation could mean either of the two
            self._unusable[name] += 1
            return
        if name == "images":
            self._seen.add(number)
        columns[0].append(number)
        columns[1].append(self._texts.tell())
        self._texts.write(text.replace("\n", " ").replace("\r", " ").encode("utf-8", "replace") + b"\n")

    def _read(self, place: int) -> dict[str, Any]:
        self._texts.seek(place)
        return json.loads(self._texts.readline())


class Categories:
    """The classes of several JSON files.

    Classes are numbered in the order of their ids. Where files disagree on what an id means, names decide, in the order
    in which the files give them. Categories that no annotation uses count like all others.

    Args:
        lists: the ``categories`` of each file.

    Attributes:
        names: by class number.
        entries: what the files say of each class, by class number.
        numbers: for each file, id → class number.
    """

    def __init__(self, lists: Sequence[Sequence[Any]]) -> None:
        self._bad = [sum(not _usable(entry) for entry in entries) for entries in lists]
        files = [sorted(filter(_usable, entries), key=_order) for entries in lists]
        ids_by_name: dict[tuple[str, int], Any] = {}
        names_by_id: dict[Any, tuple[str, int]] = {}
        agree = True
        for name, entry in ((name, entry) for entries in files for name, entry in _named(entries)):
            agree = agree and ids_by_name.setdefault(name, entry["id"]) == entry["id"]
            agree = agree and names_by_id.setdefault(entry["id"], name) == name
        every = [pair for entries in files for pair in _named(entries)]
        if agree:
            every.sort(key=lambda pair: _order(pair[1]))
        unique: dict[tuple[str, int], dict[str, Any]] = {}
        for name, entry in every:
            unique.setdefault(name, entry)
        places = {name: number for number, name in enumerate(unique)}
        self.names = tuple(name for name, _ in unique)
        self.entries = [clean_json(entry) for entry in unique.values()]
        self.numbers = [{entry["id"]: places[name] for name, entry in _named(entries)} for entries in files]

    def problems(self, files: Sequence[str]) -> Iterator[Problem]:
        """Yield what is wrong with the lists of the files."""
        for path, bad in zip(files, self._bad, strict=True):
            if bad:
                reason = f"{bad} of its categories have no usable id."
                yield Problem(key=path, kind="bad-line", reason=reason)


def _usable(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), int | str)


def _order(entry: dict[str, Any]) -> tuple[bool, Any]:
    return (isinstance(entry["id"], str), entry["id"])


def _named(entries: Sequence[dict[str, Any]]) -> list[tuple[tuple[str, int], dict[str, Any]]]:
    """Return name and entry; a name that stands twice in a file is two classes, told apart by a count."""
    seen: dict[str, int] = {}
    found = []
    for entry in entries:
        name = str(clean_json(entry.get("name", entry["id"])))
        seen[name] = seen.get(name, 0) + 1
        found.append(((name, seen[name]), entry))
    return found


def object_of(
    annotation: Mapping[str, Any],
    classes: Mapping[Any, int],
    *,
    key: str,
    rule: BoxRule,
    size: tuple[float, float] | None,
) -> tuple[ImageObject | None, list[Problem]]:
    """Return the object of an annotation, None where it cannot come, and what is wrong with it.

    Args:
        annotation: as the file has it.
        classes: id of a category → class number.
        key: of the sample.
        rule: decides on boxes.
        size: (width, height) of the image in pixels as the file says it.
    """
    where = f"annotation {_shown(annotation.get('id'))}"
    category = annotation.get("category_id")
    if not isinstance(category, int | str) or category not in classes:
        reason = f"{where}: there is no category of id {_shown(category)}."
        why = "their category is not in `categories`"
        return None, [Problem(key=key, kind="unknown-class", reason=reason, objects=1, why=why)]
    polygons, mask, problems = _segmentation(annotation.get("segmentation"), key, where, size)
    box = _box(annotation) or _box_of_polygons(polygons)
    if box is None:
        reason = f"{where}: it has no box of four numbers."
        return None, [Problem(key=key, kind="bad-box", reason=reason, objects=1), *problems]
    stays, problem = rule.check(key, box, where, size)
    problems += [problem] if problem else []
    if not stays:
        return None, problems
    return ImageObject(
        class_number=classes[category],
        box=box,
        polygons=polygons,
        mask=mask,
        crowd=bool(annotation.get("iscrowd")),
        difficult=bool(annotation.get("difficult")),
        details=_details(annotation, box),
    ), problems


def _box(annotation: Mapping[str, Any]) -> tuple[float, float, float, float] | None:
    exact = _numbers(annotation.get(EXACT_BOX))
    if exact is not None and len(exact) == 4:
        return (exact[0], exact[1], exact[2], exact[3])
    values = _numbers(annotation.get("bbox"))
    if values is None or len(values) != 4:
        return None
    left, top, width, height = values
    return (left, top, left + width, top + height)


def _box_of_polygons(polygons: tuple[tuple[float, ...], ...]) -> tuple[float, float, float, float] | None:
    points_x = [value for polygon in polygons for value in polygon[::2]]
    points_y = [value for polygon in polygons for value in polygon[1::2]]
    return (min(points_x), min(points_y), max(points_x), max(points_y)) if points_x else None


def _numbers(value: Any) -> list[float] | None:
    """Return a list of numbers, None where it is none; a whole number that is too large becomes infinite."""
    if not isinstance(value, list) or not set(map(type, value)) <= {int, float}:
        return None
    if not value or (max(value) < 1e300 and min(value) > -1e300):
        return list(map(float, value))
    return [float(each) if abs(each) < 1e300 else math.inf for each in value]


def _details(annotation: Mapping[str, Any], box: tuple[float, float, float, float]) -> dict[str, Any]:
    details = {name: clean_json(value) for name, value in annotation.items() if name not in _OWN_FIELDS}
    values = _numbers(annotation.get("bbox"))
    if values and len(values) == 4 and values[2:] != [box[2] - box[0], box[3] - box[1]] and EXACT_BOX not in annotation:
        details["bbox"] = values  # so that an export writes the numbers that stood here
    return details


def _segmentation(
    value: Any, key: str, where: str, size: tuple[float, float] | None
) -> tuple[tuple[tuple[float, ...], ...], dict[str, Any] | None, list[Problem]]:
    if isinstance(value, Mapping):
        mask = read_run_lengths(value)
        reason = f"{where}: its run lengths do not fit their size."
        if mask and size and mask["size"] != [size[1], size[0]]:
            reason = f"{where}: its mask is {mask['size'][1]} x {mask['size'][0]} pixels, not as large as its image."
            mask = None
        return (), mask, [] if mask else [Problem(key=key, kind="bad-mask", reason=reason)]
    outlines = value if isinstance(value, list) else []
    polygons = [_numbers(outline) for outline in outlines]
    good = [tuple(each) for each in polygons if each and len(each) >= 6 and len(each) % 2 == 0 and _finite(each)]
    reason = f"{where}: an outline is no list of at least three points."
    bad = [Problem(key=key, kind="bad-polygon", reason=reason)] if len(good) < len(polygons) else []
    return tuple(good), None, bad


def _finite(values: list[float]) -> bool:
    return math.isfinite(sum(values)) and max(values) < 1e9 and min(values) > -1e9


def _shown(value: Any) -> str:
    return repr(value)[:60]
