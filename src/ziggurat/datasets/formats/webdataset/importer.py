"""Importer for WebDataset shards, read in place: nothing is unpacked, and samples are read in any order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import ZERO_SIZE_OPTION, lost_objects
from ziggurat.datasets.formats.shared.exports import completed
from ziggurat.datasets.formats.shared.frames import FRAME_OPTIONS
from ziggurat.datasets.formats.shared.numbered_classes import NumberedClasses, no_number
from ziggurat.datasets.formats.shared.text_files import names_in
from ziggurat.datasets.formats.webdataset.objects import ShardObjects
from ziggurat.datasets.formats.webdataset.shards import (
    COMPRESSED,
    ShardSample,
    kind_of,
    label_of,
    own_json,
    parts_of,
    read_member,
    samples_of,
    unread_labels,
)
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample, split_in
from ziggurat.errors import DataError
from ziggurat.records.schema import KINDS, Schema

__all__ = ["WebDatasetImporter"]

_NAME_FILES: Final = ("classes.txt", "labels.txt", "class_names.txt")


class WebDatasetImporter(Importer):
    """Tar files with the members of each sample next to each other."""

    name = "webdataset"
    title = "WebDataset (tar shards)"
    kinds = (
        "image-classification",
        "detection",
        "segmentation",
        "image-to-image",
        "image-pairs",
        "image-regression",
        "text-classification",
    )
    options = (
        ImporterOption(name="classes", type=str, default="", help="File with the name of class i in line i."),
        ZERO_SIZE_OPTION,
        *FRAME_OPTIONS,
    )
    reads_archives = True

    def guess(self, source: Path) -> Guess | None:
        """Claim tar files whose first sample has an image and a label, or a text and a class."""
        path = next(_shards(source), "")
        first = _first_sample(_root(source) / path) if path else None
        kind = None if first is None else kind_of(first)
        if first is None or kind is None:
            return None
        unread = unread_labels(kind, first)
        return Guess(
            format=self.name,
            confidence=0.93,
            reason=f"tar shards of samples, such as `{path}`",
            kind=kind,
            loses=f"what the members {', '.join(unread)} of each sample say" if unread else "",
        )

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the shards."""
        return _ShardScan(source, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads a member of a shard."""
        return _MemberReader(_root(source))


class _ShardScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._root = _root(source)
        self._names = _class_names(self._root, options["classes"])
        self._kind = self._kind_of_source()
        self._objects = ShardObjects(self._root, self._names, options)
        self._parts: tuple[str, ...] = KINDS[self._kind]
        self._numbers = NumberedClasses()

    def __iter__(self) -> Iterator[Sample | Problem]:
        numbers = {name: number for number, name in enumerate(self._names)}
        for path in _shards(self._source):
            try:
                for sample in samples_of(self._root / path):
                    yield from self._sample(path, sample, numbers)
            except DataError as error:
                yield Problem(key=path, kind="unreadable", reason=f"What follows is lost: {error}", left_out=True)
        yield from self._numbers.problems(self._names, "the list of classes")

    @property
    def schema(self) -> Schema:
        """Classes as the file of names says; else by number."""
        schema = Schema(kind=self._kind, parts=self._parts, class_names=self._numbers.names(self._names))
        return completed(schema, self._root)

    def _kind_of_source(self) -> str:
        refused: DataError | None = None
        for path in _shards(self._source):
            try:
                first = next(samples_of(self._root / path), None)
                kind = None if first is None else kind_of(first)
            except DataError as error:  # it may be the only one that is damaged
                refused = refused or error
                continue
            if kind is not None:
                return kind
            refused = refused or DataError(
                "A sample of a shard has an image, or a text and a class (`cls`).",
                received=f"`{path}`, whose first sample has {', '.join(first.members) if first else 'nothing'}",
            )
        if refused is not None:
            raise refused
        for each in _files(self._source):
            if each.lower().endswith(COMPRESSED):
                next(samples_of(self._root / each), None)  # says what to do
        raise DataError(f"`{self._source}` has no shards, files that end in `.tar`.")

    def _sample(self, path: str, sample: ShardSample, numbers: Mapping[str, int]) -> Iterator[Sample | Problem]:
        key, split = f"{path}/{sample.name}", split_in(path)
        problems: list[Problem] = []
        try:
            key = str(own_json(sample).get("key") or key)
            members = parts_of(self._kind, sample)
            if self._kind == "detection" and members is not None:
                label, problems = self._objects.label(key, path, sample, members[0])
            else:
                label = label_of(self._kind, sample, numbers)
        except DataError as error:
            yield Problem(key=key, kind="no-label", reason=str(error), left_out=True, split=split)
            return
        if self._parts == ("text",) and members and not _is_utf8(members[0].content):
            yield Problem(key=key, kind="unreadable", reason="Its text is not UTF-8.", left_out=True, split=split)
            return
        if members is None:
            reason = f"It has only {', '.join(sample.members)}, and needs {' and '.join(self._parts)}."
            lost = [""] * (len(label) if self._kind == "detection" else 0)
            yield from lost_objects(key, "no-picture", reason, lost, left_out=True, split=split)
            return
        if not self._is_numbered(label):
            yield no_number(key, label, split)
            return
        self._parts = self._parts[: len(members)]
        yield from problems
        yield Sample(
            key=key,
            parts=tuple(
                f"{path}#{member.offset}#{member.size_bytes}" if member.content is None else member.content
                for member in members
            ),
            label=label,
            split=split,
            size_bytes=members[0].size_bytes,
        )

    def _is_numbered(self, label: Any) -> bool:
        """Return whether the numbers of the label's classes, if it has any, are some, and remember them."""
        if self._kind == "detection":
            return all(each["class"] < 0 or self._numbers.number(each["class"]) is not None for each in label)
        return type(label) is not int or self._kind == "image-pairs" or self._numbers.number(label) is not None


class _MemberReader(PartReader):
    """Reads by addresses such as ``train-000000.tar#1536#20412``."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, address: str) -> bytes:
        """Return the content of a member."""
        path, offset, size_bytes = address.rsplit("#", 2)
        return read_member(self._root / path, int(offset), int(size_bytes))


def _is_utf8(text: bytes | None) -> bool:
    try:
        return text is not None and text.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False


def _shards(source: Path) -> Iterator[str]:
    return (path for path in _files(source) if path.lower().endswith(".tar"))


def _files(source: Path) -> Iterator[str]:
    """Yield the paths of files, in the order of their names."""
    if source.is_file():
        yield source.name
        return
    for place, folders, names in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = Path(place).relative_to(source)
        yield from ((below / name).as_posix() for name in sorted(names) if not name.startswith("."))


def _first_sample(path: Path) -> ShardSample | None:
    """Return the first sample of a tar file; None where it has no more than an image, as in any archive."""
    try:
        first = next(samples_of(path), None)
        known = first is not None and ("cls" in first.members or "json" in first.members or len(first.members) > 1)
        if first is None or not known:
            return None
        kind_of(first)
    except DataError:
        return None
    return first


def _class_names(root: Path, given: str) -> tuple[str, ...]:
    path = root / given if given else next((root / name for name in _NAME_FILES if (root / name).is_file()), None)
    return () if path is None else names_in(path)


def _root(source: Path) -> Path:
    return source if source.is_dir() else source.parent
