"""Importer for KITTI datasets: a text file of 15 columns for each image.

Reference: A. Geiger, P. Lenz, R. Urtasun, "Are we ready for Autonomous Driving? The KITTI Vision Benchmark Suite",
CVPR 2012.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.detection.importing import ZERO_SIZE_OPTION, BoxRule, NamedScan
from ziggurat.datasets.formats.kitti.classes import DONT_CARE, KittiClasses
from ziggurat.datasets.formats.kitti.layout import (
    KittiFolder,
    KittiLine,
    kitti_folders,
    parse_line,
    unlabelled_folders,
)
from ziggurat.datasets.formats.shared.detection_files import (
    Pair,
    read_class_names,
    read_keys,
    split_of,
    text_lines,
    walk_pairs,
)
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject

__all__ = ["KittiImporter"]


class KittiImporter(Importer):
    """KITTI: ``training/label_2/*.txt`` and ``training/image_2``, or ``train/labels`` and ``train/images``."""

    name = "kitti"
    title = "KITTI (text)"
    kinds = ("detection",)
    options = (
        ImporterOption(
            name="classes",
            type=list,
            default=[],
            help="Classes, in order; other types become DontCare. `digits` numbers them as DIGITS did. Left out: "
            "classes.txt; else the types that are found, sorted.",
        ),
        ImporterOption(
            name="class_map", type=dict, default={}, help="Type to class, looked at before `classes`; '' is DontCare."
        ),
        ImporterOption(
            name="min_box_px",
            type=float,
            default=0.0,
            help="Boxes of the split val with a shorter side become DontCare. DIGITS took 25.",
        ),
        ImporterOption(name="labels", type=str, default="", help="Folder of the label files. Left out: looked for."),
        ImporterOption(name="images", type=str, default="", help="Folder of the images. Left out: looked for."),
        ZERO_SIZE_OPTION,
    )

    def guess(self, source: Path) -> Guess | None:
        found = kitti_folders(source) if source.is_dir() else []
        if not found:
            return None
        reason = f"Label files of 15 columns in {found[0].labels}."
        options = {} if len({each.labels.rpartition("/")[2] for each in found}) == 1 else {"labels": found[0].labels}
        confidence = 0.96 if found[0].sure else 0.75
        return Guess(format=self.name, confidence=confidence, reason=reason, kind="detection", options=options)

    def checked_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options; ``classes`` may also be one text with commas, or a dict, which is a ``class_map``."""
        classes = given.get("classes")
        if isinstance(classes, str):
            given = {**given, "classes": [name.strip() for name in classes.split(",") if name.strip()]}
        elif isinstance(classes, Mapping):
            names = list(dict.fromkeys(name for name in classes.values() if name))
            given = {**given, "classes": names, "class_map": dict(classes)}
        return super().checked_options(given)

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        folders = kitti_folders(source, options["labels"], options["images"]) if source.is_dir() else []
        if not folders:
            raise DataError(
                "A KITTI dataset has label files of 15 columns in a folder beside that of the images.",
                received=f"`{source}`, down to three folders deep",
                advice="Name the folders with the options `labels` and `images`.",
            )
        names = options["classes"] or read_class_names(source / "classes.txt")
        classes = KittiClasses(names, options["class_map"])
        found = partial(_found, source, folders, classes, options)
        return NamedScan(found, classes.names)


def _found(
    root: Path, folders: Sequence[KittiFolder], classes: KittiClasses, options: Mapping[str, Any]
) -> Iterator[Sample | Problem]:
    rule = BoxRule(options["zero_size_boxes"])
    keys = read_keys(root)
    for path in unlabelled_folders(root, list(folders)):
        reason = "Its images have no labels; none of them is in the dataset."
        yield Problem(key=path, kind="no-label", reason=reason, left_out=True)
    for folder in folders:
        for pair in walk_pairs(root, folder.pictures, folder.labels, ".txt"):
            if pair.picture is None or pair.size_bytes is None:
                reason = "It has no image of the same name." if pair.label else "It is a link that leads nowhere."
                name = pair.label or pair.picture or pair.stem
                yield Problem(key=name, kind="no-picture", reason=reason, left_out=True)
                continue
            split = folder.split or split_of(pair.stem.partition("/")[0])
            smallest_px = options["min_box_px"] if split == "val" else 0.0
            yield from _sample(root, pair, keys.get(pair.picture, pair.picture), split, (rule, classes, smallest_px))


def _sample(
    root: Path, pair: Pair, key: str, split: str, rules: tuple[BoxRule, KittiClasses, float]
) -> Iterator[Sample | Problem]:
    rule, classes, smallest_px = rules
    label: list[dict[str, Any]] = []
    try:
        lines = text_lines(root / pair.label) if pair.label else []
    except DataError as error:
        yield Problem(key=key, kind="unreadable", reason=str(error), left_out=True)
        return
    if pair.label is None:
        yield Problem(key=key, kind="no-label", reason="It has no label file.")
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        where = f"{pair.label}, line {number}"
        try:
            line = parse_line(text)
        except ValueError as error:
            yield Problem(key=key, kind="bad-line", reason=f"{where}: {error}.")
            continue
        stays, problem = rule.check(key, line.box, f"{where} ({line.type})")
        if problem:
            yield problem
        if stays:
            label.append(_labelled(line, classes, smallest_px))
    assert pair.picture is not None
    yield Sample(key=key, parts=(pair.picture,), label=label, split=split, size_bytes=pair.size_bytes)


def _labelled(line: KittiLine, classes: KittiClasses, smallest_px: float) -> dict[str, Any]:
    name = classes.name_of(line.type)
    left, top, right, bottom = line.box
    if min(right - left, bottom - top) < smallest_px:
        name = None
    written = line.type != (DONT_CARE if name is None else name)
    details = {"type": line.type, **line.details} if written else line.details
    found = ImageObject(class_number=-1, box=line.box, details=details)
    return {**found.as_json(), "class": -1 if name is None else name}
