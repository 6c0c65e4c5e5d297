"""Class colors in masks: the files that list them, and the conversion of colors to class numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.formats.shared.list_files import Line, lines_of
from ziggurat.errors import ConfigurationError, DataError, DatapointError

__all__ = ["ColourMap", "colour_map", "read_colour_map"]

_NUMBER: Final = r"(\d{1,3})"
_BETWEEN: Final = r"[\s,;]+"
_COLOUR: Final = re.compile(
    rf"(?:(?P<before>.*?){_BETWEEN})??{_NUMBER}{_BETWEEN}{_NUMBER}{_BETWEEN}{_NUMBER}(?:{_BETWEEN}(?P<behind>.*))?"
)

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class ColourMap:
    """The color of each class.

    Args:
        colours: (R, G, B) by class number; where two classes have one color, it means the first.
        names: by class number; empty where the file has none.
    """

    colours: tuple[Colour, ...]
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
            raise _unknown_colour(image, unknown, key)
        return classes[places].astype(np.uint8 if len(self.colours) <= 256 else np.uint16)


def read_colour_map(path: Path) -> ColourMap:
    """Return the colors in a file: a class a line, as ``R G B``, ``name R G B`` or ``R G B name``.

    The first line may be a heading. Values are divided by blanks, commas or semicolons.

    Raises:
        DataError: where a line is none of these.
    """
    colours: list[Colour] = []
    names: list[str] = []
    for line in lines_of(path):
        found = _COLOUR.fullmatch(line.text.strip())
        if found is None and line.number == 1 and not any(mark.isdigit() for mark in line.text):
            continue
        if found is None or max(int(value) for value in found.group(2, 3, 4)) > 255:
            raise _no_colour(path, line)
        colours.append((int(found[2]), int(found[3]), int(found[4])))
        names.append((found["before"] or found["behind"] or "").strip().strip("\"'"))
    if not colours:
        raise DataError("A color map has a line for each class.", received=f"`{path}`, which has none")
    return ColourMap(tuple(colours), tuple(names) if all(names) and len(set(names)) == len(names) else ())


def colour_map(values: Sequence[Any]) -> ColourMap:
    """Return the colors of an option: a list of [R, G, B].

    Raises:
        ConfigurationError: where it is something else.
    """
    try:
        colours = tuple((int(red), int(green), int(blue)) for red, green, blue in values)
    except (TypeError, ValueError):
        colours = ()
    if len(colours) != len(values) or not all(0 <= value <= 255 for colour in colours for value in colour):
        raise ConfigurationError(
            "`colours` is a list of [R, G, B] from 0 to 255, one for each class.", received=repr(values)
        )
    return ColourMap(colours)


def _codes(image: np.ndarray) -> np.ndarray:
    return image[..., 0] << 16 | image[..., 1] << 8 | image[..., 2]


def _unknown_colour(image: np.ndarray, unknown: np.ndarray, key: str) -> DatapointError:
    row, column = np.argwhere(unknown)[0].tolist()
    red, green, blue = image[row, column].tolist()
    return DatapointError(
        key,
        f"its color {red} {green} {blue} at row {row}, column {column} is in no line of the color map "
        f"({int(unknown.sum())} such pixels).",
        advice="Add the color to the map, or save masks without smoothing and not as JPEG.",
    )


def _no_colour(path: Path, line: Line) -> DataError:
    return DataError(
        "A line of a color map is `R G B`, `name R G B` or `R G B name`, with numbers from 0 to 255.",
        received=f"{line.text!r} in `{path}`, line {line.number}",
        advice="Correct the line; class i is line i.",
    )
