"""Datasets that each have one thing which a format may be unable to hold."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np
from test_coordinate_frames import encoded as turned

from ziggurat.datasets.formats.shared.exports import encoded_part
from ziggurat.records.objects import ImageObject
from ziggurat.records.run_lengths import run_lengths
from ziggurat.records.schema import Column, Schema

__all__ = ["DATASETS", "Content"]

Content = tuple[Schema, dict[str, list[tuple[str, tuple[Any, ...], Any]]]]
"""Schema, and split → (key, parts, label)."""

GRAY = encoded_part(np.arange(48, dtype=np.uint8).reshape(6, 8), "")
NAMES = ("straße 7/ä (1).png", unicodedata.normalize("NFD", "träge/é.png"), "雪/🦊.png")
LINES = ("a\nb.png", "c\td.png")


def image(number: int, height: int = 6, width: int = 8, dtype: type = np.uint8) -> bytes:
    """Return an image in color, (H, W, 3), as PNG."""
    values = np.random.default_rng(number).integers(0, np.iinfo(dtype).max, (height, width, 3), dtype)
    return encoded_part(values, "")


def mask(*values: int, dtype: type = np.uint8) -> bytes:
    """Return a mask of the values, (6, 8), as PNG."""
    return encoded_part(np.resize(np.array(values, dtype), (6, 8)), "")


def samples(*rows: tuple[str, tuple[Any, ...], Any]) -> dict[str, list[tuple[str, tuple[Any, ...], Any]]]:
    """Return the rows, with the last of them in the split for validation."""
    return {"train": list(rows[:-1]), "val": list(rows[-1:])}


def classes(*images: bytes, names: tuple[str, ...] = ("cat", "dog"), keys: tuple[str, ...] = ()) -> Content:
    """Return images of classes."""
    keys = keys or tuple(f"{number}.png" for number in range(len(images)))
    rows = [(key, (each,), number % 2) for number, (key, each) in enumerate(zip(keys, images, strict=True))]
    return Schema(kind="image-classification", class_names=names), samples(*rows)


def numbers(
    *labels: list[float], content: bytes = b"", keys: tuple[str, ...] = (), names: tuple[str, ...] = ()
) -> Content:
    """Return images with numbers."""
    keys = keys or tuple(f"{number}.png" for number in range(len(labels)))
    rows = [
        (key, (content or image(number),), label) for number, (key, label) in enumerate(zip(keys, labels, strict=True))
    ]
    return Schema(kind="image-regression", class_names=names, details={"values": len(labels[0])}), samples(*rows)


def objects(
    *things: ImageObject,
    content: bytes = b"",
    keys: tuple[str, ...] = ("a.png", "b.png"),
    names: tuple[str, ...] = ("cat", "dog"),
    last: tuple[ImageObject, ...] = (),
) -> Content:
    """Return images of which the last has an object of each of the first two classes, and the others ``things``."""
    plain = [each.as_json() for each in last or (box(0, 1, 1, 4, 5), box(1, 1, 1, 4, 5))]
    rows = [(key, (content or image(number),), [each.as_json() for each in things]) for number, key in enumerate(keys)]
    return Schema(kind="detection", class_names=names), samples(*rows, ("last.png", (image(9),), plain))


def box(number: int, left: float, top: float, right: float, bottom: float, **more: Any) -> ImageObject:
    """Return an object."""
    return ImageObject(class_number=number, box=(left, top, right, bottom), **more)


def masks(*parts: bytes, content: bytes = b"", keys: tuple[str, ...] = (), **more: Any) -> Content:
    """Return images with masks."""
    keys = keys or tuple(f"{number}.png" for number in range(len(parts)))
    names = more.pop("class_names", ("sky", "sea", "sand"))
    rows = [
        (key, (content or image(number), part), None)
        for number, (key, part) in enumerate(zip(keys, parts, strict=True))
    ]
    return Schema(kind="segmentation", class_names=names, **more), samples(*rows)


def pairs(kind: str, content: bytes = b"", keys: tuple[str, ...] = ("a.png", "b.png"), target: bool = True) -> Content:
    """Return images with another image, and whether both show the same."""
    is_pair = kind == "image-pairs"
    rows = [
        (key, (content or image(number), image(number + 5))[: 1 + target], number % 2 if is_pair else None)
        for number, key in enumerate(keys)
    ]
    schema = Schema(kind=kind, class_names=("different", "same") if is_pair else ())
    if not target:
        schema = Schema(kind=kind, parts=("image",))
    return schema, samples(*rows)


def texts(*words: str, names: tuple[str, ...] = ("good", "bad"), keys: tuple[str, ...] = ()) -> Content:
    """Return texts of classes."""
    keys = keys or tuple(f"t/{number}" for number in range(len(words)))
    rows = [(key, (word.encode(),), number % 2) for number, (key, word) in enumerate(zip(keys, words, strict=True))]
    return Schema(kind="text-classification", class_names=names), samples(*rows)


def table(*rows: list[Any], keys: tuple[str, ...] = ()) -> Content:
    """Return rows of a number, a class, which is the target, and a text."""
    values = ("a", "b,c")
    columns = (
        Column(name="größe", type="number", missing=sum(row[0] is None for row in rows)),
        Column(name="art", type="category", categories=values),
        Column(name="words", type="text"),
    )
    keys = keys or tuple(f"r/{number}" for number in range(len(rows)))
    found = [(key, (json.dumps(row).encode(),), values.index(row[1])) for key, row in zip(keys, rows, strict=True)]
    return Schema(kind="table", columns=columns, target="art", class_names=values), samples(*found)


HOLE = np.ones((6, 8), np.uint8)
HOLE[2:4, 3:6] = 0
TRIANGLE = (1.0, 1.0, 6.0, 1.0, 6.0, 5.0)

OUTLINED = box(0, 1, 1, 6, 5, polygons=(TRIANGLE,))

DATASETS: Mapping[str, Mapping[str, Content]] = {
    "image-classification": {
        "image files as they are": classes(image(0), image(1), image(2)),
        "images of several sizes": classes(image(0), image(1, 9, 4), image(2)),
        "gray among color": classes(image(0), GRAY, image(2)),
        "16 bits": classes(*(encoded_part(np.full((6, 8), 4000 + number, np.uint16), "") for number in range(3))),
        "images turned by EXIF": classes(turned(6), turned(6), turned(6)),
        "Unicode names": classes(*map(image, range(3)), names=("Größe", "雪 🦊"), keys=NAMES),
        "line breaks in keys": classes(image(0), image(1), keys=LINES),
        "line breaks in classes": classes(image(0), image(1), names=("a\nb", "c")),
        "classes without images": classes(image(0), image(1), names=("cat", "dog", "owl")),
    },
    "image-regression": {
        "numbers": numbers([0.1, -1e-7], [1 / 3, 1e300]),
        "several classes of an image": numbers([1.0, 1.0], [0.0, 1.0], names=("cat", "dog")),
        "images turned by EXIF": numbers([0.5], [1.5], content=turned(6)),
        "Unicode names": numbers([0.5], [1.5], [2.5], keys=NAMES),
        "line breaks in keys": numbers([0.5], [1.5], keys=LINES),
    },
    "detection": {
        "boxes": objects(box(0, 1 / 3, 0.1, 6.7, 5.9), box(1, 0, 0, 8, 6)),
        "images without objects": objects(),
        "images turned by EXIF": objects(box(0, 3, 10, 24, 30), content=turned(6)),
        "Unicode names": objects(box(0, 1, 1, 3, 3), keys=NAMES, names=("Größe", "雪 🦊")),
        "line breaks in keys": objects(box(0, 1, 1, 3, 3), keys=LINES),
        "line breaks in classes": objects(box(0, 1, 1, 3, 3), names=("a\nb", "c")),
        "boxes beyond the image": objects(box(0, -2, -1, 9, 8)),
        "outlines": objects(OUTLINED, last=(OUTLINED, box(1, 1, 1, 6, 5, polygons=(TRIANGLE,)))),
        "outlines and boxes together": objects(OUTLINED),
        "several outlines": objects(box(0, 1, 1, 8, 6, polygons=(TRIANGLE, (7, 5, 8, 5, 8, 6)))),
        "masks": objects(box(0, 0, 0, 8, 6, mask=run_lengths(HOLE))),
        "crowds": objects(box(0, 1, 1, 4, 5, crowd=True)),
        "difficult objects": objects(box(0, 1, 1, 4, 5, difficult=True)),
        "regions without a class": objects(box(-1, 1, 1, 4, 5)),
        "further fields": objects(box(0, 1, 1, 4, 5, details={"mood": "calm"})),
        "scores": objects(box(0, 1, 1, 4, 5, details={"score": 0.25})),
        "classes without objects": objects(box(0, 1, 1, 3, 3), names=("cat", "dog", "owl")),
    },
    "segmentation": {
        "masks": masks(mask(0, 1, 2), mask(2, 1), class_names=("sky", "sea", "sand")),
        "pixels to ignore": masks(mask(0, 1, 255), mask(2, 255), ignore_class=255),
        "another number to ignore": masks(mask(0, 1, 7), mask(2, 7), ignore_class=7),
        "colors": masks(mask(0, 1, 2), mask(2), colours=((1, 2, 3), (4, 5, 6), (7, 8, 9))),
        "numbers above 255": masks(
            mask(0, 300, dtype=np.uint16), mask(1, 299, dtype=np.uint16), class_names=tuple(map(str, range(301)))
        ),
        "images turned by EXIF": masks(
            *(encoded_part(np.ones((60, 44), np.uint8), ""),) * 2, content=turned(6)
        ),
        "Unicode names": masks(mask(0, 1), mask(1), mask(2), keys=NAMES, class_names=("Größe", "雪 🦊", "c")),
        "line breaks in keys": masks(mask(0, 1), mask(1, 2), keys=LINES),
        "line breaks in classes": masks(mask(0, 1), mask(1), class_names=("a\nb", "c")),
    },
    "image-to-image": {
        "targets": pairs("image-to-image"),
        "images that are their own target": pairs("image-to-image", target=False),
        "images turned by EXIF": pairs("image-to-image", turned(6)),
        "Unicode names": pairs("image-to-image", keys=NAMES),
        "line breaks in keys": pairs("image-to-image", keys=LINES),
    },
    "image-pairs": {
        "pairs": pairs("image-pairs"),
        "images turned by EXIF": pairs("image-pairs", turned(6)),
        "Unicode names": pairs("image-pairs", keys=NAMES),
        "line breaks in keys": pairs("image-pairs", keys=LINES),
    },
    "text-classification": {
        "texts": texts("a b c", "good, or not", 'she said "no"'),
        "line breaks": texts("two\nlines", "three\r\nlines\n", " blanks "),
        "Unicode names": texts("雪 🦊", "é", "ß", names=("Größe", "雪 🦊"), keys=NAMES),
        "zero signs": texts("a\0b", "c"),
    },
    "table": {
        "rows": table([0.1, "a", "x"], [None, "b,c", "two\nlines"], [1e300, "a", ' "quoted" ']),
        "Unicode names": table([1.0, "a", "雪 🦊"], [2.0, "b,c", "ß"], keys=NAMES[:2]),
        "zero signs": table([1.0, "a", "x"], [2.0, "b,c", "a\0b"]),
    },
}  # fmt: skip
"""Kind of the dataset → what a format may be unable to hold → a dataset that has it."""
