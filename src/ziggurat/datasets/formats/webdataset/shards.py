"""Content of WebDataset shards: samples, the meaning of their members, and their labels."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import KINDS

__all__ = [
    "COMPRESSED",
    "Member",
    "ShardSample",
    "kind_of",
    "label_of",
    "own_json",
    "parts_of",
    "read_member",
    "samples_of",
    "unread_labels",
]

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
    is_own = own_json(sample).get("kind") in KINDS
    own = ("json",) if is_own else ()
    return [ending for ending in sample.members if ending not in (meaning_of(sample)["image"], *own)]


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
    if not isinstance(label, list) or not (kind == "detection" or all(_is_number(each) for each in label)):
        raise DataError(f"The label of a sample for {kind} is {repr(label)[:200]}, not a list of numbers.")
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
        raise DataError(f"A member `json` of a sample is not a JSON object: {str(error).rstrip('.')}.") from None
    return content if isinstance(content, dict) else {"label": content}


def _label_in(content: Mapping[str, Any]) -> Any:
    return next((content[key] for key in _LABEL_KEYS if content.get(key) is not None), None)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


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
            f"`{path}` is compressed; shards are plain tar files, so that their samples can be read in any order.",
            advice="Unpack it first, with `gunzip` for example: images gain nothing from being compressed twice.",
        )
    return DataError(f"`{path}` is no tar file that can be read: {str(error).rstrip('.')}.", advice="Get it anew.")
