"""Importer for Pascal VOC datasets: an XML file or a PNG mask for each image, and split lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.masks.reader import MaskReader, mask_address, palette_of
from ziggurat.datasets.formats.shared.detection_import import (
    KEYS_NAME,
    ZERO_SIZE_OPTION,
    BoxRule,
    NamedScan,
    first_file,
    lost_objects,
    read_class_names,
    read_keys,
    split_of,
    walk_pairs,
)
from ziggurat.datasets.formats.shared.frames import FRAME_OPTIONS, Frame, FrameRule
from ziggurat.datasets.formats.shared.looks import file_ends
from ziggurat.datasets.formats.voc.layout import SplitLists, VocFolder, VocObject, read_annotation, voc_folders
from ziggurat.datasets.formats.voc.pairs import VocPair, VocPairs
from ziggurat.datasets.image_size import stored_size_of_file
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, StateError
from ziggurat.records.objects import ImageObject
from ziggurat.records.schema import Schema

__all__ = ["VocImporter", "voc_colors"]

VOC_CLASSES: Final = (
    "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable",
    "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip
"""The classes of VOC's masks, by number."""
_IGNORED: Final = 255
_HEAD_BYTES: Final = 1 << 16  # the palette of a PNG comes before its pixels


class VocImporter(Importer):
    """Pascal VOC: ``Annotations/*.xml``, ``JPEGImages``, ``ImageSets/Main``, ``SegmentationClass``."""

    name = "voc"
    title = "Pascal VOC (XML)"
    kinds = ("detection", "segmentation")
    options = (
        ImporterOption(
            name="task",
            type=str,
            default="detection",
            help="Boxes of the XML files, or the masks in SegmentationClass.",
            choices=("detection", "segmentation"),
        ),
        ImporterOption(
            name="classes",
            type=list,
            default=[],
            help="Names of classes, in order. Left out: classes.txt; else the names that are found, sorted.",
        ),
        ImporterOption(name="one_based", type=bool, default=False, help="Whether pixels are numbered from 1."),
        ImporterOption(name="annotations", type=str, default="", help="Folder of the XML files. Left out: looked for."),
        ImporterOption(name="images", type=str, default="", help="Folder of the images. Left out: looked for."),
        ZERO_SIZE_OPTION,
        *FRAME_OPTIONS,
    )

    def guess(self, source: Path) -> Guess | None:
        if not source.is_dir():
            return None
        folders = voc_folders(source)
        for folder in folders:
            file = first_file(source / folder.annotations, ".xml")
            if file is not None and _is_annotation(file):
                reason = f"XML files with objects in {folder.annotations or 'the folder'}, such as {file.name}."
                return Guess(format=self.name, confidence=0.95, reason=reason, kind="detection")
        masks = next((folder.masks for folder in folders if folder.masks), "")
        if not masks or first_file(source / masks, ".png") is None:
            return None
        reason, options = f"Masks in {masks} and no XML files.", {"task": "segmentation"}
        # Our own export has names and keys that only this importer reads; without names, VOC's own may be wrong.
        confidence = 0.95 if (source / KEYS_NAME).is_file() and (source / "classes.txt").is_file() else 0.6
        return Guess(format=self.name, confidence=confidence, reason=reason, kind="segmentation", options=options)

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        folders = voc_folders(source, options["annotations"], options["images"]) if source.is_dir() else []
        if not folders:
            raise DataError(
                f"`{source}` is no VOC dataset: it has no `Annotations/*.xml`.",
                advice="Name the folders with the options `annotations` and `images`.",
            )
        if options["task"] == "segmentation":
            return MaskScan(source, folders, options["classes"])
        names = options["classes"] or read_class_names(source / "classes.txt") or None
        return NamedScan(partial(_found, source, folders, options), names)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        if options["task"] == "segmentation":
            return mask_reader(source, voc_folders(source, options["annotations"], options["images"]))
        return super().reader(source, options)


def _found(root: Path, folders: list[VocFolder], options: Mapping[str, Any]) -> Iterator[Sample | Problem]:
    rules = (BoxRule(options["zero_size_boxes"]), FrameRule(options), options["one_based"])
    keys = read_keys(root)
    for folder in folders:
        lists = SplitLists(root, folder.path, "Main")
        yield from lists.problems
        pairs = VocPairs(root, folder)
        for pair in pairs:
            split = lists.split(pair.stem) or folder.split or split_of(pair.stem.partition("/")[0])
            if pair.image is None or pair.size_bytes is None:
                yield from _no_image(root, pair, split)
                continue
            yield from _sample(root, pair, keys.get(pair.image, pair.image), split, rules)
        yield from pairs.problems()
        yield from lists.missing()


def _sample(
    root: Path, pair: VocPair, key: str, split: str, rules: tuple[BoxRule, FrameRule, bool]
) -> Iterator[Sample | Problem]:
    assert pair.image is not None
    label: list[dict[str, Any]] = []
    if not pair.labels:
        yield Problem(key=key, kind="no-label", reason="It has no XML file.")
    for path in pair.labels:
        try:
            annotation = read_annotation(root / path)
        except DataError as error:
            yield Problem(key=key, kind="unreadable", reason=str(error), left_out=True, split=split)
            return
        image = partial(stored_size_of_file, root / pair.image)
        frame = rules[1].of(key, image, annotation.size, labelled=bool(annotation.objects))
        yield from frame.problems
        for number, each in enumerate(annotation.objects, 1):
            box, problems = _checked_box(each, key, f"{path}, object {number}", frame, rules)
            yield from problems
            if box is not None:
                label.append(_labelled(each, box, frame))
    yield Sample(key=key, parts=(pair.image,), label=label, split=split, size_bytes=pair.size_bytes)


def _checked_box(
    each: VocObject, key: str, where: str, frame: Frame, rules: tuple[BoxRule, FrameRule, bool]
) -> tuple[tuple[float, float, float, float] | None, list[Problem]]:
    where = f"{where} ({each.name or 'without a name'})"
    if each.corners is None or not each.name:
        is_box = each.corners is None
        kind, lacks = ("bad-box", "box of four numbers") if is_box else ("unknown-class", "name")
        why = "" if is_box else "they have no name"
        reason = f"{where} has no {lacks}."
        return None, [Problem(key=key, kind=kind, reason=reason, objects=1, why=why, class_name=each.name)]
    notes = []
    if each.around:
        reason = f"{where} has a <{each.around}>: the upright box around it is taken."
        notes.append(Problem(key=key, kind="box-of-outline", reason=reason))
    left, top, right, bottom = each.corners
    if rules[2]:  # the last pixel is numbered too
        left, top = min(left, right) - 1, min(top, bottom) - 1
        right, bottom = max(each.corners[0], right), max(each.corners[1], bottom)
    box, problems = rules[0].check(key, (left, top, right, bottom), where, frame.size, class_name=each.name)
    return box, [*notes, *problems]


def _labelled(each: VocObject, box: tuple[float, float, float, float], frame: Frame) -> dict[str, Any]:
    found = ImageObject(class_number=0, box=box, difficult=each.difficult, details=each.details)
    return {**frame.moved(found).as_json(), "class": each.name}


def _no_image(root: Path, pair: VocPair, split: str) -> Iterator[Problem]:
    if pair.image is not None:
        reason = "It is a link that leads nowhere."
        yield Problem(key=pair.image, kind="no-picture", reason=reason, left_out=True, split=split)
        return
    for path in pair.labels:
        try:
            names = [each.name for each in read_annotation(root / path).objects]
        except DataError:
            names = []
        reason = f"{path} has no image of the same name."
        yield from lost_objects(path, "no-picture", reason, names, left_out=True, split=split)


def _is_annotation(file: Path) -> bool:
    ends = file_ends(file)
    return b"<annotation" in ends and any(tag in ends for tag in (b"<object", b"<size", b"<filename"))


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
                f"`{root}` has no folder `SegmentationClass` with masks.",
                advice="Use the format masks for masks in other folders.",
            )
        self._names = tuple(classes or read_class_names(root / "classes.txt") or VOC_CLASSES)
        self._ended = False

    @property
    def schema(self) -> Schema:
        if not self._ended:
            raise StateError(
                "The scan has not ended, and its schema is there when it has.", advice="Iterate it to its end."
            )
        count = len(self._names)
        palette = self._palette()
        colours = palette[:count] if len(palette) >= count else voc_colors(count)
        return Schema(kind="segmentation", class_names=self._names, colours=colours, ignore_class=_IGNORED)

    def _palette(self) -> tuple[tuple[int, int, int], ...]:
        """Return the colors of the first mask's palette; none where it has no palette."""
        masks = (first_file(self._root / folder.masks, ".png") for folder in self._folders)
        path = next(filter(None, masks), None)
        if path is None:
            return ()
        with path.open("rb") as file:
            return palette_of(file.read(_HEAD_BYTES))

    def __iter__(self) -> Iterator[Sample | Problem]:
        keys = read_keys(self._root)
        for folder in self._folders:
            lists = SplitLists(self._root, folder.path, "Segmentation")
            yield from lists.problems
            for pair in walk_pairs(self._root, folder.image_folder, folder.masks, ".png"):
                is_listed = pair.stem in lists
                split = lists.split(pair.stem) or folder.split
                if pair.image is None or pair.size_bytes is None:
                    key, reason = pair.label or pair.stem, f"{pair.label or pair.image} has no image."
                    yield Problem(key=key, kind="no-picture", reason=reason, left_out=True, split=split)
                elif pair.label is not None:
                    yield Sample(
                        key=keys.get(pair.image, pair.image),
                        parts=(pair.image, mask_address(pair.label)),
                        split=split,
                        size_bytes=pair.size_bytes,
                    )
                elif is_listed or not lists:  # in VOC's own sets, the lists say which images have a mask
                    reason = "ImageSets/Segmentation lists it, and it has no mask." if is_listed else "It has no mask."
                    yield Problem(key=pair.image, kind="no-label", reason=reason, left_out=True, split=split)
            yield from lists.missing()
        self._ended = True


def mask_reader(root: Path, folders: Sequence[VocFolder]) -> PartReader:
    """Return what reads images and masks; a mask becomes its palette's numbers."""

    def first_mask() -> str:
        found = [first_file(root / folder.masks, ".png") for folder in folders if folder.masks]
        return next((path.relative_to(root).as_posix() for path in found if path), "")

    return MaskReader(root, "auto", None, first_mask)


def voc_colors(count: int) -> tuple[tuple[int, int, int], ...]:
    """Return VOC's color (R, G, B) for each of ``count`` classes.

    Bit ``3 j + c`` of the class number is bit ``7 - j`` of channel ``c``.
    """

    def channel(number: int, shift: int) -> int:
        return sum((number >> (3 * bit + shift) & 1) << (7 - bit) for bit in range(8))

    return tuple((channel(number, 0), channel(number, 1), channel(number, 2)) for number in range(count))
