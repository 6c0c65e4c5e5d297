"""Augmentation options of a job, in the form that DIGITS uses, and the augmentors that they select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ziggurat.dataflow.imgaug.affine import Affine, Rescale
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.color import BrightnessScale, Contrast, Hue, Saturation
from ziggurat.dataflow.imgaug.flip import Flip, Rotation90
from ziggurat.dataflow.imgaug.noise import GaussianNoise
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError

__all__ = ["Augmentation"]

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
}


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
                "Quarter turns need square images: else those of a batch have several shapes.",
                received=" x ".join(str(side) for side in size),
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
