"""Importer for COCO datasets: JSON files with images, categories and annotations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.coco.annotations import Categories, object_of
from ziggurat.datasets.formats.coco.content import KEY_FIELD, WHOLE_IMAGES, CocoContent, CocoImages, flag
from ziggurat.datasets.formats.coco.files import (
    annotation_files,
    coco_fault,
    json_files,
    looks_like_coco,
    root_of,
)
from ziggurat.datasets.formats.shared.detection_import import ZERO_SIZE_OPTION, BoxRule, lost_objects, plain_number
from ziggurat.datasets.formats.shared.frames import FRAME_OPTIONS, FrameRule
from ziggurat.datasets.formats.shared.image_finder import split_of_file
from ziggurat.datasets.image_size import stored_size_of_file
from ziggurat.datasets.importer import FilePartReader, Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import SPLITS, Problem, Sample
from ziggurat.errors import DataError, StateError
from ziggurat.records.objects import ImageObject, objects_to_json
from ziggurat.records.schema import Schema

__all__ = ["CocoImporter"]


class CocoImporter(Importer):
    """COCO's JSON files: ``instances_train.json``, ``train/_annotations.coco.json`` and their like."""

    name = "coco"
    title = "COCO (JSON)"
    kinds = ("detection",)
    markers = (".json",)
    options = (
        ImporterOption(name="annotations", type=list, default=[], help="JSON files, below the source. Left out: all."),
        ImporterOption(
            name="images", type=str, default="", help="Folder of the images, below the source. Left out: looked for."
        ),
        ZERO_SIZE_OPTION,
        *FRAME_OPTIONS,
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
        self._frames = FrameRule(options)
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            raise StateError(
                "The scan has not ended, and its schema is there when it has.", advice="Iterate it to its end."
            )
        return self._schema

    def __iter__(self) -> Iterator[Sample | Problem]:
        with ExitStack() as opened:
            contents = [opened.enter_context(closing(CocoContent(self._root / path))) for path in self._files]
            _check_forms(self._files, contents)
            categories = Categories([content.categories for content in contents])
            yield from categories.problems(self._files)
            entries = CocoImages(self._root, self._files, contents, self._folder)
            for number, (path, content) in enumerate(zip(self._files, contents, strict=True)):
                for place in range(len(content)):
                    yield from self._sample(entries, categories, number, place)
                yield from content.problems(path)
                yield from entries.finders[number].counts.problems(path)
            self._schema = Schema(
                kind="detection", class_names=categories.names, details={"coco": {"categories": categories.entries}}
            )

    def _sample(
        self, entries: CocoImages, categories: Categories, number: int, place: int
    ) -> Iterator[Sample | Problem]:
        """Yield the sample of an entry of `images` with the objects of all entries that mean its file."""
        path, content = self._files[number], entries.contents[number]
        found = entries.found[number][place]
        if found is None:
            image, written = content.image(place)
            name = str(image.get("file_name"))[:200].encode("utf-8", "replace").decode()
            reason = f"{path} names this image, and {entries.missing(number, image.get('file_name'))}."
            names = [categories.name_of(number, each) for each in written if not flag(each.get("iscrowd"))]
            split = split_of_file(path)
            yield from lost_objects(name, "no-picture", reason, names, left_out=True, split=split)
            return
        others = entries.others.get((number, place))
        if others is None:
            return  # it is one of the others
        image, _ = content.image(place)
        key = image[KEY_FIELD] if isinstance(image.get(KEY_FIELD), str) else found.path
        split, problems = _split(key, [self._files[each] for each, _ in ((number, place), *others)])
        objects: list[ImageObject] = []
        written_count = 0
        for each, other in ((number, place), *others):
            image, written = entries.contents[each].image(other)
            more, listed = self._objects(key, found.path, image, written, (categories, each))
            problems += listed
            seen = {_without_id(one) for one in objects}
            objects += [one for one in more if _without_id(one) not in seen]
            written_count += len(written)
        if others:
            reason = f"It is listed {len(others) + 1} times: it is one sample, with the objects of all entries."
            problems.append(Problem(key=key, kind="duplicate-key", reason=reason))
        if not written_count:
            problems.append(Problem(key=key, kind="no-label", reason="It has no annotation."))
        yield from problems
        label = objects_to_json(objects)
        yield Sample(key=key, parts=(found.path,), label=label, split=split, size_bytes=found.size_bytes)

    def _objects(
        self,
        key: str,
        path: str,
        image: Mapping[str, Any],
        written: Sequence[Any],
        classes: tuple[Categories, int],
    ) -> tuple[list[ImageObject], list[Problem]]:
        width, height = plain_number(image.get("width")), plain_number(image.get("height"))
        said = (width, height) if width and height and 0 < min(width, height) <= max(width, height) < 1e9 else None
        frame = self._frames.of(key, partial(stored_size_of_file, self._root / path), said, labelled=bool(written))
        objects: list[ImageObject] = []
        problems = list(frame.problems)
        for annotation in written:
            found, listed = object_of(annotation, *classes, key=key, rule=self._rule, size=frame.size)
            problems += listed
            objects += [frame.moved(found)] if found else []
        return objects, problems


def _check_forms(files: Sequence[str], contents: Sequence[CocoContent]) -> None:
    """Refuse a source without a single box or outline, and say what it has instead."""
    forms = sum((content.forms for content in contents), Counter[str]())
    if not forms or forms["boxes"]:
        return
    form = forms.most_common(1)[0][0]
    is_class = form == WHOLE_IMAGES
    raise DataError(
        f"The source has COCO {form}: "
        + ("they are not read from JSON." if is_class else "no task learns from these yet."),
        received=", ".join(f"`{path}`" for path in files[:5]),
        advice="List images and classes in a text file or a table."
        if is_class
        else "Name files with `bbox` or `segmentation` in their annotations, such as `instances_train.json`, with the "
        "option `annotations`.",
    )


def _split(key: str, files: Sequence[str]) -> tuple[str, list[Problem]]:
    """Return the split of an image that files list, of several the last of train, val, test."""
    splits = sorted({split for path in files if (split := split_of_file(path))}, key=SPLITS.index)
    if len(splits) < 2:
        return "".join(splits), []
    reason = f"It is in {' and in '.join(splits)}; {splits[-1]} counts, so that nothing of it is trained on."
    return splits[-1], [Problem(key=key, kind="two-splits", reason=reason)]


def _without_id(each: ImageObject) -> str:
    """Return what two entries say alike of one object."""
    content = each.as_json()
    content.pop("details", None)
    return json.dumps(content, sort_keys=True)
