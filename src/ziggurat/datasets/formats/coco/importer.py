"""Importer for COCO datasets: JSON files with images, categories and annotations.

The importer streams each JSON file once. Images and annotations go to a temporary file; memory holds a few numbers
for each of them.

Reference: T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014.
"""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from ziggurat.datasets.formats.coco.categories import Categories
from ziggurat.datasets.formats.coco.files import PictureFinder, annotation_files, json_files, root_of, split_of_file
from ziggurat.datasets.formats.coco.json_stream import coco_fault, looks_like_coco, stream_lists
from ziggurat.datasets.formats.coco.objects import object_of
from ziggurat.datasets.formats.detection.importing import ZERO_SIZE_OPTION, BoxRule
from ziggurat.datasets.importer import FilePartReader, Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, StateError
from ziggurat.records.objects import ImageObject, objects_to_json
from ziggurat.records.schema import Schema

__all__ = ["KEY_FIELD", "CocoImporter"]

KEY_FIELD: Final = "ziggurat_key"
"""Field of our own exports: the key of an image that could not lie at its key."""
_IN_MEMORY_BYTES: Final = 32 << 20


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
        finder = PictureFinder(self._root, path, split, self._folder)
        for picture, written in content.pictures():
            found = finder.find(picture.get("file_name"))
            if found is None:
                name = str(picture.get("file_name"))[:200].encode("utf-8", "replace").decode()
                reason = f"{path} names this image, and it is not there."
                yield Problem(key=name, kind="no-picture", reason=reason, left_out=True)
                continue
            place, size_bytes = found
            key = picture[KEY_FIELD] if isinstance(picture.get(KEY_FIELD), str) else place
            if key in keys:
                reason = f"{path} names it, and so did an entry before."
                yield Problem(key=key, kind="duplicate-key", reason=reason, left_out=True)
                continue
            keys.add(key)
            objects, problems = self._objects(key, picture, written, classes)
            yield from problems
            label = objects_to_json(objects)
            yield Sample(key=key, parts=(place,), label=label, split=split, size_bytes=size_bytes)
        yield from content.problems(path)

    def _objects(
        self, key: str, picture: Mapping[str, Any], written: Sequence[Any], classes: Mapping[Any, int]
    ) -> tuple[list[ImageObject], list[Problem]]:
        width, height = picture.get("width"), picture.get("height")
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
        self._pictures = (array("q"), array("q"))
        self._annotations = (array("q"), array("q"))
        self._unusable = {"images": 0, "annotations": 0}
        try:
            for name, text, value in stream_lists(path):
                self._keep(name, text, value)
        except BaseException:
            self.close()
            raise

    def pictures(self) -> Iterator[tuple[Mapping[str, Any], list[Any]]]:
        """Yield each image with its annotations, in the order of the file."""
        numbers, places = (np.array(column, np.int64) for column in self._annotations)
        order = np.argsort(numbers, kind="stable")
        numbers, places = numbers[order], places[order]
        for number, place in zip(*self._pictures, strict=True):
            start, end = np.searchsorted(numbers, [number, number + 1])
            yield self._read(place), [self._read(int(each)) for each in places[start:end]]

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield what belongs to no image."""
        for number, place in zip(*self._annotations, strict=True):
            if number not in self._seen:
                annotation = self._read(place)
                shown = f"annotation {annotation.get('id')!r:.60} is of image {annotation.get('image_id')!r:.60}"
                yield Problem(key=path, kind="no-picture", reason=f"{shown}, which is not in the list.")
        for name, count in self._unusable.items():
            if count:
                reason = f"{count} of its {name} have no id of their own."
                yield Problem(key=path, kind="bad-line", reason=reason)

    def close(self) -> None:
        self._texts.close()

    def _keep(self, name: str, text: str, value: Any) -> None:
        if name == "categories":
            self.categories.append(value)
            return
        if name not in ("images", "annotations"):
            return
        field, columns = ("id", self._pictures) if name == "images" else ("image_id", self._annotations)
        identity = value.get(field) if isinstance(value, dict) else None
        if not isinstance(identity, int | str):
            self._unusable[name] += 1
            return
        number = self._ids.setdefault(identity, len(self._ids))
        if name == "images" and number in self._seen:  # nobody knows which of the two an annotation means
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
