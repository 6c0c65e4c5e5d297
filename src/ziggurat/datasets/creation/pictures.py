"""Conversion of one source image for its record: decode, check, fit, encode; labels follow."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from PIL import Image

from ziggurat.dataflow.image_codec import decode_image, encode_image
from ziggurat.dataflow.imgaug.crop import ConstantBackgroundFiller
from ziggurat.dataflow.imgaug.resize import Resize
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.image_size import size_of
from ziggurat.errors import DatapointError
from ziggurat.records.manifest import ImageForm

__all__ = ["FittedPicture", "Fitting", "decoded_picture", "fit_mask", "fit_picture"]


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
    pixels = decoded_picture(part, fitting, key)
    source_size, decoded = (pixels.shape[0], pixels.shape[1]), pixels
    pixels = _with_channels(pixels, fitting.form.channels)
    transform = None
    if fitting.size is not None and source_size != fitting.size:
        transform = _resize(fitting).get_transform(pixels)
        pixels = transform.apply_image(pixels)
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return FittedPicture(_encoded(pixels, fitting.form), pixels, source_size, transform, decoded)


def decoded_picture(part: bytes | np.ndarray, fitting: Fitting, key: str) -> np.ndarray:
    """Return an image as it came, (H, W, C) or (H, W) uint8; perceptual hashes are made of it.

    Args:
        part: bytes of a file, or (H, W, C) or (H, W) uint8.
        fitting: what is wanted; it decides on the channels that a file is decoded to.
        key: names the sample in errors.

    Raises:
        DatapointError: where it is damaged or no image.
    """
    return part if isinstance(part, np.ndarray) else decode_image(part, channels=_channels_of(part, fitting), key=key)


def fit_mask(part: bytes | np.ndarray, picture: FittedPicture, fitting: Fitting, key: str, fill: int = 0) -> Any:
    """Return a mask as a record holds it: moved as its image was, by nearest neighbors, as PNG or as an array.

    Args:
        part: bytes of an image of one channel, or (H, W) uint8 or uint16.
        picture: that it belongs to.
        fitting: what is wanted.
        key: names the sample in errors.
        fill: class number of what the image's frame adds.

    Raises:
        DatapointError: where it is damaged, has more than one channel, or another size than its image.
    """
    transform = picture.transform
    if fitting.check == "none" and transform is None and isinstance(part, bytes):
        return part
    mask = part if isinstance(part, np.ndarray) else decode_mask(part, key)
    if picture.source_size is not None and mask.shape != picture.source_size:
        raise DatapointError(
            key,
            f"its mask has height and width {mask.shape}, the image {picture.source_size}: they must be the same.",
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
    pixels = decoded_picture(part, fitting, key)
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
