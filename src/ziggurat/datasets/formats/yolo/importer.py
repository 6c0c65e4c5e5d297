"""Importer for YOLO datasets: a text file for each image, with boxes or outlines relative to the image size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import (
    ANNOTATION_FOLDERS,
    ZERO_SIZE_OPTION,
    BoxRule,
    Pair,
    folders_below,
    lost_objects,
    read_keys,
    same_names,
    split_of,
    text_lines,
)
from ziggurat.datasets.formats.shared.frames import FRAME_OPTIONS, FrameRule
from ziggurat.datasets.formats.yolo.layout import YoloWalk, overlapping, read_description, yolo_folders
from ziggurat.datasets.formats.yolo.lines import class_number, line_form, looks_like_yolo, other_line, parse_line
from ziggurat.datasets.image_size import stored_size_of_file
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
        ImporterOption(
            name="lines",
            type=str,
            default="auto",
            help="What lines of more than a box are; `auto`: as `kpt_shape` of the YAML file and the numbers say.",
            choices=("auto", "outlines", "keypoints"),
        ),
        ImporterOption(
            name="missing_splits",
            type=str,
            default="refuse",
            help="Whether splits that the YAML file names and that are not there are refused or dropped.",
            choices=("refuse", "drop"),
        ),
        ZERO_SIZE_OPTION,
        *FRAME_OPTIONS[:1],
    )

    def guess(self, source: Path) -> Guess | None:
        if not source.is_dir():
            return None
        for labels in _label_names(source):
            description = read_description(source, labels)
            folders = yolo_folders(source, description, labels).folders
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

    def obstacle(self, source: Path) -> str:
        """Name a line of a label file that is none of YOLO."""
        if not source.is_dir():
            return ""
        description = read_description(source)
        folders = yolo_folders(source, description, "labels").folders
        return next((said for each in folders if (said := other_line(source, each))), "")

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        return _YoloScan(source, options)


class _YoloScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._root = source
        self._labels = options["labels"]
        self._description = read_description(source, self._labels)
        listed = list(options["classes"]) or list(self._description.names)
        self._names = list(dict.fromkeys(listed))
        self._numbers = [self._names.index(name) for name in listed]
        self._listed = listed
        found = yolo_folders(source, self._description, self._labels, options["images"])
        self._folders = found.folders
        self._notes = found.notes
        if found.missing and options["missing_splits"] == "refuse":
            raise _missing_split(self._description.file, found.missing)
        self._missing = found.missing
        if not self._folders:
            raise DataError(
                "A YOLO dataset has images and text files of the same names, side by side or in `images` and "
                f"`{self._labels}`.",
                received=f"`{source}`, down to two folders deep",
                advice="Name the folders with the options `images` and `labels`.",
            )
        self._form = line_form(source, self._folders, self._labels, self._description.key_points, options["lines"])
        self._rule = BoxRule(options["zero_size_boxes"])
        self._frames = FrameRule({**options, "scale_boxes": False})
        self._largest = -1
        self._ended = False

    @property
    def schema(self) -> Schema:
        if not self._ended:
            raise StateError(
                "The scan has not ended, and its schema is there when it has.", advice="Iterate it to its end."
            )
        names = self._names or [f"class {number}" for number in range(self._largest + 1)]
        return Schema(kind="detection", class_names=tuple(names))

    def __iter__(self) -> Iterator[Sample | Problem]:
        keys = read_keys(self._root)
        seen: set[str] | None = set() if overlapping(self._folders) else None
        name = self._description.file or "the folder"
        yield from same_names(name, self._listed)
        yield from self._description.problems
        for note in self._notes:
            yield Problem(key=name, kind="other-name", reason=note)
        for split, entry in self._missing:
            reason = f"It names `{entry}` as {split}, which the source does not have."
            why = "the source does not have their images"
            yield Problem(key=name, kind="no-split", reason=reason, names=1, why=why, split=split)
        walk = YoloWalk(self._root, self._labels)
        for folder in self._folders:
            for pair in walk.pairs(folder):
                split = folder.split or split_of(pair.stem.partition("/")[0])
                if pair.image is None or pair.size_bytes is None:
                    if pair.image or not _is_other_text(pair.stem):
                        yield from self._lost(pair, pair.label or pair.image or pair.stem, "no-picture", split)
                    continue
                if seen is not None and pair.image in seen:
                    reason = "It belongs to two splits or is listed twice; the first counts."
                    yield Problem(key=pair.image, kind="duplicate-key", reason=reason, left_out=True)
                    continue
                if seen is not None:
                    seen.add(pair.image)
                yield from self._sample(pair, keys.get(pair.image, pair.image), split)
        yield from walk.problems(name)
        self._ended = True

    def _sample(self, pair: Pair, key: str, split: str) -> Iterator[Sample | Problem]:
        assert pair.image is not None
        label: list[ImageObject] = []
        try:
            lines = text_lines(self._root / pair.label) if pair.label else []
            stored = stored_size_of_file(self._root / pair.image)
        except (DataError, ValueError) as error:
            yield from self._lost(pair, key, "unreadable", split, str(error))
            return
        if pair.label is None:
            yield Problem(key=key, kind="no-label", reason="It has no label file.")
        frame = self._frames.of(key, lambda: stored, None, labelled=any(map(str.strip, lines)))
        yield from frame.problems
        for number, line in enumerate(lines, 1):
            if line.strip():
                found, problems = self._object(key, line, f"{pair.label}, line {number}", frame.size or stored.upright)
                yield from problems
                label += [frame.moved(found)] if found else []
        yield Sample(
            key=key, parts=(pair.image,), label=objects_to_json(label), split=split, size_bytes=pair.size_bytes
        )

    def _object(
        self, key: str, line: str, where: str, size: tuple[float, float]
    ) -> tuple[ImageObject | None, list[Problem]]:
        try:
            found = parse_line(line, *size, self._form)
        except ValueError as error:
            name = self._class_of(line)
            return None, [Problem(key=key, kind="bad-line", reason=f"{where}: {error}.", objects=1, class_name=name)]
        number = found.class_number
        if not 0 <= number < (len(self._listed) or _MOST_CLASSES):
            named = f"{len(self._listed)} classes have names" if self._listed else "classes are numbered from 0"
            reason = f"{where}: class {number}, and {named}."
            return None, [Problem(key=key, kind="unknown-class", reason=reason, objects=1)]
        self._largest = max(self._largest, number)
        box, problems = self._rule.check(key, found.box, where, size, class_name=self._class_of(line))
        number = self._numbers[number] if self._numbers else number
        return (None if box is None else replace(found, box=box, class_number=number)), problems

    def _class_of(self, line: str) -> str:
        """Return the class that a line names; empty where it is none."""
        number = class_number(line)
        if number is None or not 0 <= number < (len(self._listed) or _MOST_CLASSES):
            return ""
        self._largest = max(self._largest, number)
        return self._listed[number] if self._listed else f"class {number}"

    def _lost(self, pair: Pair, key: str, kind: str, split: str, reason: str = "") -> Iterator[Problem]:
        """Yield the loss of an image with the objects in its label file."""
        reason = reason or ("It has no image of the same name." if pair.label else "There is no such image.")
        try:
            lines = text_lines(self._root / pair.label) if pair.label else []
        except DataError:
            lines = []
        names = [self._class_of(line) for line in lines if line.strip()]
        yield from lost_objects(key, kind, reason, names, left_out=True, split=split)


def _missing_split(file: str, missing: Sequence[tuple[str, str]]) -> DataError:
    said = ", ".join(f"`{entry}` ({split})" for split, entry in missing)
    return DataError(
        "A split that the YAML file names is not in the source.",
        received=f"{said} in `{file}`",
        advice="Add the images, correct the path, or take the dataset without them: missing_splits=drop.",
        details={"field": "options.missing_splits"},
    )


def _label_names(source: Path) -> list[str]:
    """Return names of folders that may hold labels, in the source or in its folders of splits; the usual one first."""
    places = [source, *(source / path for path in folders_below(source, 1) if path and split_of(path))]
    found = {path.name for place in places for path in place.iterdir() if path.is_dir()}
    others = sorted(name for name in found if name.lower().startswith("label") or name.lower() in ANNOTATION_FOLDERS)
    return list(dict.fromkeys(["labels", *others]))


def _is_other_text(stem: str) -> bool:
    """Whether a text file without an image is one that lies in such folders for other reasons."""
    return stem.rpartition("/")[2].lower() in _OTHER_TEXTS
