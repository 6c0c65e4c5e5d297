"""Location of masks, their lists, class names and class colors in a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.masks.colors import ColourMap, colour_map, read_colour_map
from ziggurat.datasets.formats.shared.list_files import Seen, below_source, lines_of, names_in, two_paths
from ziggurat.datasets.formats.shared.paired_folders import Pairing, folder_named, matches, pairings
from ziggurat.datasets.samples import SPLITS, Problem
from ziggurat.errors import DataError

__all__ = ["MaskSource", "PairOfPaths", "first_pair", "is_mask_folder", "pair_lists", "pairs_in_list"]

_IMAGES: Final = ("images", "image", "imgs", "img", "jpegimages", "pictures", "photos", "rgb")
_MASKS: Final = (
    "masks", "mask", "segmentationclass", "segmentationclasspng", "annotations", "annotation", "annots", "annot",
    "labels", "label", "segmentation", "segmentations", "seg", "gt", "groundtruth", "ground_truth", "labelmaps",
)  # fmt: skip
_ENDINGS: Final = ("annot", "_masks", "_mask", "_labels", "_label", "_annot", "_gt")
_NAME_FILES: Final = ("classes.txt", "class_names.txt", "labels.txt")
_COLOUR_FILES: Final = (
    "colours.txt", "colors.txt", "colormap.txt", "colourmap.txt", "label_colors.txt", "class_dict.csv",
)  # fmt: skip


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

    def colours(self) -> ColourMap | None:
        """Return the map of colors, None where there is none."""
        if self._options["colours"]:
            return colour_map(self._options["colours"])
        path = self._file("colour_file", _COLOUR_FILES)
        return None if path is None else read_colour_map(path)

    def class_names(self) -> tuple[str, ...]:
        """Return the names of the classes; none if not given."""
        path = self._file("classes", _NAME_FILES)
        if path is not None:
            return names_in(path)
        colours = self.colours()
        return () if colours is None else colours.names

    def first_mask(self) -> str:
        """Return the path of the first mask; empty where there is none."""
        return first_pair(self.pairs()).second

    def _file(self, option: str, usual: tuple[str, ...]) -> Path | None:
        if self._options[option]:
            return self.root / self._options[option]
        return next((self.root / name for name in usual if (self.root / name).is_file()), None)

    def _in_folders(
        self, pairing: Pairing, listed: Mapping[str, str]
    ) -> Iterator[tuple[PairOfPaths, str, int | None] | Problem]:
        if pairing.second is None:
            reason = "The folder has no folder of masks, so its images are left out."
            yield Problem(key=pairing.first, kind="no-label", reason=reason, left_out=True)
            return
        for match in matches(self.root, pairing, ending=self._options["mask_suffix"]):
            if isinstance(match, Problem):
                yield match
            elif not match.first:
                reason = "No image has the name of this mask."
                yield Problem(key=match.second, kind="no-picture", reason=reason, left_out=True)
            elif not match.second:
                reason = f"`{pairing.second}` has no mask of this image's name."
                yield Problem(key=match.first, kind="no-label", reason=reason, left_out=True)
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
    seen = Seen()
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
            yield Problem(key=name, kind="bad-line", reason=f"{reason} Received: {line.text[:200]!r}.", left_out=True)
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
