"""Images of a creation: decode, fit and encode one for its record, fit its labels, and sum images for the mean."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import cv2
import numpy as np
from PIL import Image

from ziggurat.dataflow.image_codec import decode_image, encode_image
from ziggurat.dataflow.imgaug.crop import ConstantBackgroundFiller
from ziggurat.dataflow.imgaug.labels import clip_boxes, clip_polygon
from ziggurat.dataflow.imgaug.resize import Resize
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.image_size import size_of
from ziggurat.errors import DatapointError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.objects import ImageObject, moved_details, objects_from_json, objects_to_json
from ziggurat.records.run_lengths import mask_pixels, read_run_lengths, run_lengths

__all__ = [
    "FittedPicture",
    "Fitting",
    "ImageSums",
    "decoded_image",
    "fit_mask",
    "fit_objects",
    "fit_picture",
    "misfits",
]

_MOST_CHANNELS: Final = 4  # that OpenCV sums up at once


@dataclass(frozen=True)
class FittedPicture:
    """An image that is ready for a record.

    Args:
        content: what the record holds: encoded bytes, or an array with encoding ``raw``.
        pixels: (H, W, C) uint8 as the record will give them; None where nothing was decoded.
        source_size: (height, width) as it came; None where that was not looked at.
        transform: what moves coordinates from the source's image to this one; None where nothing moves.
        decoded: (H, W, C) uint8 as it came, before it was fitted; None where nothing was decoded.
    """

    content: Any
    pixels: np.ndarray | None
    source_size: tuple[int, int] | None
    transform: Transform | None = None
    decoded: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """How images are fitted, the same for all of a dataset.

    Args:
        form: the form that is wanted; its encoding is decided.
        check: how images that stay as they are get checked: ``decode``, ``header`` or ``none``.
    """

    form: ImageForm
    check: str = "decode"

    @property
    def keeps_bytes(self) -> bool:
        """Whether the bytes of files are kept."""
        return self.form.encoding in ("original", "reference")

    @property
    def size(self) -> tuple[int, int] | None:
        """(height, width) that is wanted; None for any."""
        if self.form.height_px is None or self.form.width_px is None:
            return None
        return self.form.height_px, self.form.width_px


def fit_picture(part: bytes | np.ndarray, fitting: Fitting, key: str) -> FittedPicture:
    """Return an image as a record holds it.

    Args:
        part: bytes of a file, or (H, W, C) or (H, W) uint8.
        fitting: what is wanted.
        key: names the sample in errors.

    Raises:
        DatapointError: where it is damaged or no image.
    """
    if fitting.keeps_bytes and isinstance(part, bytes):
        return _as_it_is(part, fitting, key)
    pixels = decoded_image(part, fitting, key)
    source_size, decoded = (pixels.shape[0], pixels.shape[1]), pixels
    pixels = _with_channels(pixels, fitting.form.channels)
    transform = None
    if fitting.size is not None and source_size != fitting.size:
        transform = _resize(fitting).get_transform(pixels)
        pixels = transform.apply_image(pixels)
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return FittedPicture(_encoded(pixels, fitting.form), pixels, source_size, transform, decoded)


def decoded_image(part: bytes | np.ndarray, fitting: Fitting, key: str) -> np.ndarray:
    """Return an image as it came, (H, W, C) or (H, W) uint8; perceptual hashes are made of it.

    Args:
        part: bytes of a file, or (H, W, C) or (H, W) uint8.
        fitting: what is wanted; it decides on the channels that a file is decoded to.
        key: names the sample in errors.

    Raises:
        DatapointError: where it is damaged or no image.
    """
    if isinstance(part, np.ndarray):
        return part
    return decode_image(part, channels=_channels_of(part, fitting), key=key, bits=fitting.form.bits)


def fit_mask(part: bytes | np.ndarray, image: FittedPicture, fitting: Fitting, key: str, fill: int = 0) -> Any:
    """Return a mask as a record holds it: moved as its image was, by nearest neighbors, as PNG or as an array.

    Args:
        part: bytes of an image of one channel, or (H, W) uint8 or uint16.
        image: that it belongs to.
        fitting: what is wanted.
        key: names the sample in errors.
        fill: class number of what the image's frame adds.

    Raises:
        DatapointError: where it is damaged, has more than one channel, or another size than its image.
    """
    transform = image.transform
    if fitting.check == "none" and transform is None and isinstance(part, bytes):
        return part
    mask = part if isinstance(part, np.ndarray) else decode_mask(part, key)
    if image.source_size is not None and mask.shape != image.source_size:
        raise DatapointError(
            key,
            f"its mask has height and width {mask.shape}, the image {image.source_size}: they must be the same.",
        )
    if transform is None and isinstance(part, bytes) and fitting.form.encoding != "raw":
        return part
    if transform is not None:
        mask = transform.apply_mask(mask, fill)
    if fitting.form.encoding == "raw":
        return mask
    done, encoded = cv2.imencode(".png", mask)
    assert done
    return encoded.tobytes()


def _as_it_is(part: bytes, fitting: Fitting, key: str) -> FittedPicture:
    if fitting.check == "none":
        return FittedPicture(part, None, None)
    if fitting.check == "header":
        return FittedPicture(part, None, size_of(part, key))
    pixels = decoded_image(part, fitting, key)
    return FittedPicture(part, pixels, (pixels.shape[0], pixels.shape[1]), decoded=pixels)


def _channels_of(part: bytes, fitting: Fitting) -> Any:
    """Return the channels to decode to: those that are wanted, else 1 for a gray file and 3 for others."""
    if fitting.form.channels is not None:
        return fitting.form.channels
    return 1 if _is_grey(part) else 3


def _is_grey(part: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(part)) as image:  # reads the header only
            return image.mode in ("1", "L", "LA", "I;16", "I;16B") and "transparency" not in image.info
    except Exception:  # the decoder says what is wrong with it
        return False


def _with_channels(pixels: np.ndarray, channels: int | None) -> np.ndarray:
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if channels is None or pixels.shape[2] == channels:
        return pixels
    if channels == 3:
        return np.repeat(pixels, 3, axis=2)
    return cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)[:, :, None]


def _resize(fitting: Fitting) -> Resize:
    size: Any = fitting.size
    mode: Any = fitting.form.resize_mode
    return Resize(size, mode=mode, background_filler=ConstantBackgroundFiller(0))


def _encoded(pixels: np.ndarray, form: ImageForm) -> Any:
    if form.encoding == "raw":
        return np.ascontiguousarray(pixels)
    return encode_image(pixels, "jpeg" if form.encoding == "jpeg" else "png", quality=form.quality)


def fit_objects(
    label: list[Mapping[str, Any]],
    transform: Transform,
    size: tuple[int, int],
    source_size: tuple[int, int] | None = None,
) -> tuple[list[dict[str, Any]], int]:
    """Return the objects of a fitted image, and how many of them are no longer in it.

    Args:
        label: of the image as it came.
        transform: what was done to it.
        size: (height, width) of the fitted image.
        source_size: likewise, of the image as it came; a mask of another size is left out.
    """
    kept: list[ImageObject] = []
    objects = objects_from_json(label)
    for each in objects:
        box = clip_boxes(transform.apply_boxes(np.array([each.box], np.float32)), size)[0]
        left, top, right, bottom = (round(float(value), 3) for value in box)
        if right <= left or bottom <= top:
            continue
        kept.append(
            replace(
                each,
                box=(left, top, right, bottom),
                polygons=_polygons(each, transform, size),
                mask=None if each.mask is None else _mask(each.mask, transform, source_size),
                details=moved_details(each.details, transform.apply_coords),
            )
        )
    return objects_to_json(kept), len(objects) - len(kept)


def misfits(label: Iterable[Mapping[str, Any]], source_size: tuple[int, int] | None) -> int:
    """Return how many objects have a mask that is not as large as their image, or is none.

    Args:
        label: of an image.
        source_size: its (height, width) as it came; None if unknown.
    """
    masks = (read_run_lengths(each["mask"]) for each in label if "mask" in each)
    return sum(mask is None or (source_size is not None and tuple(mask["size"]) != source_size) for mask in masks)


def _polygons(each: ImageObject, transform: Transform, size: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    outlines = [np.array(polygon, np.float32).reshape(-1, 2) for polygon in each.polygons]
    moved = [clip_polygon(polygon, size) for polygon in transform.apply_polygons(outlines)]
    return tuple(tuple(round(float(value), 3) for value in polygon.ravel()) for polygon in moved if len(polygon) >= 3)


def _mask(
    content: Mapping[str, Any], transform: Transform, source_size: tuple[int, int] | None
) -> dict[str, Any] | None:
    """Return a mask as it follows its image; None where it cannot."""
    if misfits([{"mask": content}], source_size):
        return None
    return run_lengths(transform.apply_mask(mask_pixels(content)))


class ImageSums:
    """Sums of images, for the mean image (while all have one shape) and the mean pixel."""

    def __init__(self) -> None:
        self.count = 0
        self.pixels = 0
        self.channel_sums: np.ndarray | None = None
        """(C) int64; None before the first image, or where channels differ."""
        self._image_sum: np.ndarray | None = None  # of whole numbers below 2**53, which float64 holds exactly

    @property
    def image_sum(self) -> np.ndarray | None:
        """(H, W, C) int64; None before the first image, or where shapes differ."""
        return None if self._image_sum is None else self._image_sum.astype(np.int64)

    def add(self, image: np.ndarray) -> None:
        """Add an image, (H, W, C) uint8."""
        if self.count == 0:
            self._image_sum = np.zeros(image.shape, np.float64)
            self.channel_sums = np.zeros(image.shape[2], np.int64)
        pixels = image.shape[0] * image.shape[1]
        self._merge(1, pixels, _channel_sums(image), image)

    def add_all(self, other: ImageSums) -> None:
        """Add the sums of other images."""
        if not other.count:
            return
        if self.count == 0:
            self._image_sum = None if other._image_sum is None else np.zeros_like(other._image_sum)
            self.channel_sums = None if other.channel_sums is None else np.zeros_like(other.channel_sums)
        self._merge(other.count, other.pixels, other.channel_sums, other._image_sum)

    def mean_image(self) -> np.ndarray | None:
        """Return (H, W, C) float32, or None where shapes differ or there is no image."""
        return None if self._image_sum is None else (self._image_sum / self.count).astype(np.float32)

    def mean_pixel(self) -> tuple[float, ...]:
        """Return one number a channel, or nothing where channels differ or there is no image."""
        if self.channel_sums is None or not self.pixels:
            return ()
        return tuple(float(value) for value in self.channel_sums / self.pixels)

    def as_parts(self) -> dict[str, Any]:
        """Return plain values."""
        return {"count": self.count, "pixels": self.pixels, "channels": self.channel_sums, "picture": self.image_sum}

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Self:
        """Return the sums that ``as_parts`` gave."""
        sums = cls()
        sums.count, sums.pixels = parts["count"], parts["pixels"]
        image = parts["picture"]
        sums.channel_sums = parts["channels"]
        sums._image_sum = None if image is None else image.astype(np.float64)
        return sums

    def _merge(self, count: int, pixels: int, channel_sums: np.ndarray | None, image: np.ndarray | None) -> None:
        self.count += count
        self.pixels += pixels
        if self.channel_sums is not None:
            same = channel_sums is not None and channel_sums.shape == self.channel_sums.shape
            self.channel_sums = self.channel_sums + channel_sums if same else None
        if self._image_sum is None:
            return
        if image is None or image.shape != self._image_sum.shape:
            self._image_sum = None
        else:
            _add_onto(self._image_sum, image)


def _channel_sums(image: np.ndarray) -> np.ndarray:
    channels = image.shape[2]
    if channels > _MOST_CHANNELS:
        return image.reshape(-1, channels).sum(axis=0, dtype=np.int64)
    return np.array(cv2.sumElems(image)[:channels]).astype(np.int64)


def _add_onto(total: np.ndarray, image: np.ndarray) -> None:
    """Add (H, W, C) uint8 or float64 onto (H, W, C) float64, which is nearly three times as fast as onto int64."""
    if image.dtype == np.uint8:
        cv2.accumulate(image.reshape(len(image), -1), total.reshape(len(total), -1))
    else:
        total += image
