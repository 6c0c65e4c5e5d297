"""Content of TFRecord files: frames, ``Example`` messages, and the meaning of their features."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from ziggurat.datasets.formats.shared.numbered_classes import MOST_CLASSES
from ziggurat.datasets.formats.shared.text_files import lines_of
from ziggurat.errors import DataError, DatapointError
from ziggurat.protobuf_wire import as_message, bytes_field, fields, fixed_size_values, integers, masked_crc32c, varint

__all__ = [
    "BOX_FEATURES",
    "KEY",
    "LABEL",
    "PART_FEATURES",
    "ClassNumbers",
    "Feature",
    "Frame",
    "FrameError",
    "frames_of",
    "kind_of",
    "label_of",
    "pack_features",
    "read_frame",
    "text_of",
    "unpack_features",
]

_LENGTH: Final = struct.Struct("<QI")
_CHECKSUM: Final = struct.Struct("<I")
_COMPRESSED: Final = (b"\x1f\x8b", b"\x78\x01", b"\x78\x9c", b"\x78\xda")

KEY: Final = "ziggurat/key"
LABEL: Final = "ziggurat/label"
PART_FEATURES: Final = {
    "image": "image/encoded",
    "mask": "image/segmentation/class/encoded",
    "target": "image/target/encoded",
    "image2": "image/second/encoded",
    "text": "text",
}
"""Part of a record → feature that holds it."""
BOX_FEATURES: Final = (
    "image/object/bbox/xmin",
    "image/object/bbox/ymin",
    "image/object/bbox/xmax",
    "image/object/bbox/ymax",
)
_MAP_ITEM: Final = re.compile(r"item\s*\{(.*?)\}", re.DOTALL)
_MAP_FIELD: Final = re.compile(r"""\b(id|name|display_name)\s*:\s*(?:"([^"]*)"|'([^']*)'|(-?\d+))""")
_NUMBERED_LINE: Final = re.compile(r"(\d+):(.*)")


Feature = list[bytes] | list[int] | list[float]
"""The values of one feature of an ``Example``: all bytes, all int64, or all float32."""


class FrameError(DataError):
    """From here on a file has no frames: it is cut off, damaged, compressed, or something else."""

    code = "frame"


class Frame(NamedTuple):
    """One record.

    Args:
        offset: where its frame starts, in bytes.
        content: None where it is not what its checksum says.
    """

    offset: int
    content: bytes | None


def frames_of(path: Path) -> Iterator[Frame]:
    """Yield the records of a file, with their checksums checked.

    Raises:
        FrameError: where there is no frame; what follows cannot be found.
    """
    try:
        size_bytes = path.stat().st_size
        with path.open("rb", buffering=1 << 20) as file:
            offset = 0
            while offset < size_bytes:
                content, length = _content(file, path, offset, size_bytes)
                yield Frame(offset, content)
                offset += _LENGTH.size + length + _CHECKSUM.size
    except OSError as error:
        raise FrameError(f"The TFRecord file `{path}` cannot be read: {error.strerror}.") from error


def read_frame(path: Path, offset: int) -> bytes:
    """Return the record whose frame starts at ``offset``.

    Raises:
        DatapointError: where it cannot be read, or its checksum is wrong.
    """
    key = f"{path}#{offset}"
    try:
        with path.open("rb") as file:
            file.seek(offset)
            content, _length = _content(file, path, offset, path.stat().st_size)
    except (OSError, FrameError) as error:
        raise DatapointError(key, f"it cannot be read ({error}).") from error
    if content is None:
        raise DatapointError(key, "its checksum is wrong; the file is damaged.")
    return content


def _content(file: BinaryIO, path: Path, offset: int, size_bytes: int) -> tuple[bytes | None, int]:
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise _no_frame(path, f"cut off at byte {offset}")
    length, checksum = _LENGTH.unpack(head)
    if checksum != masked_crc32c(head[:8]):
        if offset == 0 and head[:2] in _COMPRESSED:
            raise _no_frame(path, "a compressed file, which has no random access", "Decompress it first.")
        raise _no_frame(path, f"no record at byte {offset}")
    if offset + _LENGTH.size + length + _CHECKSUM.size > size_bytes:
        raise _no_frame(path, f"cut off in the record at byte {offset}")
    content = file.read(length)
    return (content if _CHECKSUM.unpack(file.read(4))[0] == masked_crc32c(content) else None), length


def _no_frame(path: Path, received: str, advice: str = "Get it anew.") -> FrameError:
    return FrameError(f"`{path}` is no TFRecord file, or is damaged: {received}.", advice=advice)


def unpack_features(message: bytes) -> dict[str, Feature]:
    """Return the features of a serialized ``Example``.

    Raises:
        WireFormatError: where it is none.
    """
    features: dict[str, Feature] = {}
    for number, content in fields(message):
        if number != 1 or not isinstance(content, memoryview):
            continue
        for _number, entry in fields(content):
            name, value = b"", memoryview(b"")
            for field, part in fields(as_message(entry)):
                if field == 1:
                    name = bytes(as_message(part))
                elif field == 2:
                    value = as_message(part)
            features[name.decode("utf-8", "replace")] = _feature(value)
    return features


def pack_features(features: Mapping[str, Feature]) -> bytes:
    """Return a serialized ``Example``; its features are in the order of their names, as TensorFlow sorts them."""
    entries = b""
    for name in sorted(features):
        entries += bytes_field(1, bytes_field(1, name.encode()) + bytes_field(2, _packed_feature(features[name])))
    return bytes_field(1, entries)


def _feature(value: memoryview) -> Feature:
    """Return the values of a ``Feature``: one of a list of bytes, of floats, or of integers."""
    for number, content in fields(value):
        inside = as_message(content)
        if number == 1:
            return [bytes(as_message(part)) for _, part in fields(inside)]
        if number == 2:
            return np.frombuffer(fixed_size_values(inside, 1, 4), "<f4").tolist()
        if number == 3:
            return integers(inside)
    return []


def _packed_feature(values: Feature) -> bytes:
    if values and isinstance(values[0], bytes):
        return bytes_field(1, b"".join(bytes_field(1, value) for value in values if isinstance(value, bytes)))
    if values and isinstance(values[0], float):
        return bytes_field(2, bytes_field(1, np.asarray(values, "<f4").tobytes()))
    return bytes_field(3, bytes_field(1, b"".join(varint(int(value) & 0xFFFFFFFFFFFFFFFF) for value in values)))


class ClassNumbers:
    """What the numbers of classes in a source are called, and which class of ours they are; one name is one class.

    Args:
        names: number in the source → name; empty if not given.
        first: number in the source of our class 0, where there are no names.
    """

    def __init__(self, names: Mapping[int, str], first: int) -> None:
        self.listed = [names[number] for number in sorted(names)]
        self._first = first
        self._by_name = {name: place for place, name in enumerate(dict.fromkeys(self.listed))}
        self._known = {number: self._by_name[name] for number, name in names.items()}
        self._seen = {place: name for name, place in self._by_name.items()}

    def number(self, number: int | None, text: str = "") -> int:
        """Return our number of a class.

        Args:
            number: in the source; None where it has only names.
            text: its name, where the source has it.

        Raises:
            DataError: where the class is none of the source's.
        """
        if number is None:
            if text not in self._by_name and (self._known or not text):
                raise DataError("A class without a number has a name that is listed.", received=f"`{text}`")
            place = self._by_name.setdefault(text, len(self._by_name))  # without a list: in the order of their coming
            self._seen.setdefault(place, text)
            return place
        place = self._known.get(number) if self._known else number - self._first
        if place is None or not 0 <= place <= MOST_CLASSES:
            raise DataError("A class has a number that the source lists.", received=str(number))
        if not self._known and (text or place not in self._seen):
            self._seen[place] = text
        return place

    def name(self, number: int) -> str:
        """Return the name of one of our classes; the number itself if it has none."""
        return self._seen.get(number) or str(number)

    @property
    def names(self) -> tuple[str, ...]:
        """By our number; the number itself if it has no name."""
        return tuple(self.name(place) for place in range(max(self._seen, default=-1) + 1))

    @classmethod
    def of_file(cls, path: Path | None, first: int) -> ClassNumbers:
        """Return the classes of a list of names, of lines ``0:name``, or of a label map (``.pbtxt``)."""
        if path is None:
            return cls({}, first)
        lines = [line.text.strip() for line in lines_of(path)]
        if path.suffix == ".pbtxt":
            return cls(label_map("\n".join(lines)), first)
        numbered = [_NUMBERED_LINE.fullmatch(line) for line in lines]
        if all(numbered):
            return cls({int(found[1]): found[2].strip() for found in numbered if found}, first)
        return cls(dict(enumerate(lines, start=first)), first)


def kind_of(features: Mapping[str, Feature]) -> str | None:
    """Return the kind of dataset that a record with these features belongs to; None for none that is known."""
    if not features.get("image/encoded"):
        return "text-classification" if "text" in features and LABEL in features else None
    if BOX_FEATURES[0] in features or "image/object/class/label" in features:
        return "detection"
    if PART_FEATURES["mask"] in features:
        return "segmentation"
    if PART_FEATURES["image2"] in features:
        return "image-pairs"
    if "image/class/label" in features or "image/class/text" in features:
        return "image-classification"
    if PART_FEATURES["target"] in features:
        return "image-to-image"
    if LABEL not in features:
        return None
    return "image-to-image" if text_of(features, LABEL) == "null" else "image-regression"


def label_of(kind: str, features: Mapping[str, Feature], classes: ClassNumbers) -> Any:
    """Return the label of a record, in the form of its kind; None for objects, which ``DetectionRecords`` reads.

    Raises:
        DataError: where it has none, or one that is not valid.
    """
    if LABEL in features:
        return _own_label(features)
    if kind == "image-classification":
        numbers, text = features.get("image/class/label", []), text_of(features, "image/class/text")
        if len(numbers) > 1 or not (numbers or text):
            raise DataError("A record has one class.", received=f"{len(numbers)} in `image/class/label`")
        return classes.number(int(numbers[0]) if numbers else None, text)
    return None


def text_of(features: Mapping[str, Feature], name: str) -> str:
    """Return a feature that is a text; empty where there is none."""
    values = features.get(name, [])
    return _decoded(values[0]) if values else ""


def _decoded(value: bytes | float) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _own_label(features: Mapping[str, Feature]) -> Any:
    try:
        return json.loads(text_of(features, LABEL))
    except ValueError as error:
        raise DataError(f"`{LABEL}` is not JSON: {str(error).rstrip('.')}.") from error


def label_map(text: str) -> dict[int, str]:
    """Return id → name of the items of a label map.

    Raises:
        DataError: where it has none.
    """
    found: dict[int, str] = {}
    for item in _MAP_ITEM.findall(text):
        fields = {name: double or single or number for name, double, single, number in _MAP_FIELD.findall(item)}
        if "id" in fields:
            found[int(fields["id"])] = fields.get("display_name") or fields.get("name", fields["id"])
    if not found:
        raise DataError("The label map has no items with an id and a name.")
    return found
