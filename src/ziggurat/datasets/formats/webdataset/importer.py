"""Importer for WebDataset shards, read in place: nothing is unpacked, and samples are read in any order."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.formats.shared.exports import completed
from ziggurat.datasets.formats.shared.text_files import names_in
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample, split_in
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import KINDS, Schema

__all__ = ["WebDatasetImporter"]

_NAME_FILES: Final = ("classes.txt", "labels.txt", "class_names.txt")

_IMAGES: Final = frozenset(suffix[1:] for suffix in IMAGE_SUFFIXES)
_MASKS: Final = ("mask", "seg", "segmentation", "annotation")
_TEXTS: Final = ("txt", "text")
_LABEL_KEYS: Final = ("label", "cls", "class")

Meaning = dict[str, str]
"""Part of a record → ending of the member that holds it."""

COMPRESSED: Final = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
"""How the names of shards end that have no random access."""
_SMALL_BYTES: Final = 16 << 20  # members up to this size are read during the scan
_SMALL: Final = ("cls", "json", "txt", "text", "label")


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
    options = (ImporterOption(name="classes", type=str, default="", help="File with the name of class i in line i."),)
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
        self._parts: tuple[str, ...] = KINDS[self._kind]
        self._highest = -1

    def __iter__(self) -> Iterator[Sample | Problem]:
        numbers = {name: number for number, name in enumerate(self._names)}
        for path in _shards(self._source):
            try:
                for sample in samples_of(self._root / path):
                    yield self._sample(path, sample, numbers)
            except DataError as error:
                yield Problem(key=path, kind="unreadable", reason=f"What follows is lost: {error}", left_out=True)

    @property
    def schema(self) -> Schema:
        """Classes as the file of names says; else by number."""
        more = tuple(str(number) for number in range(len(self._names), self._highest + 1))
        schema = Schema(kind=self._kind, parts=self._parts, class_names=(*self._names, *more))
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
        raise DataError("A source of shards has files that end in `.tar`.", received=f"`{self._source}` without any")

    def _sample(self, path: str, sample: ShardSample, numbers: Mapping[str, int]) -> Sample | Problem:
        key = f"{path}/{sample.name}"
        try:
            key = str(own_json(sample).get("key") or key)
            label = label_of(self._kind, sample, numbers)
        except DataError as error:
            return Problem(key=key, kind="no-label", reason=str(error), left_out=True)
        members = parts_of(self._kind, sample)
        if self._parts == ("text",) and members and not _is_utf8(members[0].content):
            return Problem(key=key, kind="unreadable", reason="Its text is not UTF-8.", left_out=True)
        if members is None:
            reason = f"It has only {', '.join(sample.members)}, and needs {' and '.join(self._parts)}."
            return Problem(key=key, kind="no-picture", reason=reason, left_out=True)
        self._parts = self._parts[: len(members)]
        self._note(label)
        return Sample(
            key=key,
            parts=tuple(
                f"{path}#{member.offset}#{member.size_bytes}" if member.content is None else member.content
                for member in members
            ),
            label=label,
            split=split_in(path),
            size_bytes=members[0].size_bytes,
        )

    def _note(self, label: Any) -> None:
        if self._kind == "detection":
            self._highest = max([self._highest, *(int(each["class"]) for each in label)])
        elif type(label) is int and self._kind != "image-pairs":
            self._highest = max(self._highest, label)


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


def meaning_of(sample: ShardSample) -> Meaning:
    """Return which members of a sample are parts of a record."""
    found: Meaning = {}
    for ending in sample.members:
        before, _, last = ending.rpartition(".")
        if last in _IMAGES:
            found.setdefault("mask" if before in _MASKS else before or "image", ending)
        elif ending in _TEXTS:
            found["text"] = ending
    return found


def kind_of(sample: ShardSample) -> str | None:
    """Return the kind of dataset that a sample belongs to; None for none that is known."""
    parts = meaning_of(sample)
    if "image" not in parts:
        return "text-classification" if "text" in parts and "cls" in sample.members else None
    own = own_json(sample)
    if own.get("kind") in KINDS:
        return own["kind"]
    for part, kind in (("mask", "segmentation"), ("target", "image-to-image"), ("image2", "image-pairs")):
        if part in parts:
            return kind
    label = _label_in(own)
    if isinstance(label, list):
        return "detection" if any(isinstance(each, dict) for each in label) else "image-regression"
    return "image-classification" if "cls" in sample.members or label is not None else "image-to-image"


def unread_labels(kind: str, sample: ShardSample) -> list[str]:
    """Return the members of a sample that nothing is read of, where it would get no label for that reason."""
    if kind != "image-to-image" or "target" in meaning_of(sample):
        return []
    return [ending for ending in sample.members if ending != meaning_of(sample)["image"]]


def parts_of(kind: str, sample: ShardSample) -> list[Member] | None:
    """Return the parts of a record, in the order of its kind; None where the first is missing.

    Of ``image-to-image`` the second part may be missing.
    """
    parts = meaning_of(sample)
    found = [sample.members[parts[name]] for name in KINDS[kind] if name in parts]
    return found if len(found) == len(KINDS[kind]) or (kind == "image-to-image" and "image" in parts) else None


def label_of(kind: str, sample: ShardSample, names: Mapping[str, int]) -> Any:
    """Return the label of a sample, in the form of its kind.

    Args:
        kind: of the dataset.
        sample: with its members.
        names: name of a class → its number, where the source has names.

    Raises:
        DataError: where it has none, or one that is not valid.
    """
    if kind in ("segmentation", "image-to-image"):
        return None
    label = _label_in(own_json(sample))
    if label is None and "cls" in sample.members:
        label = (sample.members["cls"].content or b"").decode("utf-8", "replace").strip()
    if kind in ("image-classification", "text-classification", "image-pairs"):
        return _class_number(label, names)
    is_right = _is_object if kind == "detection" else _is_number
    if not isinstance(label, list) or not all(is_right(each) for each in label):
        raise DataError(f"The label of a sample for {kind} is a list.", received=repr(label)[:200])
    return label


def own_json(sample: ShardSample) -> dict[str, Any]:
    """Return the member ``json`` of a sample; empty where it has none.

    Raises:
        DataError: where it is no JSON object.
    """
    member = sample.members.get("json")
    if member is None:
        return {}
    try:
        content = json.loads(member.content or b"")
    except (ValueError, RecursionError) as error:
        raise DataError("A member `json` of a sample is a JSON object.", received=str(error)) from None
    return content if isinstance(content, dict) else {"label": content}


def _label_in(content: Mapping[str, Any]) -> Any:
    return next((content[key] for key in _LABEL_KEYS if content.get(key) is not None), None)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_object(value: Any) -> bool:
    if not isinstance(value, dict) or type(value.get("class")) is not int or not isinstance(value.get("box"), list):
        return False
    return len(value["box"]) == 4 and all(_is_number(each) for each in value["box"])


def _class_number(label: Any, names: Mapping[str, int]) -> int:
    if isinstance(label, str):
        if label in names:
            return names[label]
        if label.isdecimal():
            label = int(label)
    if type(label) is not int or label < 0:
        raise DataError(
            "The class of a sample is a number from 0, or a name that is listed in `classes.txt`.",
            received=repr(label)[:200],
        )
    return label


@dataclass(frozen=True)
class Member:
    """One file in a shard.

    Args:
        offset: where its content starts in the shard, in bytes.
        size_bytes: its size.
        content: of labels and texts; None for what is read later.
    """

    offset: int
    size_bytes: int
    content: bytes | None = None


@dataclass(frozen=True)
class ShardSample:
    """The members of one sample.

    Args:
        name: path in the shard, to the first dot of the file's name.
        members: what they are (``jpg``, ``cls``, ``mask.png``), in lower case → where they are.
    """

    name: str
    members: dict[str, Member] = field(default_factory=dict)


def samples_of(path: Path) -> Iterator[ShardSample]:
    """Yield the samples of a shard; texts and labels are read, images are not.

    Raises:
        DataError: where it is no tar file, compressed, or cut off; what stands before was yielded.
    """
    current = ShardSample("")
    try:
        with tarfile.open(path, "r:") as shard:
            while (member := shard.next()) is not None:
                vars(shard)["members"].clear()  # else it remembers each of a million members
                if not member.isfile() or member.issparse():
                    continue
                name, ending = _name_and_ending(member.name)
                if name != current.name and current.members:
                    yield current
                if name != current.name:
                    current = ShardSample(name)
                if ending and ending not in current.members:
                    current.members[ending] = _member(shard, member, ending)
            _check_end(path, shard.offset)
    except (tarfile.TarError, EOFError, OSError) as error:
        if current.members:
            yield current
        raise _no_shard(path, error) from error
    if current.members:
        yield current


def read_member(path: Path, offset: int, size_bytes: int) -> bytes:
    """Return the content of a member.

    Raises:
        DatapointError: where the shard cannot be read, or ends before.
    """
    try:
        with path.open("rb") as shard:
            shard.seek(offset)
            content = shard.read(size_bytes)
    except OSError as error:
        raise DatapointError(f"{path}#{offset}", f"its shard cannot be read ({error.strerror}).") from error
    if len(content) < size_bytes:
        raise DatapointError(f"{path}#{offset}", f"its shard is cut off: {len(content)} of {size_bytes} bytes.")
    return content


def _check_end(path: Path, offset: int) -> None:
    """Raise unless an empty block ends the archive: the reader takes one that was cut off between files for whole."""
    with path.open("rb") as file:
        file.seek(offset)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"it is cut off at byte {offset}")


def _name_and_ending(path: str) -> tuple[str, str]:
    folder, slash, file = path.removeprefix("./").rpartition("/")
    stem, _, ending = file.partition(".")
    return f"{folder}{slash}{stem}", ending.lower()


def _member(shard: tarfile.TarFile, member: tarfile.TarInfo, ending: str) -> Member:
    content = None
    if ending.rpartition(".")[2] in _SMALL and member.size <= _SMALL_BYTES:
        file = shard.extractfile(member)
        content = b"" if file is None else file.read()
    return Member(member.offset_data, member.size, content)


def _no_shard(path: Path, error: Exception) -> DataError:
    try:
        with path.open("rb") as file:
            start = file.read(6)
    except OSError:  # such as a link to itself: the first error says it
        start = b""
    if path.name.lower().endswith(COMPRESSED) or start.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")):
        return DataError(
            "Shards are plain tar files, so that their samples can be read in any order.",
            received=f"`{path}`, which is compressed",
            advice="Unpack it first, with `gunzip` for example: images gain nothing from being compressed twice.",
        )
    return DataError("A shard is a tar file.", received=f"`{path}`: {error}", advice="Get it anew.")
