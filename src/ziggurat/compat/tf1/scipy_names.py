"""``scipy.misc`` as scripts knew it: images that are read, written and resized, and what SciPy moved elsewhere."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from PIL import Image

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.errors import UsageError

__all__ = ["imread", "imresize", "imsave", "scipy_module", "toimage"]


def scipy_module() -> StandInModule:
    """Return ``scipy`` with the names of ``scipy.misc`` that SciPy had until 1.2.

    Raises:
        ModuleNotFoundError: if SciPy is not installed.
    """
    moved: Any = importlib.import_module("scipy.special")
    names = {name: globals()[name] for name in ("imread", "imresize", "imsave", "toimage")}
    names |= {name: getattr(moved, name) for name in ("comb", "factorial", "logsumexp")}
    return StandInModule(
        "scipy", importlib.import_module("scipy"), names={"misc": StandInModule("scipy.misc", names=names)}
    )


def toimage(
    arr: Any,
    high: int = 255,
    low: int = 0,
    cmin: float | None = None,
    cmax: float | None = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Image.Image:
    """Return an array as an image; other values than bytes are stretched from the least to the largest.

    Args:
        arr: (H, W), or three or four channels on an axis.
        high: byte of the largest value.
        low: byte of the least value.
        cmin: value that becomes ``low``; the least one if not given.
        cmax: value that becomes ``high``; the largest one if not given.
        mode: of the image, such as ``L`` or ``F``.
        channel_axis: axis of the channels; the first of size 3, or else 4, if not given.

    Raises:
        UsageError: for another shape.
    """
    values = np.asarray(arr)
    if np.iscomplexobj(values):
        raise UsageError("Complex numbers are no image.", advice="Use `numpy.abs`.")
    if values.ndim == 2:
        if mode == "F":
            return Image.fromarray(values.astype(np.float32))
        image = Image.fromarray(_bytes(values, low, high, cmin, cmax))
        return image if mode in (None, "L") else image.convert(mode)
    axes = [axis for count in (3, 4) for axis, size in enumerate(values.shape) if size == count]
    axis = channel_axis if channel_axis is not None else axes[0] if axes else -1
    if values.ndim != 3 or values.shape[axis] not in (3, 4):
        raise UsageError(f"An array of shape {values.shape} is no image.", advice="Give (H, W) or (H, W, 3).")
    image = Image.fromarray(_bytes(np.moveaxis(values, axis, 2), low, high, cmin, cmax))
    return image if mode is None else image.convert(mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:  # noqa: A002 - SciPy's name
    """Write an array as an image; see ``toimage``."""
    toimage(arr, channel_axis=2).save(name, format)


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """Return an image as (H, W) or (H, W, C) uint8; float32 gray values with ``flatten``."""
    with Image.open(name) as image:
        return _array(image, flatten, mode)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> np.ndarray:
    """Return an array as an image of another size, uint8.

    Args:
        arr: as ``toimage`` takes it.
        size: percent (int), factor (float), or (height, width).
        interp: ``nearest``, ``lanczos``, ``bilinear``, ``bicubic`` or ``cubic``.
        mode: see ``toimage``.
    """
    image = toimage(arr, mode=mode)
    if isinstance(size, int | np.integer):
        size = float(size) / 100
    if isinstance(size, float | np.floating):
        wanted = (int(image.width * size), int(image.height * size))
    else:
        wanted = (int(size[1]), int(size[0]))
    filters = {"cubic": Image.Resampling.BICUBIC} | {each.name.lower(): each for each in Image.Resampling}
    return np.array(image.resize(wanted, resample=filters[interp]))


def _array(image: Image.Image, flatten: bool, mode: str | None) -> np.ndarray:
    if mode is not None and mode != image.mode:
        image = image.convert(mode)
    elif image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if image.mode == "1":
        image = image.convert("L")
    return np.array(image.convert("F") if flatten else image)


def _bytes(values: np.ndarray, low: int, high: int, cmin: float | None, cmax: float | None) -> np.ndarray:
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    least = values.min() if cmin is None else cmin
    span = (values.max() if cmax is None else cmax) - least
    scaled = (values - least) * ((high - low) / (span or 1)) + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)
