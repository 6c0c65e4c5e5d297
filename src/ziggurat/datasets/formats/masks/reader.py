"""Mask reader: any mask encoding in, a PNG of class numbers out.

Class numbers come from grayscale values (``index``), from the palette indices of a PNG (``palette``), from colors by
a map (``rgb``), or from brightness (``binary``: 0 below 128, else 1). ``auto`` inspects each mask: colors use the
map, if there is one; a palette uses its indices; grayscale uses its values.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from PIL import Image

from ziggurat.datasets.formats.masks.colors import ColourMap
from ziggurat.datasets.importer import PartReader, read_source_file
from ziggurat.errors import DatapointError

__all__ = ["MODES", "MaskReader", "mask_address", "palette_of"]

MODES: Final = ("auto", "index", "palette", "rgb", "binary")
_GREY: Final = ("L", "1", "I", "I;16", "I;16B")
_FEW_BITS: Final = {1: 255, 2: 85, 4: 17}
_MASK: Final = "mask:"
_PNG: Final = b"\x89PNG\r\n\x1a\n"


def mask_address(path: str) -> str:
    """Return the address of a mask."""
    return _MASK + path


def palette_of(mask: bytes) -> tuple[tuple[int, int, int], ...]:
    """Return the colors (R, G, B) of a PNG's palette; none where it has no palette."""
    place = mask.find(b"PLTE", 0, 1 << 16) if mask.startswith(_PNG) else -1
    if place < 4:
        return ()
    values = mask[place + 4 : place + 4 + int.from_bytes(mask[place - 4 : place])]
    return tuple((values[at], values[at + 1], values[at + 2]) for at in range(0, len(values) - 2, 3))


class MaskReader(PartReader):
    """Reads images as they are, and masks as PNG of class numbers.

    Args:
        root: folder that addresses are relative to.
        mode: one of ``MODES``.
        colours: needed where masks have colors.
        first_mask: gives the path of the mask whose palette all must have; empty for none.
    """

    def __init__(self, root: Path, mode: str, colours: ColourMap | None, first_mask: Callable[[], str]) -> None:
        self._folder = root
        self._mode = mode
        self._colours = colours
        self._first_mask = first_mask

    def read(self, address: str) -> bytes:
        """Return an image's file, or a mask: PNG with one channel, (H, W) uint8 or uint16.

        Raises:
            DatapointError: where it cannot be read, has a color without a class, or another palette than the first
                mask. (Whoever reads both sees whether a mask is as large as its image.)
        """
        if not address.startswith(_MASK):
            return read_source_file(self._folder / address)
        path = address.removeprefix(_MASK)
        return self._class_numbers(read_source_file(self._folder / path), path)

    def file(self, address: str) -> Path | None:
        """Return the file of an image; of a mask none, because what is in it may have to be translated."""
        return None if address.startswith(_MASK) else self._folder / address

    def _class_numbers(self, content: bytes, key: str) -> bytes:
        """Return the mask as PNG."""
        with _opened(content, key) as image:
            mode = self._mode_of(image, key)
            if mode == "index" and content.startswith(_PNG) and image.mode in _GREY and _bits(content) in (8, 16):
                _decoded(image, key)
                return content
            if mode == "palette":
                self._check_palette(content, key)
            numbers = self._NUMBERS[mode](self, _decoded(image, key), content, key)
        _done, encoded = cv2.imencode(".png", numbers)
        return encoded.tobytes()

    def _mode_of(self, image: Image.Image, key: str) -> str:
        if self._mode == "auto":
            if image.mode == "P":
                return "rgb" if self._colours else "palette"
            return "rgb" if image.mode in ("RGB", "RGBA") else "index"
        if self._mode == "palette" and image.mode != "P":
            raise DatapointError(key, f"it has no palette, as masks in the mode palette do (it is {image.mode}).")
        return self._mode

    def _from_grey(self, image: Image.Image, content: bytes, key: str) -> np.ndarray:
        if image.mode not in _GREY:
            raise DatapointError(
                key,
                f"a mask in the mode index has one channel, and it is {image.mode}.",
                advice="Give the colors of the classes (option `colour_file`), or the mode palette.",
            )
        values = np.asarray(image.convert("L") if image.mode == "1" else image)
        few = _FEW_BITS.get(_bits(content))
        return values.astype(np.uint16) if values.dtype != np.uint8 else values // np.uint8(few or 1)

    def _from_palette(self, image: Image.Image, _content: bytes, _key: str) -> np.ndarray:
        return np.asarray(image)

    def _from_colours(self, image: Image.Image, _content: bytes, key: str) -> np.ndarray:
        if self._colours is None:
            raise DatapointError(
                key,
                "it has colors, and it is not known which class each stands for.",
                advice="Give a file of colors (option `colour_file`) or a list (option `colours`).",
            )
        return self._colours.numbers(np.asarray(image.convert("RGB")), key)

    def _from_light(self, image: Image.Image, _content: bytes, _key: str) -> np.ndarray:
        return (np.asarray(image.convert("L")) >= 128).astype(np.uint8)

    _NUMBERS: Final[dict[str, Callable[..., np.ndarray]]] = {
        "index": _from_grey,
        "palette": _from_palette,
        "rgb": _from_colours,
        "binary": _from_light,
    }

    @cached_property
    def _palette(self) -> tuple[tuple[int, int, int], ...]:
        first = self._first_mask()
        return palette_of(read_source_file(self._folder / first)) if first else ()

    def _check_palette(self, content: bytes, key: str) -> None:
        mine = palette_of(content)
        both = min(len(mine), len(self._palette))  # colors that are not used may be cut off
        for number in range(both):
            if mine[number] != self._palette[number]:
                raise DatapointError(
                    key,
                    f"all masks share one palette, and its color {number} is {mine[number]} instead of "
                    f"{self._palette[number]}.",
                    advice="Save all masks with one palette, or give a color map and the mode rgb.",
                )


# ---- files


def _opened(content: bytes, key: str) -> Image.Image:
    try:
        return Image.open(io.BytesIO(content), formats=("PNG", "BMP", "TIFF", "GIF", "JPEG", "PPM", "WEBP"))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DatapointError(key, f"its mask is no image ({error}).") from error


def _decoded(image: Image.Image, key: str) -> Image.Image:
    try:
        image.load()
    except (OSError, ValueError, SyntaxError) as error:
        raise DatapointError(key, f"its mask cannot be decoded ({error}).") from error
    return image


def _bits(content: bytes) -> int:
    return content[24] if content.startswith(_PNG) and len(content) > 24 else 8
