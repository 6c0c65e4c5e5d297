"""Cropping of a few images of a batch: from files, bytes or pixels, each crop upright into its slot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np

from ziggurat.dataflow.fast.boxes import CropPolicy, denominators, grid_boxes
from ziggurat.dataflow.fast.engines import Engine, resize_into
from ziggurat.dataflow.fast.tiles import JpegHeader, cut, read_jpeg_header
from ziggurat.dataflow.image_codec import MAX_PIXELS, decode_image, read_file
from ziggurat.dataflow.policy import Failure
from ziggurat.errors import DatapointError

__all__ = ["CropFailure", "Cropper"]

# Orientation → (axes exchanged, rows reversed, columns reversed): what leads from an upright place to the stored one.
_TURNS = {
    1: (False, False, False),
    2: (False, False, True),
    3: (False, True, True),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, True, False),
    7: (True, True, True),
    8: (True, False, True),
}


class CropFailure(NamedTuple):
    """One image that could not be used, with its number in the batch."""

    slot: int
    failure: Failure
    cause: Exception


class _Source(NamedTuple):
    """One image before it is cropped: a JPEG file with its header, or pixels."""

    slot: int
    key: Any
    data: bytes
    header: JpegHeader | None
    pixels: np.ndarray | None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the upright image."""
        if self.pixels is not None:
            return self.pixels.shape[1], self.pixels.shape[0]
        header = self.header
        assert header is not None
        return (header.height, header.width) if is_turned(header.orientation) else (header.width, header.height)


class Cropper:
    """Crops images; one object serves any number of threads.

    Args:
        engine: what decodes JPEG files.
        policy: which boxes are taken.
    """

    def __init__(self, engine: Engine, policy: CropPolicy) -> None:
        self.engine = engine
        self.policy = policy

    def fill(
        self, images: Sequence[Any], keys: Sequence[Any], numbers: np.ndarray, out: np.ndarray, first_slot: int
    ) -> list[CropFailure]:
        """Write the crops of some images into consecutive slots of a batch.

        Args:
            images: each a path, an encoded image (bytes, a buffer, or 1-D uint8), or pixels (H, W, 3) uint8, RGB; gray
                ones (H, W) or (H, W, 1).
            keys: what names each of them in an error.
            numbers: (N, ``policy.numbers``) uniform random numbers.
            out: (batch, H, W, 3) uint8.
            first_slot: where the first of them goes.

        Returns:
            Those that could not be used; their slots hold anything.
        """
        failures: list[CropFailure] = []
        sources: list[_Source] = []
        for slot, (image, key) in enumerate(zip(images, keys, strict=True), first_slot):
            try:
                sources.append(_load(image, slot, key))
            except Exception as error:
                failures.append(CropFailure(slot, Failure.of(error, key=key), error))
        if sources:
            rows = [source.slot - first_slot for source in sources]
            failures += self._crop(sources, numbers[rows], out)
        return failures

    def _crop(self, sources: list[_Source], numbers: np.ndarray, out: np.ndarray) -> list[CropFailure]:
        sizes = np.array([source.size for source in sources], np.int32)
        boxes, flips = self.policy.boxes(numbers, sizes)
        reductions = denominators(boxes, self.policy.shape)
        boxes = grid_boxes(boxes, sizes, reductions)
        slots = [source.slot for source in sources]
        plans = np.column_stack([slots, boxes, reductions, flips]).astype(np.int32)
        upright = [row for row, source in enumerate(sources) if source.header and source.header.orientation == 1]
        done = self._decode_upright([sources[row] for row in upright], plans[upright], out)
        finished = {row for row, reason in zip(upright, done, strict=True) if not reason}
        failures: list[CropFailure] = []
        for row in sorted(set(range(len(sources))) - finished):
            try:
                self._crop_one(sources[row], plans[row].tolist(), out)
            except Exception as error:
                source = sources[row]
                failures.append(CropFailure(source.slot, Failure.of(error, key=source.key), error))
        return failures

    def _decode_upright(self, sources: list[_Source], plans: np.ndarray, out: np.ndarray) -> list[str]:
        """Decode with the engine; return why not for each, or nothing."""
        files = [source.data for source in sources]
        for row, source in enumerate(sources):
            if source.header is not None and source.header.tiles_end:
                files[row], left, top = cut(source.data, source.header, tuple(plans[row, 1:5].tolist()))
                # `plans` is a copy, so `_crop_one` still finds the box of the whole file.
                plans[row, 1:3] -= (left, top)
        return self.engine.decode(files, plans, out) if files else []

    def _crop_one(self, source: _Source, plan: list[int], out: np.ndarray) -> None:
        """Crop an image that is turned, not a JPEG file, or refused by the engine."""
        target = out[plan[0]]
        pixels = source.pixels
        if pixels is None:
            if source.header and source.header.orientation > 1 and self._decode_turned(source, plan, target):
                return
            pixels = decode_image(source.data, key=source.key)
            # The box was computed from the size in the header.
            if pixels.shape[1::-1] != source.size:
                raise DatapointError(source.key, f"its header says {source.size}, its pixels {pixels.shape[1::-1]}.")
        _slot, x, y, width, height, reduction, flip = plan
        box = pixels[y : y + height, x : x + width]
        if reduction > 1:
            reduced = (-(-width // reduction), -(-height // reduction))
            box = cv2.resize(box, reduced, interpolation=cv2.INTER_AREA)
        resize_into(box, target, flip=bool(flip))

    def _decode_turned(self, source: _Source, plan: list[int], target: np.ndarray) -> bool:
        """Decode the box where it lies in the file, then turn it; False where the engine refuses."""
        header = source.header
        assert header is not None
        _slot, *box, reduction, flip = plan
        size = (header.width, header.height)
        box = np.array([stored_box(box, header.orientation, size)], np.int32)
        # The turned box may lie off the grid of the reduction.
        box = grid_boxes(box, np.array([size], np.int32), np.array([reduction]))
        shape = target.shape[1::-1] if is_turned(header.orientation) else target.shape[:2]
        stored = np.empty((1, *shape, 3), np.uint8)
        upright = source._replace(slot=0)
        if self._decode_upright([upright], np.column_stack([[0], box, [reduction], [0]]).astype(np.int32), stored)[0]:
            return False
        turn_into(stored[0], target, header.orientation, flip=bool(flip))
        return True


def _load(image: Any, slot: int, key: Any) -> _Source:
    """Read a file, and its header; decode what the engines do not read."""
    if isinstance(image, np.ndarray) and image.ndim > 1:
        return _Source(slot, key, b"", None, _as_color(image, key))
    data = _content(image, key)
    header = read_jpeg_header(data)
    # A larger image goes to `decode_image`, which refuses it with a reason.
    if header is not None and header.width * header.height <= MAX_PIXELS:
        return _Source(slot, key, data, header, None)
    return _Source(slot, key, b"", None, decode_image(data, key=key))


def _content(image: Any, key: Any) -> bytes:
    if isinstance(image, bytes):
        return image
    if isinstance(image, str | os.PathLike):
        return read_file(image, key=key)
    try:
        return bytes(memoryview(image))
    except TypeError:
        raise DatapointError(
            key, f"a {type(image).__name__} is no path, no encoded image, and no array of pixels."
        ) from None


def _as_color(image: np.ndarray, key: Any) -> np.ndarray:
    if image.dtype == np.uint8 and image.size:
        if image.ndim == 2 or image.shape[2:] == (1,):
            return np.repeat(image.reshape(*image.shape[:2], 1), 3, axis=2)
        if image.shape[2:] == (3,):
            return image
    raise DatapointError(key, f"pixels are (H, W, 3) uint8, these are {image.shape} {image.dtype}.")


def is_turned(orientation: int) -> bool:
    """Tell whether width and height are exchanged between the stored and the upright image."""
    return _TURNS[orientation][0]


def stored_box(box: list[int], orientation: int, size: tuple[int, int]) -> list[int]:
    """Return where a box of the upright image lies in the stored one.

    Args:
        box: x, y, width, height in the upright image.
        orientation: from 1 to 8, as in EXIF.
        size: width and height of the stored image.
    """
    exchanged, rows_reversed, columns_reversed = _TURNS[orientation]
    x, y, width, height = (box[1], box[0], box[3], box[2]) if exchanged else box
    if columns_reversed:
        x = size[0] - x - width
    if rows_reversed:
        y = size[1] - y - height
    return [x, y, width, height]


def turn_into(stored: np.ndarray, target: np.ndarray, orientation: int, *, flip: bool) -> None:
    """Turn a stored image upright, and write it.

    Args:
        stored: (H, W, 3) uint8.
        target: (H, W, 3) uint8, or (W, H, 3) where the axes are exchanged.
        orientation: from 1 to 8, as in EXIF.
        flip: mirror the upright image left and right.
    """
    exchanged, rows_reversed, columns_reversed = _TURNS[orientation]
    image: Any = stored
    if rows_reversed and columns_reversed:
        image = cv2.flip(image, -1)
    elif rows_reversed or columns_reversed:
        image = cv2.flip(image, 0 if rows_reversed else 1)
    if exchanged:
        image = cv2.transpose(image)
    np.copyto(target, cv2.flip(image, 1) if flip else image)
