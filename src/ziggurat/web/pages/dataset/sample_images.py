"""Images of samples as browsers show them: smaller ones, colored masks, and sheets of many small images."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from PIL import Image

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.errors import DataError, MissingEntryError, UsageError, ZigguratError
from ziggurat.tasks.segmentation import class_colors
from ziggurat.workspace.studio import Studio

__all__ = [
    "MASK_PALETTE",
    "PLAIN_RESIZES",
    "SHEET_TILES",
    "Tile",
    "mask_classes",
    "mask_png",
    "mean_picture",
    "places_of",
    "sample_picture",
    "sheet_places",
    "sheet_tiles",
    "tile_sheet",
    "tile_size",
]

SHEET_TILES: Final = 24
"""Tiles on one sheet: a page of the explorer asks for a few sheets instead of many images."""

_TILE_PX: Final = 192
"""Longest side of a tile; the page shows it at 146."""

_COLUMNS: Final = 6
_MOST_SOURCE_BYTES: Final = 4_000_000
"""A tile is not made of a larger file of the source."""

PLAIN_RESIZES: Final = ("squash", "none")
"""Ways of resizing that keep the place of every pixel, so that boxes and masks fit the original too."""

_TILE_QUALITY: Final = 86
_LARGEST_KEPT: Final = 512
"""Longest side of an image that is kept in the cache of thumbnails."""

_CACHE_VERSION: Final = 1
_BROKEN: Final = 128
"""Gray of a tile whose image cannot be read."""

_RANGES: Final = r"[\w.-]+:\d{1,10}(-\d{1,10})?(,\d{1,10}(-\d{1,10})?)*"
_PLACES: Final = re.compile(rf"{_RANGES}(;{_RANGES})*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Where the image of a sample is on its sheet, in pixels.

    Args:
        left: of the image.
        top: of it.
        width: of it.
        height: of it.
    """

    left: int
    top: int
    width: int
    height: int


def sheet_tiles(sizes: Sequence[tuple[int, int] | None]) -> tuple[list[Tile], tuple[int, int]]:
    """Return the place of each tile on a sheet, and width and height of the sheet.

    Args:
        sizes: width and height of each stored image; None where it is not known before the image is read.

    >>> sheet_tiles([(28, 28), (28, 28)])[1]
    (56, 28)
    """
    fitted = [_fitted(size) for size in sizes]
    width = max((each[0] for each in fitted), default=1)
    height = max((each[1] for each in fitted), default=1)
    tiles = [
        Tile(left=number % _COLUMNS * width, top=number // _COLUMNS * height, width=each[0], height=each[1])
        for number, each in enumerate(fitted)
    ]
    rows = -(-len(fitted) // _COLUMNS)
    return tiles, (width * min(len(fitted), _COLUMNS), height * rows)


def sheet_places(places: Sequence[tuple[str, int]]) -> str:
    """Return samples as an address names them; rows that follow each other are short.

    >>> sheet_places([("train", 0), ("train", 1), ("train", 2), ("val", 7)])
    'train:0-2;val:7'
    """
    parts: list[tuple[str, list[list[int]]]] = []
    for split, row in places:
        if not parts or parts[-1][0] != split:
            parts.append((split, []))
        ranges = parts[-1][1]
        if ranges and ranges[-1][1] == row - 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    return ";".join(
        f"{split}:{','.join(str(low) if low == high else f'{low}-{high}' for low, high in ranges)}"
        for split, ranges in parts
    )


def places_of(text: str) -> list[tuple[str, int]]:
    """Return the samples that an address names, as ``sheet_places`` writes them.

    Raises:
        UsageError: where it names none, or too many.
    """
    found = list(_places(text)) if _PLACES.fullmatch(text) else []
    if not 0 < len(found) <= SHEET_TILES:
        raise UsageError(
            f"`{text[:80]}` chooses {len(found)} samples, not 1 to {SHEET_TILES}; write it as `train:0-5,9;val:3`."
        )
    return found


def _places(text: str) -> Iterator[tuple[str, int]]:
    for part in text.split(";"):
        split, _, ranges = part.partition(":")
        for each in ranges.split(","):
            low, _, high = each.partition("-")
            first = int(low)
            yield from ((split, row) for row in range(first, min(int(high or first), first + SHEET_TILES) + 1))


def tile_size(entry: Any, image: Any) -> tuple[int, int] | None:
    """Return width and height that the tile of a sample is fitted to; None if unknown.

    It is the size of the source where only that is known, or where what is stored is smaller than a tile and was not
    cut: then the tile may be made of the source.

    Args:
        entry: what the catalog knows of the sample.
        image: how the dataset stores images.
    """
    known = (entry.width_px, entry.height_px) if entry.width_px and entry.height_px else None
    if image is None or not (image.width_px and image.height_px):
        return known
    is_small = max(image.width_px, image.height_px) < _TILE_PX and image.resize_mode in PLAIN_RESIZES
    return known if known and is_small else (image.width_px, image.height_px)


def tile_sheet(
    studio: Studio, job_id: str, places: Sequence[tuple[str, int]], *, part: int, is_overlay: bool
) -> tuple[bytes, str]:
    """Return one image with the small images of several samples, and its media type.

    Each small image is made once and kept on disk. One that cannot be read is a gray field.

    Args:
        studio: where the dataset is.
        job_id: of the dataset.
        places: split and row of each sample.
        part: number of the part of the records.
        is_overlay: whether it is a mask that is to lie on its image.
    """
    with studio.datasets.opened(job_id) as dataset:
        schema = dataset.schema
        entries = [dataset.entry(*place) for place in places]
        tiles, (width, height) = sheet_tiles([tile_size(entry, dataset.manifest.image) for entry in entries])
        if not 0 <= part < len(schema.parts):
            raise MissingEntryError("A sample has the parts of its kind.", received=f"part {part}")
        is_mask = schema.parts[part] == "mask"
        sheet = np.zeros((height, width), np.int32) if is_mask else np.zeros((height, width, 3), np.uint8)
        of_source = _of_sources(studio, dataset, entries, part, tiles)
        for entry, tile, is_source in zip(entries, tiles, of_source, strict=True):
            pixels = _tile_pixels(studio, dataset, job_id, (entry, part, is_source), tile)
            sheet[tile.top : tile.top + tile.height, tile.left : tile.left + tile.width] = pixels
    if is_mask:
        return mask_png(sheet, schema.colours, schema.ignore_class, is_clear=is_overlay), "image/png"
    if max(tiles[0].width, tiles[0].height) <= _LARGEST_LOSSLESS:
        return _encoded(sheet, ".png"), "image/png"
    return _encoded(sheet, ".jpg", _TILE_QUALITY), "image/jpeg"


def _fitted(size: tuple[int, int] | None) -> tuple[int, int]:
    if size is None:
        return _TILE_PX, _TILE_PX
    factor = min(1.0, _TILE_PX / max(size))
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def _of_sources(studio: Studio, dataset: Any, entries: Sequence[Any], part: int, tiles: Sequence[Tile]) -> list[bool]:
    """Return whether each tile is made of the source: it is larger than what is stored, and the file is there."""
    image = dataset.manifest.image
    stored_px = _TILE_PX if image is None else max(image.width_px or _TILE_PX, image.height_px or _TILE_PX)
    if part or stored_px >= max((max(tile.width, tile.height) for tile in tiles), default=0):
        return [False] * len(entries)
    is_there = studio.datasets.may_have_sources(dataset, entries)
    return [
        found and (entry.source_bytes or 0) <= _MOST_SOURCE_BYTES
        for found, entry in zip(is_there, entries, strict=True)
    ]


def _tile_pixels(studio: Studio, dataset: Any, job_id: str, what: tuple[Any, int, bool], tile: Tile) -> np.ndarray:
    """Return the pixels of a tile: of the cache, or made now and kept."""
    entry, part, of_source = what
    is_mask = dataset.schema.parts[part] == "mask"
    place = (entry.split, entry.row, part)
    key = (_CACHE_VERSION, "source tile" if of_source else "tile", job_id, *place, tile.width, tile.height)
    kept = studio.datasets.thumbnails.get(*key)
    pixels = None if kept is None else cv2.imdecode(np.frombuffer(kept, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is not None and pixels.shape[:2] == (tile.height, tile.width):
        return pixels if is_mask else _as_color(pixels)[:, :, ::-1]
    try:
        content = studio.datasets.source_content(dataset, entry) if of_source else None
        form = dataset.manifest.image
        bits = form.bits if form is not None else 16
        picture = dataset.picture(*place) if content is None else decode_image(content, key=entry.key, bits=bits)
        made = _in_tile(picture if is_mask else _as_color(_as_pixels(picture)), tile, is_mask=is_mask)
    except ZigguratError:
        return np.full((tile.height, tile.width) + (() if is_mask else (3,)), 0 if is_mask else _BROKEN, np.uint8)
    ending = ".png" if is_mask or max(tile.width, tile.height) <= _LARGEST_LOSSLESS else ".jpg"
    if not (is_mask and made.dtype.itemsize > 2):
        studio.datasets.thumbnails.put(_encoded(made, ending, _TILE_QUALITY), *key)
    return made


def _in_tile(picture: np.ndarray, tile: Tile, *, is_mask: bool) -> np.ndarray:
    """Return an image in the size of its tile; one of another shape, as where sizes are not known, in its middle."""
    height, width = picture.shape[:2]
    factor = min(tile.width / width, tile.height / height, 1.0)
    size = (max(1, min(tile.width, round(width * factor))), max(1, min(tile.height, round(height * factor))))
    if max(height, width) < max(tile.height, tile.width):  # stored smaller than its tile: squares stay squares
        size = (tile.width, tile.height)
        return cv2.resize(picture, size, interpolation=cv2.INTER_NEAREST)
    small = picture
    if size != (width, height):
        small = cv2.resize(picture, size, interpolation=cv2.INTER_NEAREST if is_mask else cv2.INTER_AREA)
    if small.shape[:2] == (tile.height, tile.width):
        return small
    framed = np.zeros((tile.height, tile.width, *small.shape[2:]), small.dtype)
    top, left = (tile.height - size[1]) // 2, (tile.width - size[0]) // 2
    framed[top : top + size[1], left : left + size[0]] = small
    return framed


def _as_color(pixels: np.ndarray) -> np.ndarray:
    flat = pixels if pixels.ndim == 2 or pixels.shape[2] > 1 else pixels[:, :, 0]
    return np.repeat(flat[:, :, None], 3, axis=2) if flat.ndim == 2 else flat


def mask_classes(studio: Studio, job_id: str, split: str, row: int, part: int) -> list[tuple[int, float]]:
    """Return the class numbers in a mask with their shares of its pixels, the largest first."""
    with studio.datasets.opened(job_id) as dataset:
        numbers, counts = np.unique(dataset.picture(split, row, part), return_counts=True)
    total = int(counts.sum()) or 1
    order = np.argsort(-counts, kind="stable")
    return [(int(numbers[at]), int(counts[at]) / total) for at in order]


_PNG_COLOURS: Final = 256
MASK_PALETTE: Final = tuple((int(red), int(green), int(blue)) for red, green, blue in class_colors(_PNG_COLOURS)[1:])
"""(R, G, B) of the classes from 1 on that no color was given for."""

_LARGEST_LOSSLESS: Final = 128
"""Longest side of an image that is sent as PNG after it was made smaller; larger ones are sent as JPEG."""

_JPEG_QUALITY: Final = 88
_PNG: Final = b"\x89PNG"


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
    key = (_CACHE_VERSION, "picture", job_id, split, row, part, max_side_px, is_overlay)
    is_kept = max_side_px <= _LARGEST_KEPT
    if is_kept and (kept := studio.datasets.thumbnails.get(*key)) is not None:
        studio.datasets.folder(job_id)
        return kept, "image/png" if kept.startswith(_PNG) else "image/jpeg"
    content, media_type = _sample_picture(studio, job_id, (split, row, part), max_side_px, is_overlay=is_overlay)
    if is_kept:
        studio.datasets.thumbnails.put(content, *key)
    return content, media_type


def _sample_picture(
    studio: Studio, job_id: str, place: tuple[str, int, int], max_side_px: int, *, is_overlay: bool
) -> tuple[bytes, str]:
    part = place[2]
    with studio.datasets.opened(job_id) as dataset:
        parts = dataset.schema.parts
        if not 0 <= part < len(parts):
            raise MissingEntryError("A sample has the parts of its kind.", received=f"part {part} of {len(parts)}")
        picture = dataset.picture(*place)
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
        raise DataError(f"An array of shape {picture.shape} cannot be shown as an image.")
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


def _encoded(pixels: np.ndarray, ending: str, quality: int = _JPEG_QUALITY) -> bytes:
    in_order = pixels[:, :, ::-1] if pixels.ndim == 3 and pixels.shape[2] == 3 else pixels
    options = [cv2.IMWRITE_JPEG_QUALITY, quality] if ending == ".jpg" else []
    is_made, content = cv2.imencode(ending, np.ascontiguousarray(in_order), options)
    if not is_made:
        raise DataError(f"An image of shape {pixels.shape} cannot be encoded.")
    return content.tobytes()


def _palette(given: Sequence[Sequence[int]], ignore_class: int | None) -> bytes:
    colours: list[Sequence[int]] = [(0, 0, 0)]
    colours += [MASK_PALETTE[number % len(MASK_PALETTE)] for number in range(_PNG_COLOURS - 1)]
    if len({tuple(colour) for colour in given}) > 1:
        for number, colour in enumerate(given[:_PNG_COLOURS]):
            colours[number] = tuple(colour)
    if ignore_class is not None:
        colours[255] = (128, 128, 128)
    return bytes(value for colour in colours for value in colour)
