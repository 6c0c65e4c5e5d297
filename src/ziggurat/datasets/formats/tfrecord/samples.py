"""Meaning of the features of an ``Example``: images, classes, boxes, and additions of Ziggurat's exporter.

TensorFlow's tools have written these names since 2015: ``image/encoded``, ``image/class/label`` and
``image/class/text`` for classes, ``image/object/bbox/*`` (from 0 to 1) and ``image/object/class/*`` for objects, and
``image/segmentation/class/encoded`` for masks. Ziggurat's exporter also writes ``ziggurat/key`` and
``ziggurat/label`` (JSON), because 32-bit floats between 0 and 1 do not represent pixel coordinates exactly.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from PIL import Image

from ziggurat.datasets.formats.shared.list_files import lines_of
from ziggurat.datasets.wire_format import Feature
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject, objects_to_json

__all__ = ["KEY", "LABEL", "PART_FEATURES", "ClassNumbers", "kind_of", "label_of", "text_of"]

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
_BOX: Final = ("image/object/bbox/xmin", "image/object/bbox/ymin", "image/object/bbox/xmax", "image/object/bbox/ymax")
_MAP_ITEM: Final = re.compile(r"item\s*\{(.*?)\}", re.DOTALL)
_MAP_FIELD: Final = re.compile(r"""\b(id|name|display_name)\s*:\s*(?:"([^"]*)"|'([^']*)'|(-?\d+))""")
_NUMBERED_LINE: Final = re.compile(r"(\d+):(.*)")


class ClassNumbers:
    """What the numbers of classes in a source are called, and which class of ours they are.

    Args:
        names: number in the source → name; empty if not given.
        first: number in the source of our class 0, where there are no names.
    """

    def __init__(self, names: Mapping[int, str], first: int) -> None:
        self._first = first
        self._known = {number: place for place, number in enumerate(sorted(names))}
        self._seen: dict[int, str] = {place: names[number] for number, place in self._known.items()}
        self._by_name = {name: place for place, name in self._seen.items()}

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
        if place is None or place < 0:
            raise DataError("A class has a number that the source lists.", received=str(number))
        if not self._known and (text or place not in self._seen):
            self._seen[place] = text
        return place

    @property
    def names(self) -> tuple[str, ...]:
        """By our number; the number itself if it has no name."""
        return tuple(self._seen.get(place) or str(place) for place in range(max(self._seen, default=-1) + 1))

    @classmethod
    def of_file(cls, path: Path | None, first: int) -> ClassNumbers:
        """Return the classes of a list of names, of lines ``0:name``, or of a label map (``.pbtxt``)."""
        if path is None:
            return cls({}, first)
        lines = [line.text.strip() for line in lines_of(path)]
        if path.suffix == ".pbtxt":
            return cls(_label_map("\n".join(lines)), first)
        numbered = [_NUMBERED_LINE.fullmatch(line) for line in lines]
        if all(numbered):
            return cls({int(found[1]): found[2].strip() for found in numbered if found}, first)
        return cls(dict(enumerate(lines, start=first)), first)


def kind_of(features: Mapping[str, Feature]) -> str | None:
    """Return the kind of dataset that a record with these features belongs to; None for none that is known."""
    if not features.get("image/encoded"):
        return "text-classification" if "text" in features and LABEL in features else None
    if _BOX[0] in features or "image/object/class/label" in features:
        return "detection"
    if PART_FEATURES["mask"] in features:
        return "segmentation"
    if PART_FEATURES["image2"] in features:
        return "image-pairs"
    if "image/class/label" in features or "image/class/text" in features:
        return "image-classification"
    if PART_FEATURES["target"] in features:
        return "image-to-image"
    return "image-regression" if LABEL in features else None


def label_of(kind: str, features: Mapping[str, Feature], classes: ClassNumbers) -> Any:
    """Return the label of a record, in the form of its kind.

    Raises:
        DataError: where it has none, or one that is not valid.
    """
    if LABEL in features:
        return _own_label(features)
    if kind == "detection":
        return _objects(features, classes)
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
        raise DataError(f"`{LABEL}` is JSON.", received=str(error)) from error


def _objects(features: Mapping[str, Feature], classes: ClassNumbers) -> list[dict[str, Any]]:
    columns = [features.get(name, []) for name in _BOX]
    numbers, texts = features.get("image/object/class/label", []), features.get("image/object/class/text", [])
    count = len(columns[0])
    if any(len(column) != count for column in columns) or len(numbers or texts) != count:
        lengths = [*(len(column) for column in columns), len(numbers or texts)]
        raise DataError("Each object has four sides and a class.", received=f"features of lengths {lengths}")
    width, height = _size(features) if count else (1, 1)
    difficult, crowd = _flags(features, "difficult", count), _flags(features, "is_crowd", count)
    objects: list[ImageObject] = []
    for at, (left, top, right, bottom) in enumerate(zip(*columns, strict=True)):
        text = _decoded(texts[at]) if at < len(texts) else ""
        box = (float(left) * width, float(top) * height, float(right) * width, float(bottom) * height)
        number = classes.number(int(numbers[at]) if numbers else None, text)
        objects.append(ImageObject(class_number=number, box=box, difficult=difficult[at], crowd=crowd[at]))
    return objects_to_json(objects)


def _flags(features: Mapping[str, Feature], name: str, count: int) -> list[bool]:
    values = [bool(value) for value in features.get(f"image/object/{name}", [])]
    return values if len(values) == count else [False] * count


def _size(features: Mapping[str, Feature]) -> tuple[int, int]:
    """Return width and height of an image, from its header where the record does not say."""
    width, height = features.get("image/width", []), features.get("image/height", [])
    if width and height:
        return int(width[0]), int(height[0])
    content = features["image/encoded"][0]
    try:
        with Image.open(io.BytesIO(content if isinstance(content, bytes) else b"")) as image:
            return image.size
    except (OSError, ValueError, TypeError) as error:
        raise DataError("An image says how large it is.", received=str(error)) from error


def _label_map(text: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for item in _MAP_ITEM.findall(text):
        fields = {name: double or single or number for name, double, single, number in _MAP_FIELD.findall(item)}
        if "id" in fields:
            found[int(fields["id"])] = fields.get("display_name") or fields.get("name", fields["id"])
    if not found:
        raise DataError("A label map has items with an id and a name.", received="none")
    return found
