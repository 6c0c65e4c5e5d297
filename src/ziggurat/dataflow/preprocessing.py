"""Image options of a job: the preprocessing of every image before the network, and augmentation in training.

Preprocessing is one definition for training, validation and prediction: it is stored with the model and applies
everywhere, in exports too. Augmentation varies images in training only, before the mean is subtracted; its options have
the form that DIGITS uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ziggurat.dataflow.image_codec import decode_image, highest_value
from ziggurat.dataflow.imgaug.affine import Affine, Rescale
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.color import BrightnessScale, Contrast, Hue, Saturation
from ziggurat.dataflow.imgaug.crop import ConstantBackgroundFiller
from ziggurat.dataflow.imgaug.flip import Flip, Rotation90
from ziggurat.dataflow.imgaug.noise import GaussianNoise
from ziggurat.dataflow.imgaug.resize import Resize, ResizeMode
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError

__all__ = ["Augmentation", "Mean", "Preprocessing", "mean_of"]

Mean = Literal["none", "pixel", "image"]
MEANS: Final = ("none", "pixel", "image")
_JSON_NAME: Final = "preprocessing.json"
_MEAN_NAME: Final = "mean.npy"

_FLIPS: Final = ("none", "fliplr", "flipud", "fliplrud")
_QUARTER_TURNS: Final = {"none": (), "rot90": (0, 1, 3), "rot180": (0, 2), "rotall": (0, 1, 2, 3)}
_BOUNDS: Final = {
    "rotation_deg": (0, 180),
    "scale": (0, 1),
    "noise": (0, 1),
    "contrast": (0, 5),
    "hue": (0, 0.5),
    "saturation": (0, 0.5),
    "value": (0, 0.5),
    "mixup": (0, 10),
    "cutmix": (0, 10),
    "mosaic": (0, 1),
}


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """What the network is made for.

    Args:
        size: (height, width) in pixels, before the crop.
        channels: 1 for gray, 3 for RGB.
        resize_mode: how an image of another size gets there.
        crop: side of the square that is cut out, at random in training and in the middle otherwise; None for all.
        mean: what is taken off: nothing, one number a channel, or an image.
        mean_values: (C) or (H, W, C) float32; None with ``mean="none"``.
        whitening: whether each image is then scaled to mean 0 and deviation 1, in training and elsewhere alike.
        bits: number of bits that the values of 16-bit images use in the training split; larger values become white.
    """

    size: tuple[int, int]
    channels: Literal[1, 3] = 3
    resize_mode: ResizeMode = "squash"
    crop: int | None = None
    mean: Mean = "none"
    mean_values: np.ndarray | None = field(default=None, compare=False)
    whitening: bool = False
    bits: int = 16

    def __post_init__(self) -> None:
        if self.channels not in (1, 3):
            raise ConfigurationError("`channels` must be 1 or 3.", received=self.channels, advice="Choose one of them.")
        if self.mean not in MEANS:
            raise ConfigurationError("`mean` must be none, pixel or image.", received=self.mean, advice="Choose one.")
        if self.crop is not None and not 1 <= self.crop <= min(self.size):
            raise ConfigurationError(
                f"`crop` must be from 1 to {min(self.size)}, the shorter side of the images.",
                received=self.crop,
                advice="Make the crop smaller or the images larger.",
            )
        shapes = {"none": None, "pixel": (self.channels,), "image": (*self.size, self.channels)}
        shape = None if self.mean_values is None else self.mean_values.shape
        if shape != shapes[self.mean]:
            raise ConfigurationError(
                f"`mean_values` must have shape {shapes[self.mean]} with mean {self.mean!r}.",
                received=shape,
                advice="Compute it with `mean_of`.",
            )

    @property
    def output_shape(self) -> tuple[int, int, int]:
        """(H, W, C) that the network sees."""
        height, width = (self.crop, self.crop) if self.crop is not None else self.size
        return (height, width, self.channels)

    @property
    def shape(self) -> tuple[int, ...]:
        """(H, W, C) that the network sees."""
        return self.output_shape

    @property
    def dtype(self) -> str:
        """NumPy type of what the network gets."""
        return "float32"

    @property
    def categories(self) -> tuple[int, ...]:
        """Of images, none."""
        return ()

    @property
    def vocabulary_size(self) -> None:
        """Of images, none."""
        return None

    def fit(self, image: np.ndarray) -> np.ndarray:
        """Return an image with the right size and channels.

        Args:
            image: (H, W, 1) or (H, W, 3) uint8, RGB, of any size.

        Returns:
            (height, width, channels) uint8.
        """
        if image.shape[:2] != self.size:
            image = Resize(self.size, mode=self.resize_mode, background_filler=ConstantBackgroundFiller(0)).augment(
                image
            )
        if image.ndim == 2:
            image = image[:, :, None]
        if image.shape[2] == self.channels:
            return image
        if self.channels == 3:
            return np.repeat(image, 3, axis=2)
        # The luminance of ITU-R BT.601, as every image library has it.
        return np.rint(image @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)[:, :, None]

    def placement(self, size: tuple[int, int], *, is_cropped: bool = False) -> tuple[float, float, float, float]:
        """Return where an image lies in its fitted form: scale of y and of x, top and left in px.

        Args:
            size: (height, width) of the image in px.
            is_cropped: whether a crop in the middle follows.
        """
        scale_y, scale_x, top, left = 1.0, 1.0, 0.0, 0.0
        if tuple(size) != tuple(self.size):
            resize = Resize(self.size, mode=self.resize_mode, background_filler=ConstantBackgroundFiller(0))
            # Only the size of what is transformed is read, so that one column of zeros stands for the whole image.
            image = np.broadcast_to(np.uint8(0), (*size, 1))
            corners = resize.get_transform(image).apply_coords(np.array([(0.0, 0.0), (size[1], size[0])]))
            (left, top), (right, bottom) = corners.tolist()
            scale_y, scale_x = (bottom - top) / size[0], (right - left) / size[1]
        if is_cropped:
            top, left = (at - (whole - part) // 2 for at, whole, part in zip((top, left), self.size, self.shape))
        return scale_y, scale_x, top, left

    def fit_mask(self, mask: np.ndarray, fill: int) -> np.ndarray:
        """Return a mask resized as its image is, without new numbers.

        Args:
            mask: (H, W) class numbers, of the size of its image.
            fill: number at places where the image has a border.
        """
        if mask.shape[:2] == self.size:
            return mask
        resize = Resize(self.size, mode=self.resize_mode, background_filler=ConstantBackgroundFiller(0))
        transform = resize.get_transform(np.zeros((*mask.shape[:2], 1), np.uint8))
        return transform.apply_mask(mask, fill)

    def decode(self, data: bytes | np.ndarray, key: Any) -> np.ndarray:
        """Return the image of a file's bytes, fitted; or an array, (H, W, C) uint8, fitted.

        Raises:
            DatapointError: where the bytes are no image; names ``key``.
        """
        return self.decode_sized(data, key)[0]

    def decode_sized(self, data: bytes | np.ndarray, key: Any) -> tuple[np.ndarray, tuple[int, int]]:
        """Return what ``decode`` returns, and the (height, width) in px that the image had before.

        Raises:
            DatapointError: where the bytes are no image; names ``key``.
        """
        image = data
        if not isinstance(image, np.ndarray):
            image = decode_image(image, channels=self.channels, key=key, bits=self.bits)
        return self.fit(image), (image.shape[0], image.shape[1])

    def input_note(self, data: bytes | np.ndarray) -> str:
        """Return what the bytes of an image lose because its values are above the bits of training; else an empty text.

        Args:
            data: as ``decode`` takes it.
        """
        highest = None if self.bits >= 16 or isinstance(data, np.ndarray) else highest_value(data)
        if highest is None or not highest >> self.bits:
            return ""
        return f"Its values reach {highest}, above the {self.bits} bits of the training images: they become white."

    def finish(
        self, images: np.ndarray, offsets: np.ndarray | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return a batch as the network gets it: cropped, less the mean, whitened.

        Args:
            images: (N, height, width, C) uint8 or float, fitted; or (N, H, W, C), cropped already.
            offsets: (N, 2) top and left of each crop; None for the middle.
            out: (N, H, W, C) that gets the result without whitening; None for new memory. It is uint8 only where
                ``keeps_uint8``.

        Returns:
            (N, H, W, C) float32, or of the type of ``out``.
        """
        mean = None if self.mean_values is None else self.mean_values.astype(np.float32)
        height, width, _ = self.output_shape
        finished = np.empty((len(images), height, width, self.channels), np.float32) if out is None else out
        if (height, width) == tuple(images.shape[1:3]):
            _less(images, mean, finished)
        else:
            middle = ((self.size[0] - height) // 2, (self.size[1] - width) // 2)
            places = np.tile(middle, (len(images), 1)) if offsets is None else offsets
            for image, (top, left), target in zip(images, places, finished, strict=True):
                part = np.s_[top : top + height, left : left + width]
                _less(image[part], mean[part] if mean is not None and mean.ndim == 3 else mean, target)
        return whitened(finished) if self.whitening else finished

    @property
    def keeps_uint8(self) -> bool:
        """Whether finished images hold the same whole numbers as before, so that they need not be float32."""
        return self.mean == "none" and not self.whitening

    def in_the_middle(self, array: np.ndarray) -> np.ndarray:
        """Return what a crop in the middle leaves of an array (H, W, …) of the size before the crop; else all of it."""
        if array.shape[:2] != tuple(self.size):
            return array
        height, width, _ = self.output_shape
        top, left = (array.shape[0] - height) // 2, (array.shape[1] - width) // 2
        return array[top : top + height, left : left + width]

    def save(self, folder: Path) -> None:
        """Write the definition into a folder: ``preprocessing.json``, and ``mean.npy`` for a mean image."""
        content = asdict(self) | {"mean_values": None}
        if self.mean == "pixel":
            assert self.mean_values is not None
            content["mean_values"] = [float(value) for value in self.mean_values]
        if self.mean == "image":
            assert self.mean_values is not None
            np.save(folder / _MEAN_NAME, self.mean_values, allow_pickle=False)
        (folder / _JSON_NAME).write_text(json.dumps(content, indent=1))

    @classmethod
    def load(cls, folder: Path) -> Preprocessing:
        """Return the definition that ``save`` wrote.

        Raises:
            DataError: where it is not there or damaged.
        """
        try:
            content = json.loads((folder / _JSON_NAME).read_text())
            values = content.pop("mean_values")
            if content["mean"] == "image":
                values = np.load(folder / _MEAN_NAME, allow_pickle=False)
            content["size"] = tuple(content["size"])
            return cls(**content, mean_values=None if values is None else np.asarray(values, np.float32))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"The folder {folder} must hold the preprocessing of its model.",
                received=str(error),
                advice="Use the folder of a job that has begun to train.",
            ) from error


def _less(images: np.ndarray, mean: np.ndarray | None, out: np.ndarray) -> None:
    """Write float32 numbers less the mean, in one pass over the memory."""
    if mean is None:
        np.copyto(out, images, casting="same_kind")
    else:
        np.subtract(images, mean, out=out, dtype=np.float32, casting="same_kind")


def whitened(images: np.ndarray) -> np.ndarray:
    """Return (N, H, W, C) float32 with each image at mean 0 and deviation 1.

    The deviation that it is divided by is no less than 1/√pixels, as in TensorFlow's ``per_image_standardization``.
    """
    flat = images.reshape(len(images), -1)
    least = 1 / np.sqrt(flat.shape[1])
    spread = np.maximum(flat.std(axis=1, dtype=np.float64), least).astype(np.float32)
    level = flat.mean(axis=1, dtype=np.float64).astype(np.float32)
    return ((flat - level[:, None]) / spread[:, None]).reshape(images.shape)


def mean_of(images: Iterable[np.ndarray], mean: Mean) -> np.ndarray | None:
    """Return the mean of fitted images; memory does not grow with their number.

    Args:
        images: (H, W, C) uint8, all of one shape.
        mean: ``none``, ``pixel`` or ``image``.

    Returns:
        None, (C) or (H, W, C) float32.

    Raises:
        DataError: where there is no image.
    """
    if mean == "none":
        return None
    total: np.ndarray | None = None
    count = 0
    for image in images:
        total = image.astype(np.float64) if total is None else total + image
        count += 1
    if total is None:
        raise DataError("A mean is taken over at least one image.", received="none", advice="Check the data's folder.")
    average = (total / count).astype(np.float32)
    return average if mean == "image" else average.mean(axis=(0, 1))


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How images are varied in training.

    Args:
        flip: ``fliplr`` left and right, ``flipud`` top and bottom, ``fliplrud`` each of both, half of the time.
        quad_rotation: ``rot90`` (0°, ±90°), ``rot180`` (0°, 180°), ``rotall`` (any quarter).
        rotation_deg: most degrees to both sides, 0 to 180.
        scale: standard deviation of the size, as a share, 0 to 1; 0.07 is usual.
        noise: standard deviation of noise as a share of white, 0 to 1; 0.03 is usual.
        contrast: contrast varies by up to this share to both sides, 0 to 5; 0.8 is strong.
        hue: hue varies by up to this share of the circle to both sides, 0 to 0.5; 0.02 is usual.
        saturation: saturation varies by up to this share, 0 to 0.5; 0.04 is usual.
        value: brightness varies by up to this share, 0 to 0.5; 0.06 is usual.
        mixup: images of a batch are blended in pairs, by shares from Beta(mixup, mixup), 0 to 10; 0.2 is usual.
        cutmix: a rectangle of each image of a batch comes from another one, of an area from Beta(cutmix, cutmix), 0 to
            10; 1 is usual. With both, each batch is mixed in one of the two ways.
        mosaic: share of images of a detector that become one of parts of four, 0 to 1; 0.5 is usual.
    """

    flip: Literal["none", "fliplr", "flipud", "fliplrud"] = "none"
    quad_rotation: Literal["none", "rot90", "rot180", "rotall"] = "none"
    rotation_deg: float = 0.0
    scale: float = 0.0
    noise: float = 0.0
    contrast: float = 0.0
    hue: float = 0.0
    saturation: float = 0.0
    value: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    mosaic: float = 0.0

    @property
    def mixes(self) -> bool:
        """Whether the samples of a batch are mixed, and their labels with them."""
        return self.mixup > 0 or self.cutmix > 0

    def __post_init__(self) -> None:
        if self.flip not in _FLIPS:
            raise UnknownNameError("flip", self.flip, _FLIPS)
        if self.quad_rotation not in _QUARTER_TURNS:
            raise UnknownNameError("quad_rotation", self.quad_rotation, _QUARTER_TURNS)
        for name, (least, most) in _BOUNDS.items():
            if not least <= getattr(self, name) <= most:
                raise ConfigurationError(
                    f"`{name}` must be from {least} to {most}.",
                    received=getattr(self, name),
                    advice="Choose a number in between; 0 leaves it out.",
                )

    def check_size(self, size: tuple[int, int]) -> None:
        """Refuse images that quarter turns would bring into several shapes, of which no batch can be made.

        Args:
            size: (height, width) in pixels of what is varied.

        Raises:
            DataError: where it is no square and quarters are turned.
        """
        if size[0] != size[1] and any(turns % 2 for turns in _QUARTER_TURNS[self.quad_rotation]):
            raise DataError(
                "Quarter turns need square images, and these have "
                f"{' x '.join(str(side) for side in size)}: those of a batch would have several shapes.",
                advice="Set `preprocessing.size` to a square, or turn by `rot180`.",
            )

    def augmentors(self, channels: int) -> list[ImageAugmentor]:
        """Return the augmentors, geometry first; those that need colors are left out for gray images.

        Args:
            channels: 1 or 3.
        """
        chosen: list[ImageAugmentor] = []
        if self.flip in ("fliplr", "fliplrud"):
            chosen.append(Flip(horiz=True))
        if self.flip in ("flipud", "fliplrud"):
            chosen.append(Flip(vert=True))
        if self.quad_rotation != "none":
            chosen.append(Rotation90(_QUARTER_TURNS[self.quad_rotation]))
        if self.rotation_deg:
            chosen.append(Affine(rotate_max_deg=self.rotation_deg))
        if self.scale:
            chosen.append(Rescale(self.scale))
        if self.hue and channels == 3:
            chosen.append(Hue((-180 * self.hue, 180 * self.hue)))
        if self.saturation and channels == 3:
            chosen.append(Saturation(self.saturation))
        if self.value:
            chosen.append(BrightnessScale((1 - self.value, 1 + self.value)))
        if self.contrast:
            chosen.append(Contrast((max(0.0, 1 - self.contrast), 1 + self.contrast)))
        if self.noise:
            chosen.append(GaussianNoise(255 * self.noise))
        return chosen
