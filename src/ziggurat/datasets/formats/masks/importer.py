"""Importer for images with masks: folders with the same file names or lists of pairs, and any mask encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

from ziggurat.datasets.formats.masks.layout import MaskSource, first_pair, is_mask_folder
from ziggurat.datasets.formats.masks.reader import MODES, MaskReader, mask_address, palette_of
from ziggurat.datasets.formats.shared.exported_schema import SCHEMA_NAME, completed
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError
from ziggurat.records.schema import Schema

__all__ = ["MasksImporter"]

_LOOKED_AT: Final = 4
_VOID: Final = 255
_NO_CLASS: Final = range(251, 255)


class MasksImporter(Importer):
    """Images with masks: one class number a pixel."""

    name = "masks"
    title = "Images with masks"
    kinds = ("segmentation",)
    options = (
        ImporterOption(name="images", type=str, default="", help="Folder of the images."),
        ImporterOption(name="masks", type=str, default="", help="Folder of the masks, with the images' names."),
        ImporterOption(name="val_images", type=str, default="", help="Folder of the images for validation."),
        ImporterOption(name="val_masks", type=str, default="", help="Folder of the masks for validation."),
        ImporterOption(name="mask_suffix", type=str, default="", help="What a mask's name adds, such as _mask."),
        ImporterOption(
            name="mode", type=str, default="auto", choices=MODES, help="What in a mask says the number of the class."
        ),
        ImporterOption(name="colour_file", type=str, default="", help="File with the color of class i in line i."),
        ImporterOption(name="colours", type=list, default=[], help="List of [R, G, B], one for each class."),
        ImporterOption(name="classes", type=str, default="", help="File with the name of class i in line i."),
        ImporterOption(
            name="ignore_class",
            type=int,
            default=None,
            help="Number in masks that is no class. Left out: 255 where masks have it beyond their classes; -1: none.",
        ),
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim folders of images and masks that match, and lists of their pairs."""
        found = MaskSource(source, self.checked_options({}))
        if source.is_file() and source.suffix.lower() not in (".txt", ".lst", ".tsv"):
            return None
        first = first_pair(found.pairs())
        if first.second in ("", first.first) or not (found.root / first.second).is_file():
            return None
        elsewhere = source.is_dir() and (source / "Annotations").is_dir() and (source / "ImageSets").is_dir()
        sure = is_mask_folder(str(Path(first.second).parent)) and not elsewhere
        black_and_white = _are_black_and_white(found)
        drawn = "black and white masks" if black_and_white else "masks"
        return Guess(
            format=self.name,
            confidence=0.92 if sure else 0.5 if _has_one_channel(found.root / first.second) else 0.2,
            reason=f"images with {drawn} of the same name, such as `{first.first}` and `{first.second}`",
            kind="segmentation",
            options={"mode": "binary"} if black_and_white else {},
        )

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the pairs."""
        return _MaskScan(MaskSource(source, options), options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> MaskReader:
        """Return what reads images as they are, and masks as PNG of class numbers."""
        found = MaskSource(source, options)
        return MaskReader(found.root, options["mode"], found.colours(), found.first_mask)


def _has_one_channel(mask: Path) -> bool:
    """Whether a PNG is gray or has a palette."""
    with mask.open("rb") as file:
        return file.read(26)[24:] in (b"\x08\x00", b"\x08\x03", b"\x01\x00", b"\x10\x00")


def _are_black_and_white(source: MaskSource) -> bool:
    """Whether the first masks have no other gray values than 0 and 255, and both of them."""
    return _first_values(source, ("L",)) == {0, _VOID}


def _has_void(source: MaskSource) -> bool:
    """Whether the first masks have the value 255 apart from their class numbers: unlabeled pixels.

    Soft edges between dark and light have the values just below, too, and black and white masks have no others.
    """
    values = _first_values(source, ("L", "P"))
    is_apart = _VOID in values and len(values) > 2 and not values.intersection(_NO_CLASS)
    return is_apart and len(source.class_names()) <= _VOID


def _first_values(source: MaskSource, modes: tuple[str, ...]) -> set[int]:
    """Return the numbers in the first masks; none where one is drawn in another way or cannot be read."""
    pairs = (each[0] for each in source.pairs() if not isinstance(each, Problem))
    values: set[int] = set()
    for pair in islice(pairs, _LOOKED_AT):
        try:
            with Image.open(source.root / pair.second) as mask:
                if mask.mode not in modes:
                    return set()
                values |= set(np.unique(np.asarray(mask)).tolist())
        except (OSError, ValueError, SyntaxError):
            return set()
    return values


class _MaskScan(Scan):
    def __init__(self, source: MaskSource, options: Mapping[str, Any]) -> None:
        self._source = source
        self._options = options
        self._class_names = source.class_names()
        self._colours = source.colours()
        self._first_mask = ""

    def __iter__(self) -> Iterator[Sample | Problem]:
        for each in self._source.pairs():
            if isinstance(each, Problem):
                yield each
                continue
            pair, split, size_bytes = each
            self._first_mask = self._first_mask or pair.second
            parts = (pair.first, mask_address(pair.second))
            yield Sample(key=pair.key, parts=parts, split=split, size_bytes=size_bytes)
        if not self._first_mask:
            raise DataError(
                "A source of masks has images and masks with the same names, or a list of their paths.",
                received=f"`{self._source.root}` without any pair",
                advice="Name the folders with the options `images` and `masks`.",
            )

    @property
    def schema(self) -> Schema:
        """Names and colors as the source has them; the colors of the first mask's palette where it has no others."""
        colours = self._colours.colours if self._colours else self._palette()
        named = len(self._class_names)
        given = self._options["ignore_class"]
        schema = Schema(
            kind="segmentation",
            class_names=self._class_names,
            colours=colours[:named] if named else colours,
            ignore_class=None if given == -1 else given,
        )
        schema = completed(schema, self._source.root)
        if given == -1:
            return replace(schema, ignore_class=None)
        is_drawn_with_numbers = self._options["mode"] != "rgb" and self._colours is None
        if schema.ignore_class is None and is_drawn_with_numbers and not self._is_exported and self._ignores_void:
            return replace(schema, ignore_class=_VOID, colours=schema.colours[:_VOID])
        return schema

    @property
    def _is_exported(self) -> bool:
        return (self._source.root / SCHEMA_NAME).is_file()

    @cached_property
    def _ignores_void(self) -> bool:
        return self._options["mode"] != "binary" and _has_void(self._source)

    def _palette(self) -> tuple[tuple[int, int, int], ...]:
        if not self._first_mask or self._options["mode"] not in ("auto", "palette"):
            return ()
        try:
            with (self._source.root / self._first_mask).open("rb") as file:
                return palette_of(file.read(1 << 16))
        except OSError:
            return ()
