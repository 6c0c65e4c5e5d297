"""Masks of Pascal VOC datasets: ``SegmentationClass``, its palette, and ``ImageSets/Segmentation``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.masks.reader import MaskReader, mask_address
from ziggurat.datasets.formats.shared.detection_files import first_file, read_class_names, read_keys, walk_pairs
from ziggurat.datasets.formats.voc.layout import SplitLists, VocFolder
from ziggurat.datasets.importer import PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, StateError
from ziggurat.records.schema import Schema

__all__ = ["VOC_CLASSES", "MaskScan", "mask_reader", "voc_colours"]

VOC_CLASSES: Final = (
    "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable",
    "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip
"""The classes of VOC's masks, by number."""
_IGNORED: Final = 255


class MaskScan(Scan):
    """A scan of images with masks.

    Args:
        root: the source.
        folders: VOC folders in it.
        classes: names; empty for those of ``classes.txt``, or VOC's own.
    """

    def __init__(self, root: Path, folders: Sequence[VocFolder], classes: Sequence[str]) -> None:
        self._root = root
        self._folders = [folder for folder in folders if folder.masks]
        if not self._folders:
            raise DataError(
                "Segmentation takes the masks in `SegmentationClass`.",
                received=f"`{root}`, which has no such folder",
                advice="Use the format masks for masks in other folders.",
            )
        self._names = tuple(classes or read_class_names(root / "classes.txt") or VOC_CLASSES)
        self._ended = False

    @property
    def schema(self) -> Schema:
        if not self._ended:
            raise StateError("The schema of a scan is there when the scan has ended.", advice="Iterate it to its end.")
        colours = voc_colours(len(self._names))
        return Schema(kind="segmentation", class_names=self._names, colours=colours, ignore_class=_IGNORED)

    def __iter__(self) -> Iterator[Sample | Problem]:
        keys = read_keys(self._root)
        for folder in self._folders:
            lists = SplitLists(self._root, folder.path, "Segmentation")
            yield from lists.problems
            for pair in walk_pairs(self._root, folder.pictures, folder.masks, ".png"):
                if pair.picture is None or pair.size_bytes is None:
                    reason = f"{pair.label or pair.picture} has no image."
                    yield Problem(key=pair.label or pair.stem, kind="no-picture", reason=reason, left_out=True)
                elif pair.label is not None:
                    yield Sample(
                        key=keys.get(pair.picture, pair.picture),
                        parts=(pair.picture, mask_address(pair.label)),
                        split=lists.split(pair.stem) or folder.split,
                        size_bytes=pair.size_bytes,
                    )
                elif pair.stem in lists:
                    lists.split(pair.stem)
                    reason = "ImageSets/Segmentation lists it, and it has no mask."
                    yield Problem(key=pair.picture, kind="no-label", reason=reason, left_out=True)
            yield from lists.missing()
        self._ended = True


def mask_reader(root: Path, folders: Sequence[VocFolder]) -> PartReader:
    """Return what reads images and masks; a mask becomes its palette's numbers."""

    def first_mask() -> str:
        found = [first_file(root / folder.masks, ".png") for folder in folders if folder.masks]
        return next((path.relative_to(root).as_posix() for path in found if path), "")

    return MaskReader(root, "auto", None, first_mask)


def voc_colours(count: int) -> tuple[tuple[int, int, int], ...]:
    """Return VOC's color (R, G, B) for each of ``count`` classes.

    Bit ``3 j + c`` of the class number is bit ``7 - j`` of channel ``c``.
    """

    def channel(number: int, shift: int) -> int:
        return sum((number >> (3 * bit + shift) & 1) << (7 - bit) for bit in range(8))

    return tuple((channel(number, 0), channel(number, 1), channel(number, 2)) for number in range(count))
