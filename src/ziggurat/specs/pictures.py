"""Specs of image preprocessing (applied everywhere) and image augmentation (training only)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from ziggurat.specs.base import SpecModel, spec_field

__all__ = ["Augmentation", "Preprocessing", "picture_size"]

_BEFORE = "Preprocessing"
_VARIED = "Augmentation"


def picture_size(value: Any) -> Any:
    """Return ``28`` as ``[28, 28]`` and ``"240x320"`` as ``[240, 320]``; anything else that is no text as it is."""
    if isinstance(value, list) and len(value) == 1:  # how a flag says a single value
        return picture_size(value[0])
    if isinstance(value, int) and not isinstance(value, bool):
        return [value, value]
    if isinstance(value, str):
        if not all(part.isdigit() for part in value.split("x")):
            raise PydanticCustomError("wrong", "must be a height and a width, as in 28 or 240x320")
        return [int(part) for part in value.split("x")]
    return value


class Preprocessing(SpecModel):
    """What is done to every image, in training, validation, prediction and exports alike."""

    size: Annotated[list[int], BeforeValidator(picture_size)] | None = spec_field(
        None,
        title="Size",
        help="Height and width of the images, as in 28 or 240x320; left out, what the data has.",
        unit="px",
        group=_BEFORE,
        min_length=2,
        max_length=2,
    )
    channels: Literal[1, 3] | None = spec_field(
        None, title="Channels", help="1 for gray, 3 for color; left out, what the data has.", group=_BEFORE
    )
    resize_mode: Literal["squash", "crop", "fill", "half_crop"] = spec_field(
        "squash",
        title="Resize mode",
        help="How an image of another size gets there; `squash` ignores its aspect ratio.",
        group=_BEFORE,
    )
    crop: int | None = spec_field(
        None,
        title="Crop",
        help="Side of a square that is cut out, at random in training, else in the middle; typical: 7/8 of the size.",
        unit="px",
        group=_BEFORE,
        ge=1,
    )
    mean: Literal["none", "pixel", "image"] = spec_field(
        "none",
        title="Mean subtraction",
        help="What is taken off: nothing, one number a channel, or the mean image of the training split.",
        group=_BEFORE,
    )
    whitening: bool = spec_field(
        False,
        title="Whitening",
        help="Scales each image to mean 0 and deviation 1, in prediction as well.",
        group=_BEFORE,
    )


def _share(most: float, title: str, help: str) -> Any:  # noqa: A002
    return spec_field(0.0, title=title, help=help, group=_VARIED, ge=0, le=most)


class Augmentation(SpecModel):
    """How images are varied in training."""

    flip: Literal["none", "fliplr", "flipud", "fliplrud"] = spec_field(
        "none", title="Flip", help="Mirrors half of the images: left and right, up and down, or both.", group=_VARIED
    )
    quad_rotation: Literal["none", "rot90", "rot180", "rotall"] = spec_field(
        "none", title="Quarter turns", help="Turns by 0 and 90 degrees to both sides, by 180, or by all.", group=_VARIED
    )
    rotation_deg: float = spec_field(
        0.0,
        title="Rotation",
        help="Turns by up to this angle to both sides; typical: 0 to 15.",
        unit="deg",
        group=_VARIED,
        ge=0,
        le=180,
    )
    scale: float = _share(1, "Rescale", "Standard deviation of the size, as a share; 0.07 is usual.")
    noise: float = _share(1, "Noise", "Standard deviation of noise, as a share of white; 0.03 is usual.")
    contrast: float = _share(5, "Contrast", "Contrast varies by up to this share; 0.8 is strong.")
    hue: float = _share(0.5, "Hue", "Hue varies by up to this share of the circle; 0.02 is usual.")
    saturation: float = _share(0.5, "Saturation", "Saturation varies by up to this share; 0.04 is usual.")
    value: float = _share(0.5, "Brightness", "Brightness varies by up to this share; 0.06 is usual.")

    @property
    def swaps_sides(self) -> bool:
        """Whether some images change height for width, so that only square ones stay of one shape."""
        return self.quad_rotation in ("rot90", "rotall")
