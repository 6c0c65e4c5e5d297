"""Importer for images with masks: folders with the same file names or lists of pairs, and any mask encoding."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.masks.names import KNOWN_NAMES, NAME_FILES, names_by_value
from ziggurat.datasets.formats.masks.reader import (
    MODES,
    ColorMap,
    MaskReader,
    color_map,
    colors_of,
    mask_address,
    palette_of,
    read_color_map,
)
from ziggurat.datasets.formats.masks.values import NO_CLASS, FoundValues, ValueTable, table_of
from ziggurat.datasets.formats.shared.exports import completed
from ziggurat.datasets.formats.shared.folder_walk import Pairing, first_image, folder_named, matches, pairings
from ziggurat.datasets.formats.shared.text_files import SeenKeys, below_source, lines_of, two_paths
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import SPLITS, Problem, Sample
from ziggurat.errors import DataError, DatapointError, broken_rule
from ziggurat.records.schema import Schema

__all__ = ["IGNORED", "TABLE", "MasksImporter", "pair_lists", "pairs_in_list"]

TABLE: Final = "mask_values"
"""Name of the value of each class in the details of a schema."""

IGNORED: Final = "mask_ignored"
"""Name of the value of pixels without a class in the details of a schema."""

_LEFT: Final = "_leftImg8bit"  # images of Cityscapes

_IMAGES: Final = ("images", "image", "imgs", "img", "jpegimages", "pictures", "photos", "rgb", "leftimg8bit")
_MASKS: Final = (
    "masks", "mask", "segmentationclass", "segmentationclasspng", "annotations", "annotation", "annots", "annot",
    "labels", "label", "segmentation", "segmentations", "seg", "gt", "groundtruth", "ground_truth", "labelmaps",
    "gtfine", "gtcoarse",
)  # fmt: skip
_ENDINGS: Final = ("annot", "_masks", "_mask", "_labels", "_label", "_annot", "_gt")
_COLOR_FILES: Final = (
    "colours.txt", "colors.txt", "colormap.txt", "colourmap.txt", "label_colors.txt", "class_dict.csv",
    "labelmap.txt",
)  # fmt: skip


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
        ImporterOption(
            name="image_suffix", type=str, default="", help="What an image's name has in the place of mask_suffix."
        ),
        ImporterOption(name="mask_suffix", type=str, default="", help="What a mask's name adds, such as _mask."),
        ImporterOption(
            name="mode", type=str, default="auto", choices=MODES, help="What in a mask says the number of the class."
        ),
        ImporterOption(name="colour_file", type=str, default="", help="File with the color of class i in line i."),
        ImporterOption(name="colours", type=list, default=[], help="List of [R, G, B], one for each class."),
        ImporterOption(
            name="classes", type=str, default="", help="File with the name of class i in line i, or of each value."
        ),
        ImporterOption(
            name="values",
            type=list,
            default=[],
            help="Value of each class in masks, such as [0, 50, 100]. Left out: those in the masks.",
        ),
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
        return Guess(
            format=self.name,
            confidence=0.92 if sure else 0.5 if _has_one_channel(found.root / first.second) else 0.2,
            reason=f"images with masks of the same name, such as `{first.first}` and `{first.second}`",
            kind="segmentation",
        )

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the pairs."""
        return _MaskScan(MaskSource(source, options), options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> MaskReader:
        """Return what reads images as they are, and masks as PNG of class numbers."""
        found = MaskSource(source, options)
        table = table_of(options["values"])
        return MaskReader(found.root, options["mode"], found.colours(), found.first_mask, table)


def _has_one_channel(mask: Path) -> bool:
    """Whether a PNG is gray or has a palette."""
    with mask.open("rb") as file:
        return file.read(26)[24:] in (b"\x08\x00", b"\x08\x03", b"\x01\x00", b"\x10\x00")


class _MaskScan(Scan):
    """Walks through pairs, and looks into each mask of gray values: only these tell which classes there are."""

    def __init__(self, source: MaskSource, options: Mapping[str, Any]) -> None:
        self._source = source
        self._options = options
        self._names = source.names()
        self._colors = source.colours()
        self._exported = completed(Schema(kind="segmentation"), source.root)
        self._found = FoundValues()
        self._table = table_of(options["values"] or self._exported.details.get(TABLE, ()))
        self._ignored: set[int] = set()
        self._first_mask = ""

    def __iter__(self) -> Iterator[Sample | Problem]:
        reader = MaskReader(self._source.root, self._options["mode"], self._colors, lambda: self._first_mask)
        for each in self._source.pairs():
            if isinstance(each, Problem):
                yield each
                continue
            pair, split, size_bytes = each
            if not self._first_mask:
                self._first_mask = pair.second
                self._check_colors()
            if self._is_by_value:
                self._look(reader, pair.second)
            parts = (pair.first, mask_address(pair.second))
            yield Sample(key=pair.key, parts=parts, split=split, size_bytes=size_bytes)
        if not self._first_mask:
            raise DataError(
                "A source of masks has images and masks with the same names, or a list of their paths.",
                received=f"`{self._source.root}` without any pair",
                advice="Name the folders with the options `images` and `masks`, and what the names of masks add with "
                "`mask_suffix`.",
            )
        if self._is_by_value:
            yield from self._numbered()

    @property
    def found_options(self) -> Mapping[str, Any]:
        """The value of each class."""
        return {"values": list(self._table.values)}

    @property
    def schema(self) -> Schema:
        """Names and colors as the source has them; the colors of the first mask's palette where it has no others."""
        values, named = self._table.values, self._names
        colours = self._colors.colours if self._colors else self._palette()
        if values and not self._exported.details.get(TABLE):
            colours = tuple(colours[value] for value in values) if max(values) < len(colours) else ()
        names = tuple(named.values())
        if values and len(names) != len(values):
            names = tuple(named.get(value, str(value)) for value in values)
        schema = Schema(
            kind="segmentation",
            class_names=names,
            colours=colours[: len(names)] if names else colours[:NO_CLASS],
            details={TABLE: list(values), IGNORED: self._ignored_value} if values else {},
        )
        schema = completed(schema, self._source.root)
        given = self._options["ignore_class"]
        if given == -1:
            return replace(schema, ignore_class=None)
        if values:
            has_others = bool(self._ignored) or any(value not in values for value in self._found.masks)
            return replace(schema, ignore_class=self._table.no_class if has_others else schema.ignore_class)
        if given is None and schema.ignore_class is None and self._ignored:
            return replace(schema, ignore_class=min(self._ignored))
        return schema if given is None else replace(schema, ignore_class=given)

    @property
    def _is_by_value(self) -> bool:
        """Whether a mask has values, rather than colors or dark and light."""
        return self._options["mode"] not in ("rgb", "binary")

    @property
    def _ignored_value(self) -> int:
        """The value of masks that is written for what is no class."""
        return self._exported.details.get(IGNORED, min(self._ignored, default=NO_CLASS))

    def _check_colors(self) -> None:
        """Refuse masks of colors where no class is known for them."""
        if self._colors is None and self._options["mode"] in ("auto", "rgb"):
            colors = colors_of(self._source.root / self._first_mask)
            if colors:
                raise DataError(
                    "The masks have colors, and it is not known which class each stands for.",
                    received=f"`{self._first_mask}` with {', '.join(map(str, colors[:8]))}",
                    advice="Name a file with the color of class i in line i with the option `colour_file`, or list the "
                    "colors with the option `colours`.",
                    details={"field": "options.colour_file"},
                )

    def _look(self, reader: MaskReader, path: str) -> None:
        try:
            found = reader.values(path)
        except DatapointError:  # it becomes a problem when it is read for the dataset
            return
        if found is not None:
            self._found.add(path, found[0], is_jpeg=found[1])

    def _numbered(self) -> Iterator[Problem]:
        """Find out the value of each class, and yield what is to be said of them."""
        found, names = self._found, dict(self._names)
        if self._colors is not None:
            names = names or dict.fromkeys(range(len(self._colors.colours)), "")
        has_classes = bool(names or self._table.values)
        if self._options["mode"] == "auto":
            found.check(has_classes=has_classes)
        given = self._options["ignore_class"]
        if given != -1:
            known = self._exported.ignore_class, self._exported.details.get(IGNORED), given
            self._ignored = {value for value in known if value is not None}
            if found.marks_no_class(self._table.values or tuple(names)):
                self._ignored.add(NO_CLASS)
        values: Sequence[int] = self._table.values
        if not values and names and found.are_black_and_white and list(names) == [0, 1]:
            self._table = ValueTable(tuple(sorted(found.masks)))
        elif not values and names and list(names) != list(range(len(names))):
            self._table = ValueTable(tuple(value for value in names if value not in self._ignored))
        elif not has_classes and self._options["mode"] == "auto":
            self._table = found.table(self._ignored)
            yield from found.gaps(self._table)
        if has_classes:
            yield from found.without_class(self._table.values or tuple(names), self._ignored)

    def _palette(self) -> tuple[tuple[int, int, int], ...]:
        if not self._first_mask or self._options["mode"] not in ("auto", "palette"):
            return ()
        try:
            with (self._source.root / self._first_mask).open("rb") as file:
                return palette_of(file.read(1 << 16))
        except OSError:
            return ()


@dataclass(frozen=True)
class PairOfPaths:
    """A line of a list of pairs: two paths, relative to the source or absolute, and the name of the sample."""

    first: str
    second: str
    key: str


class MaskSource:
    """A source of images with masks.

    Args:
        source: a folder, or a list of pairs.
        options: of the importer ``masks``.
    """

    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self.root = source if source.is_dir() else source.parent
        self._source = source
        self._options = options

    def pairs(self) -> Iterator[tuple[PairOfPaths, str, int | None] | Problem]:
        """Yield pairs with their split and the size of the image's file."""
        lists = [] if self._options["images"] else pair_lists(self._source)
        if lists:
            for path, split in lists:
                yield from (
                    each if isinstance(each, Problem) else (each, split, None)
                    for each in pairs_in_list(path, self.root)
                )
            return
        listed = _listed_splits(self.root)
        for pairing in self.folders():
            yield from self._in_folders(pairing, listed)

    def folders(self) -> list[Pairing]:
        """Return the pairs of folders; none where there are none."""
        images, masks = self._options["images"], self._options["masks"]
        if images or masks:
            chosen = [
                Pairing(
                    folder_named(self._options[f"{part}images"]), folder_named(self._options[f"{part}masks"]), split
                )
                for part, split in (("", ""), ("val_", "val"))
                if self._options[f"{part}images"]
            ]
            return [chosen[0]._replace(split="train"), *chosen[1:]] if len(chosen) == 2 else chosen
        return pairings(self.root, _IMAGES, _MASKS, _ENDINGS)

    def colours(self) -> ColorMap | None:
        """Return the map of colors, None where there is none."""
        if self._options["colours"]:
            return color_map(self._options["colours"])
        path = self._file("colour_file", _COLOR_FILES)
        return None if path is None else read_color_map(path)

    def names(self) -> dict[int, str]:
        """Return value → name of the classes; none if not given."""
        path = self._file("classes", NAME_FILES)
        if path is not None:
            return names_by_value(path)
        colours = self.colours()
        if colours is not None:
            return dict(enumerate(colours.names))
        pairing = next(iter(self.folders()), None)
        ending = self.suffixes(pairing)[1] if pairing is not None else ""
        known = next((names for end, names in KNOWN_NAMES.items() if ending.endswith(end)), ())
        return dict(enumerate(known))

    def first_mask(self) -> str:
        """Return the path of the first mask; empty where there is none."""
        return first_pair(self.pairs()).second

    def suffixes(self, pairing: Pairing) -> tuple[str, str]:
        """Return what the names of images and of masks end in: as the options say, or as in Cityscapes."""
        given = self._options["image_suffix"], self._options["mask_suffix"]
        image = first_image(self.root, pairing.first) if pairing.second and not any(given) else ""
        stem = Path(image).stem
        if not stem.endswith(_LEFT):
            return given
        inside = Path(image).relative_to(pairing.first).parent
        for kind, known in itertools.product(("_gtFine", "_gtCoarse"), KNOWN_NAMES):
            name = f"{stem.removesuffix(_LEFT)}{kind}{known}.png"
            if (self.root / str(pairing.second) / inside / name).is_file():
                return _LEFT, kind + known
        return given

    def _file(self, option: str, usual: tuple[str, ...]) -> Path | None:
        if self._options[option]:
            return self.root / self._options[option]
        return next((self.root / name for name in usual if (self.root / name).is_file()), None)

    def _in_folders(
        self, pairing: Pairing, listed: Mapping[str, str]
    ) -> Iterator[tuple[PairOfPaths, str, int | None] | Problem]:
        own_ending, ending = self.suffixes(pairing)
        for match in matches(self.root, pairing, ending=ending, own_ending=own_ending):
            is_mask = isinstance(match, Problem) or Path(match.second).stem.endswith(ending)
            if own_ending and not is_mask:  # colors and objects stand beside the masks
                continue
            if isinstance(match, Problem):
                yield match
            elif not match.first:
                reason = "No image has the name of this mask."
                why = "no image has the name of their mask"
                yield Problem(
                    key=match.second, kind="no-picture", reason=reason, left_out=True, why=why, split=pairing.split
                )
            elif not match.second:
                place = "No folder of masks" if pairing.second is None else f"`{pairing.second}`"
                reason = f"{place} has no mask of this image's name." if pairing.second else f"{place} belongs to it."
                yield Problem(
                    key=match.first,
                    kind="no-label",
                    reason=reason,
                    left_out=True,
                    why="no mask has their name",
                    split=pairing.split or listed.get(Path(match.first).stem, ""),
                )
            else:
                split = pairing.split or listed.get(Path(match.first).stem, "")
                yield PairOfPaths(match.first, match.second, match.first), split, match.size_bytes


def is_mask_folder(path: str) -> bool:
    """Whether one of the folders of a path has a name that only folders of masks have."""
    names = [name.lower() for name in path.split("/")]
    return any(name in _MASKS or (name.endswith(_ENDINGS) and name not in _IMAGES) for name in names)


def pair_lists(source: Path) -> list[tuple[Path, str]]:
    """Return the lists of pairs of a source with their splits: itself, or ``train.txt`` and so on in it.

    A list counts only where the files of its first line are there: old lists name folders of other machines.
    """
    if source.is_file():
        return [(source, "")]
    found = [(source / f"{name}.txt", split) for name, split in (("all", ""), *((each, each) for each in SPLITS))]
    return [(path, split) for path, split in found if path.is_file() and _has_files(path, source)]


def pairs_in_list(path: Path, root: Path) -> Iterator[PairOfPaths | Problem]:
    """Yield the pairs of a list, and a problem for each line that is none.

    Args:
        path: the list: two paths a line, divided by a tab or a blank, and possibly a key behind a tab.
        root: folder that the paths are relative to.
    """
    seen = SeenKeys()
    for line in lines_of(path):
        values = two_paths(line.text)
        cleaned = None if values is None else [below_source(value) for value in values[:2]]
        if values is None or cleaned is None or None in cleaned:
            reason = (
                "A line is two paths, divided by a tab or a blank."
                if values is None
                else "A relative path stays below the source."
            )
            name = f"{path.relative_to(root)}:{line.number}" if path.is_relative_to(root) else f"{path}:{line.number}"
            reason = broken_rule(reason, repr(line.text[:200]))
            yield Problem(key=name, kind="bad-line", reason=reason, left_out=True)
            continue
        first, second = str(cleaned[0]), str(cleaned[1])
        pair = PairOfPaths(first, second, values[2] if len(values) > 2 else first)
        yield seen.again(pair.key) or pair


def first_pair(pairs: Iterator[tuple[PairOfPaths, str, int | None] | Problem]) -> PairOfPaths:
    """Return the first pair, one of empty paths where there is none."""
    return next((each[0] for each in pairs if not isinstance(each, Problem)), PairOfPaths("", "", ""))


def _has_files(path: Path, root: Path) -> bool:
    try:
        first = next(pairs_in_list(path, root), None)
    except DataError:
        return False
    return isinstance(first, PairOfPaths) and (root / first.first).is_file() and (root / first.second).is_file()


def _listed_splits(root: Path) -> dict[str, str]:
    """Return stem → split from ``ImageSets/Segmentation``, where Pascal VOC keeps its lists."""
    folder = root / "ImageSets" / "Segmentation"
    lists = [(folder / f"{split}.txt", split) for split in SPLITS]
    return {line.text.strip(): split for path, split in lists if path.is_file() for line in lines_of(path)}
