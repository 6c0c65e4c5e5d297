"""Samples of a dataset for browsers: label, shapes and values of one, downscaled images, colored masks."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from PIL import Image

from ziggurat.errors import DataError, MissingEntryError, ZigguratError
from ziggurat.records.run_lengths import mask_outlines
from ziggurat.workspace.studio import Studio

__all__ = [
    "MASK_PALETTE",
    "SampleView",
    "Shape",
    "label_as_json",
    "mask_png",
    "mean_picture",
    "sample_picture",
    "shape_of",
    "view_sample",
]


_PICTURES: Final = ("image", "image2", "target", "mask")
_TEXT_CHARACTERS: Final = 300
_LONGEST_CHARACTERS: Final = 100_000
_COLOURS: Final = 6
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
    size = _stored_size(entry, image)
    shown: dict[str, Any] = {}
    if schema.kind == "detection" and isinstance(entry.label, list):
        shown["shapes"] = tuple(
            shape_of(number, each, _class_name(each["class"], schema.class_names), with_region=number <= most_regions)
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
            found = Counter(_class_name(each["class"], names) for each in label)
            return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in found.most_common())
        if schema.kind == "detection":
            return "no object"
        return ", ".join(f"{each:.5g}" if isinstance(each, int | float) else str(each) for each in label)
    if names and isinstance(label, int):
        return _class_name(label, names)
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


def _class_name(number: int, names: Sequence[str]) -> str:
    if number < 0:
        return "ignored"
    return names[number] if number < len(names) else f"class {number}"


def _stored_size(entry: Any, image: Any) -> tuple[int, int] | None:
    if image is not None and image.width_px and image.height_px:
        return image.width_px, image.height_px
    return (entry.width_px, entry.height_px) if entry.width_px and entry.height_px else None


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


MASK_PALETTE: Final = tuple(
    tuple(int(text[place : place + 2], 16) for place in (0, 2, 4))
    for text in ("0b64a0", "e69f00", "00966f", "d05a9f", "f0e442", "6a6ad0", "d55e00", "56b4e9", "8a5a2b", "9acd32")
)
"""(R, G, B) of classes that no color was given for; after the last one they begin again."""

_LARGEST_LOSSLESS: Final = 128
"""Longest side of an image that is sent as PNG after it was made smaller; larger ones are sent as JPEG."""

_JPEG_QUALITY: Final = 88
_PNG_COLOURS: Final = 256


def sample_picture(
    studio: Studio, job_id: str, split: str, row: int, *, part: int, max_side_px: int, is_overlay: bool
) -> tuple[bytes, str]:
    """Return an image of a sample and its media type.

    Args:
        studio: where the dataset is.
        job_id: of the dataset.
        split: that the sample is in.
        row: its number in the split.
        part: number of the part of its record.
        max_side_px: longest side; larger images are made smaller.
        is_overlay: whether it is a mask that is to lie on its image: class 0 and what counts for nothing are clear.

    Raises:
        MissingEntryError: where the sample has no such part.
        DataError: where the part is no image.
        DatapointError: where it cannot be read.
    """
    with studio.datasets.opened(job_id) as dataset:
        parts = dataset.schema.parts
        if not 0 <= part < len(parts):
            raise MissingEntryError("A sample has the parts of its kind.", received=f"part {part} of {len(parts)}")
        picture = dataset.picture(split, row, part)
        if parts[part] == "mask":
            small = _smaller(picture, max_side_px, is_exact=True)
            schema = dataset.schema
            return mask_png(small, schema.colours, schema.ignore_class, is_clear=is_overlay), "image/png"
    pixels = _as_pixels(picture)
    small = _smaller(pixels, max_side_px)
    is_lossless = small is pixels or max(small.shape[:2]) <= _LARGEST_LOSSLESS
    return (_encoded(small, ".png"), "image/png") if is_lossless else (_encoded(small, ".jpg"), "image/jpeg")


def mean_picture(studio: Studio, job_id: str) -> bytes:
    """Return the mean of the training images as PNG.

    Raises:
        MissingEntryError: where it was not asked for.
    """
    with studio.datasets.opened(job_id) as dataset:
        mean = dataset.mean()
    if mean is None:
        raise MissingEntryError("The dataset was made without a mean image.")
    return _encoded(np.clip(np.rint(mean), 0, 255).astype(np.uint8), ".png")


def mask_png(mask: np.ndarray, colours: Sequence[Sequence[int]], ignore_class: int | None, *, is_clear: bool) -> bytes:
    """Return a mask as PNG with a palette; numbers above 255 share the colors of the others.

    Args:
        mask: (H, W) of class numbers.
        colours: (R, G, B) by class number; empty if not given.
        ignore_class: number that counts for nothing; None for none.
        is_clear: whether it is to lie on its image: class 0 and what counts for nothing are clear.
    """
    wide = mask.astype(np.int32)
    numbers = (
        wide % _PNG_COLOURS if ignore_class is None else np.where(wide == ignore_class, 255, wide % (_PNG_COLOURS - 1))
    )
    picture = Image.fromarray(numbers.astype(np.uint8))
    picture.putpalette(_palette(colours, ignore_class))
    clear = bytes(
        0 if number == 0 or (ignore_class is not None and number == 255) else 255 for number in range(_PNG_COLOURS)
    )
    sink = io.BytesIO()
    picture.save(sink, "PNG", **({"transparency": clear} if is_clear else {}))
    return sink.getvalue()


def _as_pixels(picture: np.ndarray) -> np.ndarray:
    """Return (H, W) or (H, W, 3) uint8; arrays of other numbers are stretched from black to white."""
    if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] not in (1, 3)):
        raise DataError("Images are shown of arrays that look like one.", received=f"shape {picture.shape}")
    if picture.dtype == np.uint8:
        return picture
    values = picture.astype(np.float64)
    values[~np.isfinite(values)] = 0
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    return np.rint((values - low) * (255 / (high - low or 1))).astype(np.uint8)


def _smaller(picture: np.ndarray, max_side_px: int, *, is_exact: bool = False) -> np.ndarray:
    height, width = picture.shape[:2]
    factor = max_side_px / max(height, width, 1)
    if factor >= 1:
        return picture
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return cv2.resize(picture, size, interpolation=cv2.INTER_NEAREST if is_exact else cv2.INTER_AREA)


def _encoded(pixels: np.ndarray, ending: str) -> bytes:
    in_order = pixels[:, :, ::-1] if pixels.ndim == 3 and pixels.shape[2] == 3 else pixels
    options = [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY] if ending == ".jpg" else []
    is_made, content = cv2.imencode(ending, np.ascontiguousarray(in_order), options)
    if not is_made:
        raise DataError("An image can be encoded.", received=f"shape {pixels.shape}")
    return content.tobytes()


def _palette(given: Sequence[Sequence[int]], ignore_class: int | None) -> bytes:
    colours = [(0, 0, 0)] + [MASK_PALETTE[number % len(MASK_PALETTE)] for number in range(_PNG_COLOURS - 1)]
    if len({tuple(colour) for colour in given}) > 1:
        for number, colour in enumerate(given[:_PNG_COLOURS]):
            colours[number] = tuple(colour)
    if ignore_class is not None:
        colours[255] = (128, 128, 128)
    return bytes(value for colour in colours for value in colour)
