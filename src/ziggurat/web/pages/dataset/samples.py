"""Samples of a dataset for browsers: label, shapes and values of one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.errors import ZigguratError
from ziggurat.records.run_lengths import mask_outlines
from ziggurat.web.pages.dataset.sample_images import MASK_PALETTE, mask_png

__all__ = [
    "MASK_PALETTE",
    "SampleView",
    "Shape",
    "class_title",
    "label_as_json",
    "label_in_words",
    "mask_png",
    "shape_of",
    "view_sample",
]


_PICTURES: Final = ("image", "image2", "target", "mask")
_TEXT_CHARACTERS: Final = 300
_LONGEST_CHARACTERS: Final = 100_000
_COLOURS: Final = 8
_FEW_VALUES: Final = 200
_TOLERANCE: Final = 0.02
_MOST_TOLERANCE_PX: Final = 1.0
"""So far, or by that part of its shorter side, the drawn border of a mask may be beside the true one."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A box, or an outline, in pixels of the stored image.

    Args:
        number: of the object, from 1.
        name: of its class; ``ignored`` for regions without one.
        colour: number of the color of its class, from 0; -1 for none.
        box: x, y, width, height.
        outlines: points of each, as SVG writes them.
        region: path of SVG around its mask in run lengths, holes included; empty for none.
        notes: ``crowd``, ``difficult``, ``mask`` where they hold.
    """

    number: int
    name: str
    colour: int
    box: tuple[float, float, float, float]
    outlines: tuple[str, ...]
    region: str
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SampleView:
    """A sample as a page shows it.

    Args:
        entry: what the catalog knows of it.
        label: in words; empty for none.
        problems: that were noted of it.
        pictures: (number, name) of the parts that are images and no masks.
        mask: number of the part that is a mask; None for none.
        size: width and height of the stored image; None if unknown.
        shapes: objects in the image.
        more_shapes: objects beyond those.
        text: of a text set, cut where it is long; of an array, what it is; empty for others.
        values: of a table: the value of each column, in order.
        fault: why it could not be read; empty where it could.
    """

    entry: Any
    label: str
    problems: Sequence[Any]
    pictures: tuple[tuple[int, str], ...]
    mask: int | None
    size: tuple[int, int] | None
    shapes: tuple[Shape, ...] = ()
    more_shapes: int = 0
    text: str = ""
    values: tuple[Any, ...] = ()
    fault: str = ""

    @property
    def name(self) -> str:
        """Name of its file, without folders; its key where that has none."""
        return self.entry.key.rpartition("/")[2] or self.entry.key

    @property
    def place(self) -> str:
        """``SPLIT/ROW``, which names it in forms."""
        return f"{self.entry.split}/{self.entry.row}"

    @property
    def is_tiny(self) -> bool:
        """Whether its pixels are to be seen as squares."""
        return self.size is not None and max(self.size) <= 64


def view_sample(
    dataset: Any,
    entry: Any,
    problems: Sequence[Any] = (),
    *,
    most_shapes: int = 200,
    most_regions: int = 200,
    is_whole: bool = False,
) -> SampleView:
    """Return how a sample is shown.

    Args:
        dataset: as ``ziggurat.workspace.datasets.Datasets.open`` returns it.
        entry: what its catalog knows of the sample.
        problems: that were noted of it.
        most_shapes: objects that are drawn at most.
        most_regions: of the first of these, so many masks are drawn too: following their borders takes its time.
        is_whole: whether its text or array is shown in full.
    """
    schema, image = dataset.schema, dataset.manifest.image
    parts = list(enumerate(schema.parts))
    size = dataset.stored_size(entry)
    shown: dict[str, Any] = {}
    if schema.kind == "detection" and isinstance(entry.label, list):
        shown["shapes"] = tuple(
            shape_of(number, each, class_title(each["class"], schema.class_names), with_region=number <= most_regions)
            for number, each in enumerate(entry.label[:most_shapes], 1)
        )
        shown["more_shapes"] = max(0, len(entry.label) - most_shapes)
    elif image is None:
        shown = _content(dataset, entry, is_whole=is_whole)
    return SampleView(
        entry=entry,
        label=label_in_words(entry.label, schema),
        problems=problems,
        pictures=tuple((number, name) for number, name in parts if image and name in _PICTURES and name != "mask"),
        mask=next((number for number, name in parts if name == "mask"), None),
        size=size,
        **shown,
    )


def label_in_words(label: Any, schema: Any) -> str:
    """Return the name of a class, how often each class is in an image, or the numbers that are to be predicted."""
    names = schema.class_names
    if label is None:
        return ""
    if schema.kind == "image-pairs":
        return "same" if label else "not the same"
    if isinstance(label, list):
        if label and isinstance(label[0], Mapping):
            found = Counter(class_title(each["class"], names) for each in label)
            return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in found.most_common())
        if schema.kind == "detection":
            return "no object"
        chosen = schema.chosen_names(label)
        if chosen is not None:
            return ", ".join(chosen) or "none"
        return ", ".join(f"{each:.5g}" if isinstance(each, int | float) else str(each) for each in label)
    if names and isinstance(label, int):
        return class_title(label, names)
    return f"{label:.6g}" if isinstance(label, float) else str(label)


def label_as_json(label: Any) -> str:
    """Return a label as JSON for people to change, each object on a line of its own."""
    if isinstance(label, list) and label and isinstance(label[0], Mapping):
        lines = ",\n ".join(json.dumps(each, ensure_ascii=False) for each in label)
        return f"[\n {lines}\n]"
    return "" if label is None else json.dumps(label, ensure_ascii=False)


def shape_of(number: int, content: Mapping[str, Any], name: str, *, with_region: bool = True) -> Shape:
    """Return how an object is drawn.

    Args:
        number: of the object, from 1.
        content: as a label writes it, in pixels of the stored image.
        name: of its class.
        with_region: whether its mask is drawn.
    """
    left, top, right, bottom = content["box"]
    outlines = tuple(
        " ".join(f"{x:g},{y:g}" for x, y in zip(points[::2], points[1::2], strict=False))
        for points in content.get("polygons", ())
    )
    known = content["class"]
    return Shape(
        number=number,
        name=name,
        colour=known % _COLOURS if known >= 0 else -1,
        box=(left, top, max(0.0, right - left), max(0.0, bottom - top)),
        outlines=outlines,
        region=_region(content.get("mask")) if with_region and not outlines else "",
        notes=tuple(each for each in ("crowd", "difficult", "mask") if content.get(each)),
    )


def _region(mask: Mapping[str, Any] | None) -> str:
    """Return the path around a mask; nothing for one that is broken, which is the matter of its import."""
    try:
        outlines = [] if mask is None else mask_outlines(mask)
    except ValueError:
        return ""
    drawn = []
    for points, _ in outlines:
        tolerance_px = min(_MOST_TOLERANCE_PX, float(np.ptp(points, axis=0).min()) * _TOLERANCE)
        corners = cv2.approxPolyDP(points.astype(np.int32)[:, None], tolerance_px, closed=True)[:, 0]
        drawn.append(f"M{' '.join(f'{x},{y}' for x, y in corners.tolist())}Z")
    return "".join(drawn)


def class_title(number: int, names: Sequence[str]) -> str:
    """Return the name of a class; its number where it has no name."""
    if number < 0:
        return "ignored"
    return names[number] if number < len(names) else f"class {number}"


def _content(dataset: Any, entry: Any, *, is_whole: bool) -> dict[str, Any]:
    try:
        part = entry.parts[0] if isinstance(entry.parts[0], bytes) else dataset.sample(entry.split, entry.row).parts[0]
    except (ZigguratError, IndexError) as error:
        return {"fault": str(error)}
    if isinstance(part, np.ndarray):
        return {"text": _array_in_words(part, is_whole=is_whole)}
    text = part.decode("utf-8", "replace") if isinstance(part, bytes) else part
    if dataset.kind == "table":
        return {"values": tuple(json.loads(text))}
    most = _LONGEST_CHARACTERS if is_whole else _TEXT_CHARACTERS
    return {"text": text if len(text) <= most else f"{text[: most - 1]}…"}


def _array_in_words(array: np.ndarray, *, is_whole: bool) -> str:
    shape = " × ".join(str(side) for side in array.shape) or "one number"
    said = f"{shape}, {array.dtype}"
    if not array.size or not np.issubdtype(array.dtype, np.number):
        return said
    said += f"; from {array.min():.5g} to {array.max():.5g}, mean {array.mean():.5g}"
    if not is_whole:
        return said
    few = array.ravel()[:_FEW_VALUES]
    return f"{said}\n{np.array2string(few, precision=5, threshold=_FEW_VALUES)}{' …' if array.size > len(few) else ''}"
