"""Images of a dataset for browsers: downscaled samples, colored masks, the mean image."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np
from PIL import Image

from ziggurat.errors import DataError, MissingEntryError
from ziggurat.workspace.studio import Studio

__all__ = ["MASK_PALETTE", "mask_png", "mean_picture", "sample_picture"]

MASK_PALETTE: Final = tuple(
    tuple(int(text[place : place + 2], 16) for place in (0, 2, 4))
    for text in ("0b64a0", "e69f00", "00966f", "d05a9f", "f0e442", "6a6ad0", "d55e00", "56b4e9", "8a5a2b", "9acd32")
)
"""(R, G, B) of classes that no color was given for; after the last one they begin again."""

_LARGEST_LOSSLESS: Final = 128
"""Longest side of an image that is sent as PNG after it was made smaller; larger ones are sent as JPEG."""

_JPEG_QUALITY: Final = 88
_COLOURS: Final = 256


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
    numbers = wide % _COLOURS if ignore_class is None else np.where(wide == ignore_class, 255, wide % (_COLOURS - 1))
    picture = Image.fromarray(numbers.astype(np.uint8))
    picture.putpalette(_palette(colours, ignore_class))
    clear = bytes(
        0 if number == 0 or (ignore_class is not None and number == 255) else 255 for number in range(_COLOURS)
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
    colours = [(0, 0, 0)] + [MASK_PALETTE[number % len(MASK_PALETTE)] for number in range(_COLOURS - 1)]
    if len({tuple(colour) for colour in given}) > 1:
        for number, colour in enumerate(given[:_COLOURS]):
            colours[number] = tuple(colour)
    if ignore_class is not None:
        colours[255] = (128, 128, 128)
    return bytes(value for colour in colours for value in colour)
