"""Importer for TFRecord files of ``tf.train.Example`` messages, without TensorFlow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import ZERO_SIZE_OPTION, lost_objects, same_names
from ziggurat.datasets.formats.shared.exports import completed
from ziggurat.datasets.formats.shared.frames import FRAME_OPTIONS
from ziggurat.datasets.formats.tfrecord.objects import DetectionRecords
from ziggurat.datasets.formats.tfrecord.records import (
    BOX_FEATURES,
    KEY,
    LABEL,
    PART_FEATURES,
    ClassNumbers,
    Feature,
    Frame,
    FrameError,
    frames_of,
    kind_of,
    label_of,
    read_frame,
    text_of,
    unpack_features,
)
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample, split_in
from ziggurat.errors import DataError, DatapointError
from ziggurat.protobuf_wire import WireFormatError
from ziggurat.records.schema import KINDS, Schema

__all__ = ["TFRecordImporter"]

_SHARD: Final = re.compile(
    r".*-\d{5,}-of-\d{5,}(\.tfrecords?)?|.*\.(tf)?records?(-\d+-of-\d+)?|.*\.tfrec", re.IGNORECASE
)
_NAME_FILES: Final = ("labels.txt", "classes.txt", "class_names.txt")


class TFRecordImporter(Importer):
    """Records with TensorFlow's usual features; the checksum of each is checked."""

    name = "tfrecord"
    title = "TFRecord"
    kinds = ("image-classification", "detection", "segmentation", "image-to-image", "image-pairs", "image-regression")
    options = (
        ImporterOption(name="classes", type=str, default="", help="File with names of the classes, or a label map."),
        ImporterOption(
            name="first_class",
            type=int,
            default=None,
            help="Number of the first class; left out, 0 for images and 1 for objects, as TensorFlow's tools count.",
        ),
        ZERO_SIZE_OPTION,
        *FRAME_OPTIONS[:1],
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim files whose first record is an ``Example`` with features that are known."""
        path = next(_shards(source), "")
        if not path:
            return None
        kind = _kind_of_file(_root(source) / path)
        if kind is None:
            return None
        return Guess(format=self.name, confidence=0.95, reason=f"TFRecord files, such as `{path}`", kind=kind)

    def obstacle(self, source: Path) -> str:
        """Say what the first record of the first file is."""
        path = next(
            (path for path in _shards(source) if "rec" in path.lower()), ""
        )  # checkpoints have such shards, too
        return _shown(_root(source) / path) if path else ""

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the records."""
        return _TFRecordScan(source, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads a feature of a record."""
        return _FeatureReader(_root(source))


class _TFRecordScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._root = _root(source)
        self._kind = self._kind_of_source()
        first = options["first_class"]
        first = first if first is not None else int(self._kind == "detection")
        self._classes = ClassNumbers.of_file(_names_file(self._root, options["classes"], next(_shards(source))), first)
        self._objects = DetectionRecords(self._classes, options)
        self._parts = KINDS[self._kind]

    def __iter__(self) -> Iterator[Sample | Problem]:
        yield from same_names("the list of classes", self._classes.listed)
        for path in _shards(self._source):
            try:
                for number, each in enumerate(frames_of(self._root / path)):
                    yield from self._sample(path, number, each)
            except FrameError as error:
                yield Problem(key=path, kind="unreadable", reason=f"What follows is lost: {error}", left_out=True)

    @property
    def schema(self) -> Schema:
        """Classes as the file of names says, or the records themselves."""
        schema = Schema(kind=self._kind, parts=self._parts, class_names=self._classes.names)
        return completed(schema, self._root)

    def _kind_of_source(self) -> str:
        path = next(_shards(self._source), "")
        kinds = (_kind_of_file(self._root / shard) for shard in _shards(self._source))
        kind = next((kind for kind in kinds if kind is not None), None)
        if kind is None:
            raise DataError(
                "A source of TFRecord files has records with `image/encoded` and a class, objects or a mask.",
                received=f"`{self._source}`: {_shown(self._root / path) if path else 'no TFRecord file'}",
                advice="Files are named `train-00000-of-00008`, `train.tfrecord` or `train.record`.",
            )
        return kind

    def _sample(self, path: str, number: int, each: Frame) -> Iterator[Sample | Problem]:
        key, split = f"{path}/{number:06d}", split_in(path)
        if each.content is None:
            yield Problem(key=key, kind="unreadable", reason="Its checksum is wrong.", left_out=True, split=split)
            return
        features: dict[str, Feature] = {}
        try:
            features = unpack_features(each.content)
            key = text_of(features, KEY) or key
            missing = [name for name in self._parts if not features.get(PART_FEATURES[name])]
            is_whole = not missing or missing == ["target"]
            label = label_of(self._kind, features, self._classes) if is_whole else None
            problems: list[Problem] = []
            if self._kind == "detection" and LABEL not in features and is_whole:
                label, problems = self._objects.label(key, features, split)
        except DataError as error:
            kind = "unreadable" if isinstance(error, WireFormatError) else "no-label"
            yield from lost_objects(key, kind, str(error), [""] * _count(features), left_out=True, split=split)
            return
        if missing == ["target"]:
            self._parts = self._parts[:1]
        elif missing:
            reason = f"It has no feature `{PART_FEATURES[missing[0]]}`."
            yield from lost_objects(key, "no-picture", reason, [""] * _count(features), left_out=True, split=split)
            return
        yield from problems
        yield Sample(
            key=key,
            parts=tuple(f"{path}#{each.offset}#{PART_FEATURES[name]}" for name in self._parts),
            label=label,
            split=split,
            size_bytes=_length(features),
        )


def _count(features: Mapping[str, Feature]) -> int:
    """Return the number of objects in a record."""
    return len(features.get(BOX_FEATURES[0], []))


class _FeatureReader(PartReader):
    """Reads by addresses such as ``train-00000-of-00008#1234#image/encoded``."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, address: str) -> bytes:
        """Return the bytes of a feature."""
        path, offset, name = address.rsplit("#", 2)
        try:
            values = unpack_features(read_frame(self._root / path, int(offset))).get(name, [])
        except WireFormatError as error:
            raise DatapointError(address, f"it is no Example ({error}).") from error
        if not values or not isinstance(values[0], bytes):
            raise DatapointError(address, f"its record has no bytes in `{name}`.")
        return values[0]


def _length(features: Mapping[str, Feature]) -> int | None:
    content = (features.get("image/encoded") or [None])[0]
    return len(content) if isinstance(content, bytes) else None


def _shards(source: Path) -> Iterator[str]:
    """Yield the paths of TFRecord files, in the order of their names."""
    if source.is_file():
        if _SHARD.fullmatch(source.name):
            yield source.name
        return
    for place, folders, names in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = Path(place).relative_to(source)
        yield from ((below / name).as_posix() for name in sorted(names) if _SHARD.fullmatch(name))


def _kind_of_file(path: Path) -> str | None:
    try:
        first = next(frames_of(path), None)
        return None if first is None or first.content is None else kind_of(unpack_features(first.content))
    except DataError:
        return None


def _shown(path: Path) -> str:
    """Say what the first record of a file is."""
    try:
        first = next(frames_of(path), None)
        features = unpack_features(first.content) if first is not None and first.content is not None else {}
    except DataError as error:
        return str(error)
    return f"the first record of `{path.name}` has the features {', '.join(sorted(features)[:20]) or '(none)'}"


def _names_file(root: Path, given: str, shard: str) -> Path | None:
    """Return the file with the names of the classes: in the source, or beside the first shard."""
    if given:
        return root / given
    folders = dict.fromkeys((root, (root / shard).parent))
    named = next((folder / name for folder in folders for name in _NAME_FILES if (folder / name).is_file()), None)
    return named or next((path for folder in folders for path in sorted(folder.glob("*.pbtxt"))), None)


def _root(source: Path) -> Path:
    return source if source.is_dir() else source.parent
