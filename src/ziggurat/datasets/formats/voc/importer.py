"""Importer for Pascal VOC datasets: an XML file for each image, split lists, PNG masks.

Boxes keep the numbers in the file: most tools write the edges, from 0. The first VOC files numbered pixels from 1 and
included the last one; for those, ``one_based`` turns (xmin, ymin, xmax, ymax) into the box (xmin - 1, ymin - 1, xmax,
ymax).

Reference: M. Everingham et al., "The Pascal Visual Object Classes (VOC) Challenge", IJCV 88, 2010.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.detection.importing import ZERO_SIZE_OPTION, BoxRule, NamedScan
from ziggurat.datasets.formats.shared.detection_files import (
    Pair,
    first_file,
    read_class_names,
    read_keys,
    split_of,
    walk_pairs,
)
from ziggurat.datasets.formats.voc.layout import SplitLists, VocFolder, voc_folders
from ziggurat.datasets.formats.voc.masks_importer import MaskScan, mask_reader
from ziggurat.datasets.formats.voc.xml import VocObject, read_annotation
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject

__all__ = ["VocImporter"]


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
        return Guess(format=self.name, confidence=0.6, reason=reason, kind="segmentation", options=options)

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        folders = voc_folders(source, options["annotations"], options["images"]) if source.is_dir() else []
        if not folders:
            raise DataError(
                "A VOC dataset is a folder with `Annotations/*.xml` and images.",
                received=f"`{source}`",
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
    rule = BoxRule(options["zero_size_boxes"])
    keys = read_keys(root)
    for folder in folders:
        lists = SplitLists(root, folder.path, "Main")
        yield from lists.problems
        for pair in walk_pairs(root, folder.pictures, folder.annotations, ".xml"):
            if pair.picture is None or pair.size_bytes is None:
                yield _no_picture(pair)
                continue
            split = lists.split(pair.stem) or folder.split or split_of(pair.stem.partition("/")[0])
            yield from _sample(root, pair, keys.get(pair.picture, pair.picture), split, rule, options["one_based"])
        yield from lists.missing()


def _sample(root: Path, pair: Pair, key: str, split: str, rule: BoxRule, one_based: bool) -> Iterator[Sample | Problem]:
    label: list[dict[str, Any]] = []
    if pair.label is None:
        yield Problem(key=key, kind="no-label", reason="It has no XML file.")
    else:
        try:
            annotation = read_annotation(root / pair.label)
        except DataError as error:
            yield Problem(key=key, kind="unreadable", reason=str(error), left_out=True)
            return
        for number, each in enumerate(annotation.objects, 1):
            where = f"{pair.label}, object {number} ({each.name or 'without a name'})"
            box = _box(each, one_based)
            if box is None or not each.name:
                kind, lacks = ("bad-box", "box of four numbers") if box is None else ("unknown-class", "name")
                yield Problem(key=key, kind=kind, reason=f"{where} has no {lacks}.")
                continue
            stays, problem = rule.check(key, box, where, annotation.size)
            if problem:
                yield problem
            if stays:
                label.append(_labelled(each, box))
    assert pair.picture is not None
    yield Sample(key=key, parts=(pair.picture,), label=label, split=split, size_bytes=pair.size_bytes)


def _labelled(each: VocObject, box: tuple[float, float, float, float]) -> dict[str, Any]:
    found = ImageObject(class_number=0, box=box, difficult=each.difficult, details=each.details)
    return {**found.as_json(), "class": each.name}


def _box(each: VocObject, one_based: bool) -> tuple[float, float, float, float] | None:
    if each.corners is None or not one_based:
        return each.corners
    left, top, right, bottom = each.corners
    return (left - 1, top - 1, right, bottom)


def _no_picture(pair: Pair) -> Problem:
    if pair.picture is not None:
        return Problem(key=pair.picture, kind="no-picture", reason="It is a link that leads nowhere.", left_out=True)
    reason = f"{pair.label} has no image of the same name."
    return Problem(key=pair.label or pair.stem, kind="no-picture", reason=reason, left_out=True)


def _is_annotation(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            start = opened.read(1 << 16).replace(b"\0", b"")  # UTF-16
    except OSError:
        return False
    return b"<annotation" in start and (b"<object" in start or b"<size" in start or b"<filename" in start)
