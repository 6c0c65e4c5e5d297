"""Mask reader: any mask encoding or table of class colors in, a PNG of class numbers out."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from PIL import Image

from ziggurat.datasets.formats.masks.values import ValueTable
from ziggurat.datasets.formats.shared.text_files import Line, lines_of
from ziggurat.datasets.importer import PartReader, read_source_file
from ziggurat.errors import ConfigurationError, DataError, DatapointError

__all__ = ["MODES", "ColorMap", "MaskReader", "color_map", "colors_of", "mask_address", "palette_of", "read_color_map"]

MODES: Final = ("auto", "index", "palette", "rgb", "binary")
_GREY: Final = ("L", "1", "I", "I;16", "I;16B")
_FEW_BITS: Final = {1: 255, 2: 85, 4: 17}  # bits of a pixel → factor by which decoders scale its values up
_MASK: Final = "mask:"  # before the path, where a part of a sample is a mask to be read here
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
_COLOR_MODES: Final = ("RGB", "RGBA")
_AS_IT_IS: Final = ValueTable()

_NUMBER: Final = r"(\d{1,3})"
_BETWEEN: Final = r"[\s,;]+"
_COLOR: Final = re.compile(
    rf"(?:(?P<before>.*?){_BETWEEN})??{_NUMBER}{_BETWEEN}{_NUMBER}{_BETWEEN}{_NUMBER}(?:{_BETWEEN}(?P<behind>.*))?"
)

_CVAT: Final = re.compile(r"(.+?):(\d+,\d+,\d+):[^:]*:[^:]*")  # name:R,G,B:parts:actions

Color = tuple[int, int, int]


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
        table: the value of each class, where that is not its number.
    """

    def __init__(
        self,
        root: Path,
        mode: str,
        colours: ColorMap | None,
        first_mask: Callable[[], str],
        table: ValueTable = _AS_IT_IS,
    ) -> None:
        self._table = table
        self._folder = root
        self._mode = mode
        self._colors = colours
        self._first_mask = first_mask

    def read(self, address: str) -> bytes:
        """Return an image's file, or a mask: PNG with one channel, (H, W) uint8 or uint16.

        Raises:
            DatapointError: where it cannot be read, has a color without a class, or another palette than the first
                mask. (Whether a mask has the size of its image is checked when both are read.)
        """
        if not address.startswith(_MASK):
            return read_source_file(self._folder / address)
        path = address.removeprefix(_MASK)
        content = read_source_file(self._folder / path)
        numbers, is_kept = self._numbers_in(content, path)
        if is_kept and not self._table.values:
            return content
        _done, encoded = cv2.imencode(".png", self._table.class_numbers(numbers))
        return encoded.tobytes()

    def values(self, path: str) -> tuple[np.ndarray, bool] | None:
        """Return the values of a mask, (H, W) uint8 or uint16, and whether it is JPEG; None for one of colors.

        Raises:
            DatapointError: as ``read``.
        """
        content = read_source_file(self._folder / path)
        with _opened(content, path) as image:
            if self._mode_of(image, path) == "rgb":
                return None
        return self._numbers_in(content, path)[0], content.startswith(_JPEG)

    def file(self, address: str) -> Path | None:
        """Return the file of an image; of a mask none, because what is in it may have to be translated."""
        return None if address.startswith(_MASK) else self._folder / address

    def _numbers_in(self, content: bytes, key: str) -> tuple[np.ndarray, bool]:
        """Return the mask, and whether its file is a PNG of just these numbers."""
        with _opened(content, key) as image:
            mode = self._mode_of(image, key)
            is_kept = mode == "index" and content.startswith(_PNG) and image.mode in _GREY
            if mode == "palette":
                self._check_palette(content, key)
            numbers = self._NUMBERS[mode](self, _decoded(image, key), content, key)
        return numbers, is_kept and _bits(content) in (8, 16)

    def _mode_of(self, image: Image.Image, key: str) -> str:
        if self._mode == "auto":
            if image.mode == "P":
                return "rgb" if self._colors else "palette"
            return (
                "rgb" if image.mode in _COLOR_MODES and not (self._colors is None and _is_gray(image, key)) else "index"
            )
        if self._mode == "palette" and image.mode != "P":
            raise DatapointError(key, f"it has no palette, as masks in the mode palette do (it is {image.mode}).")
        return self._mode

    def _from_grey(self, image: Image.Image, content: bytes, key: str) -> np.ndarray:
        if image.mode in _COLOR_MODES and _is_gray(image, key):
            return np.ascontiguousarray(np.asarray(image.convert("RGB"))[..., 0])
        if image.mode not in _GREY:
            raise DatapointError(
                key,
                f"a mask in the mode index has one channel, and it is {image.mode}.",
                advice="Give the colors of the classes (option `colour_file`), or the mode palette.",
            )
        values = np.asarray(image.convert("L") if image.mode == "1" else image)
        if values.dtype.kind == "i" and values.size:
            lowest, highest = int(values.min()), int(values.max())
            if lowest < -1 or highest > 65535:
                raise DatapointError(
                    key, f"its values are from {lowest} to {highest}, and a mask has those from -1 to 65535."
                )
            if lowest == -1:  # no class
                values = np.where(values < 0, 255 if highest < 255 else 65535, values)
        few = _FEW_BITS.get(_bits(content))
        return values.astype(np.uint16) if values.dtype != np.uint8 else values // np.uint8(few or 1)

    def _from_palette(self, image: Image.Image, _content: bytes, _key: str) -> np.ndarray:
        return np.asarray(image)

    def _from_colors(self, image: Image.Image, _content: bytes, key: str) -> np.ndarray:
        if self._colors is None:
            raise DatapointError(
                key,
                "it has colors, and it is not known which class each stands for.",
                advice="Give a file of colors (option `colour_file`) or a list (option `colours`).",
            )
        return self._colors.numbers(np.asarray(image.convert("RGB")), key)

    def _from_light(self, image: Image.Image, _content: bytes, _key: str) -> np.ndarray:
        return (np.asarray(image.convert("L")) >= 128).astype(np.uint8)

    _NUMBERS: Final[dict[str, Callable[..., np.ndarray]]] = {
        "index": _from_grey,
        "palette": _from_palette,
        "rgb": _from_colors,
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


def colors_of(path: Path) -> list[tuple[int, int, int]]:
    """Return the colors (R, G, B) of a mask; none where it has gray values or a palette, or cannot be read."""
    try:
        with _opened(read_source_file(path), str(path)) as image:
            if image.mode not in _COLOR_MODES or _is_gray(image, str(path)):
                return []
            found = np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0)
    except DatapointError:
        return []
    return [(int(red), int(green), int(blue)) for red, green, blue in found]


def _is_gray(image: Image.Image, key: str) -> bool:
    """Whether a colored mask has three equal channels, so that it is one of gray values."""
    channels = np.asarray(_decoded(image, key).convert("RGB"))
    return bool((channels == channels[..., :1]).all())


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


@dataclass(frozen=True)
class ColorMap:
    """The color of each class.

    Args:
        colours: (R, G, B) by class number; where two classes have one color, it means the first.
        names: by class number; empty where the file has none.
    """

    colours: tuple[Color, ...]
    names: tuple[str, ...] = ()

    def numbers(self, image: np.ndarray, key: str) -> np.ndarray:
        """Return the class numbers of a mask, (H, W) uint8, or uint16 where there are more than 256 classes.

        Args:
            image: (H, W, 3) uint8, RGB.
            key: what names the mask in an error.

        Raises:
            DatapointError: where it has a color that the map has not.
        """
        known, classes = np.unique(_codes(np.array(self.colours, np.uint32)), return_index=True)
        codes = _codes(image.astype(np.uint32))
        places = np.searchsorted(known, codes).clip(max=len(known) - 1)
        unknown = known[places] != codes
        if unknown.any():
            raise _unknown_color(image, unknown, key)
        return classes[places].astype(np.uint8 if len(self.colours) <= 256 else np.uint16)


def read_color_map(path: Path) -> ColorMap:
    """Return the colors in a file: a class a line, as ``R G B``, ``name R G B``, ``R G B name``, or CVAT's.

    The first line may be a heading. Values are divided by blanks, commas or semicolons.

    Raises:
        DataError: where a line is none of these.
    """
    colours: list[Color] = []
    names: list[str] = []
    for line in lines_of(path):
        found = _COLOR.fullmatch(_CVAT.sub(r"\1 \2", line.text.strip()))
        if found is None and line.number == 1 and not any(mark.isdigit() for mark in line.text):
            continue
        if found is None or max(int(value) for value in found.group(2, 3, 4)) > 255:
            raise _no_color(path, line)
        colours.append((int(found[2]), int(found[3]), int(found[4])))
        names.append((found["before"] or found["behind"] or "").strip().strip("\"'"))
    if not colours:
        raise DataError(f"The color map `{path}` has no line.")
    return ColorMap(tuple(colours), tuple(names) if all(names) and len(set(names)) == len(names) else ())


def color_map(values: Sequence[Any]) -> ColorMap:
    """Return the colors of an option: a list of [R, G, B].

    Raises:
        ConfigurationError: where it is something else.
    """
    try:
        colours = tuple((int(red), int(green), int(blue)) for red, green, blue in values)
    except (TypeError, ValueError):
        colours = ()
    if len(colours) != len(values) or not all(0 <= value <= 255 for color in colours for value in color):
        raise ConfigurationError(
            "`colours` is a list of [R, G, B] from 0 to 255, one for each class.", received=repr(values)
        )
    return ColorMap(colours)


def _codes(image: np.ndarray) -> np.ndarray:
    return image[..., 0] << 16 | image[..., 1] << 8 | image[..., 2]


def _unknown_color(image: np.ndarray, unknown: np.ndarray, key: str) -> DatapointError:
    row, column = np.argwhere(unknown)[0].tolist()
    red, green, blue = image[row, column].tolist()
    return DatapointError(
        key,
        f"its color {red} {green} {blue} at row {row}, column {column} is in no line of the color map "
        f"({int(unknown.sum())} such pixels).",
        advice="Add the color to the map, or save masks without smoothing and not as JPEG.",
    )


def _no_color(path: Path, line: Line) -> DataError:
    return DataError(
        "A line of a color map is `R G B`, `name R G B` or `R G B name`, with numbers from 0 to 255.",
        received=f"{line.text!r} in `{path}`, line {line.number}",
        advice="Correct the line; class i is line i.",
    )
