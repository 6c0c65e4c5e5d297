"""Annotations of COCO: categories, boxes, outlines and masks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ziggurat.datasets.formats.coco.content import EXACT_BOX, flag, identity_of
from ziggurat.datasets.formats.shared.detection_import import (
    BoxRule,
    clean_json,
    plain_number,
    same_names,
)
from ziggurat.datasets.samples import Problem
from ziggurat.records.objects import ImageObject
from ziggurat.records.run_lengths import mask_area, mask_part, read_run_lengths

__all__ = ["Categories", "object_of"]

_OWN_FIELDS: Final = frozenset(("image_id", "category_id", "bbox", "segmentation", "iscrowd", "difficult", EXACT_BOX))


class Categories:
    """The classes of several JSON files.

    Classes are numbered in the order of their ids. Where files disagree on what an id means, names decide, in the order
    in which the files give them. Categories of one name are one class. Categories that no annotation uses count like
    all others.

    Args:
        lists: the ``categories`` of each file.

    Attributes:
        names: by class number.
        entries: what the files say of each class, by class number.
        numbers: for each file, id → class number.
    """

    def __init__(self, lists: Sequence[Sequence[Any]]) -> None:
        self._bad = [sum(not _usable(entry) for entry in entries) for entries in lists]
        files = [sorted(map(_category, filter(_usable, entries)), key=_order) for entries in lists]
        self._named = [[_name(entry) for entry in entries] for entries in files]
        ids_by_name: dict[str, Any] = {}
        names_by_id: dict[Any, str] = {}
        agree = True
        for entries in files:
            own: dict[str, Any] = {}
            for entry in entries:
                first = own.setdefault(_name(entry), entry["id"])
                agree = agree and ids_by_name.setdefault(_name(entry), first) == first
                agree = agree and names_by_id.setdefault(entry["id"], _name(entry)) == _name(entry)
        every = [entry for entries in files for entry in entries]
        if agree:
            every.sort(key=_order)
        unique: dict[str, dict[str, Any]] = {}
        for entry in every:
            unique.setdefault(_name(entry), entry)
        places = {name: number for number, name in enumerate(unique)}
        self.names = tuple(unique)
        self.entries = [clean_json(entry) for entry in unique.values()]
        self.numbers = [{entry["id"]: places[_name(entry)] for entry in entries} for entries in files]

    def problems(self, files: Sequence[str]) -> Iterator[Problem]:
        """Yield what is wrong with the lists of the files."""
        for path, bad, names in zip(files, self._bad, self._named, strict=True):
            if bad:
                reason = f"{bad} of its categories have no usable id."
                yield Problem(key=path, kind="bad-line", reason=reason, names=bad, why="they have no usable id")
            yield from same_names(path, names)

    def number_of(self, file: int, annotation: Mapping[str, Any]) -> int | None:
        """Return the class number of an annotation of a file; None where it has no category of the list."""
        return self.numbers[file].get(identity_of(annotation.get("category_id")))

    def name_of(self, file: int, annotation: Mapping[str, Any]) -> str:
        """Return the class name of an annotation of a file; empty where it has no category of the list."""
        number = self.number_of(file, annotation)
        return "" if number is None else self.names[number]


def _usable(entry: Any) -> bool:
    return isinstance(entry, dict) and identity_of(entry.get("id")) is not None


def _category(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "id": identity_of(entry["id"])}


def _order(entry: dict[str, Any]) -> tuple[bool, Any]:
    return (isinstance(entry["id"], str), entry["id"])


def _name(entry: dict[str, Any]) -> str:
    return str(clean_json(entry.get("name", entry["id"])))


def object_of(
    annotation: Mapping[str, Any],
    categories: Categories,
    file: int,
    *,
    key: str,
    rule: BoxRule,
    size: tuple[float, float] | None,
) -> tuple[ImageObject | None, list[Problem]]:
    """Return the object of an annotation, None where it cannot come, and what is wrong with it.

    Args:
        annotation: as the file has it.
        categories: of all files.
        file: number of the annotation's file.
        key: of the sample.
        rule: decides on boxes.
        size: (width, height) of the image in pixels as the file says it.
    """
    where = f"annotation {_shown(annotation.get('id'))}"
    number = categories.number_of(file, annotation)
    crowd = flag(annotation.get("iscrowd"))
    if number is None:
        reason = f"{where}: there is no category of id {_shown(annotation.get('category_id'))}."
        why = "their category is not in `categories`"
        return None, [Problem(key=key, kind="unknown-class", reason=reason, objects=int(not crowd), why=why)]
    name = categories.names[number]
    polygons, mask, problems = _segmentation(annotation.get("segmentation"), key, where, size)
    written, around = _box(annotation), _box_of_polygons(polygons) or _box_of_mask(mask)
    if written is not None and around is not None and (written[0] == written[2] or written[1] == written[3]):
        reason = f"{where}: its box has no area, and that of its outline is taken."
        problems.append(Problem(key=key, kind="box-of-outline", reason=reason))
        written = around
    box = written or around
    if box is None:
        reason = f"{where}: it has no box of four numbers."
        problem = Problem(key=key, kind="bad-box", reason=reason, objects=int(not crowd), class_name=name)
        return None, [problem, *problems]
    ordered, listed = rule.check(key, box, where, size, class_name=name, counts=not crowd)
    problems += listed
    if ordered is None:
        return None, problems
    return ImageObject(
        class_number=number,
        box=ordered,
        polygons=polygons,
        mask=mask,
        crowd=crowd,
        difficult=flag(annotation.get("difficult")),
        details=_details(annotation, ordered),
    ), problems


def _box(annotation: Mapping[str, Any]) -> tuple[float, float, float, float] | None:
    exact = _numbers(annotation.get(EXACT_BOX))
    if exact is not None and len(exact) == 4:
        return (exact[0], exact[1], exact[2], exact[3])
    values = _numbers(annotation.get("bbox"))
    if values is None or len(values) != 4:
        return None
    left, top, width, height = values
    return (left, top, left + width, top + height)


def _box_of_polygons(polygons: tuple[tuple[float, ...], ...]) -> tuple[float, float, float, float] | None:
    points_x = [value for polygon in polygons for value in polygon[::2]]
    points_y = [value for polygon in polygons for value in polygon[1::2]]
    return (min(points_x), min(points_y), max(points_x), max(points_y)) if points_x else None


def _box_of_mask(mask: Mapping[str, Any] | None) -> tuple[float, float, float, float] | None:
    if mask is None or not mask_area(mask):
        return None
    part, left, top = mask_part(mask)
    return (float(left), float(top), float(left + part.shape[1]), float(top + part.shape[0]))


def _numbers(value: Any) -> list[float] | None:
    """Return a list of numbers, None where it is none; a whole number that is too large becomes infinite."""
    if not isinstance(value, list):
        return None
    if set(map(type, value)) <= {int, float} and (not value or (max(value) < 1e300 and min(value) > -1e300)):
        return list(map(float, value))
    numbers = [plain_number(each) for each in value]
    return None if None in numbers else [each for each in numbers if each is not None]


def _details(annotation: Mapping[str, Any], box: tuple[float, float, float, float]) -> dict[str, Any]:
    details = {name: clean_json(value) for name, value in annotation.items() if name not in _OWN_FIELDS}
    values = _numbers(annotation.get("bbox"))
    if values and len(values) == 4 and values[2:] != [box[2] - box[0], box[3] - box[1]] and EXACT_BOX not in annotation:
        details["bbox"] = values  # so that an export writes the numbers that stood here
    return details


def _segmentation(
    value: Any, key: str, where: str, size: tuple[float, float] | None
) -> tuple[tuple[tuple[float, ...], ...], dict[str, Any] | None, list[Problem]]:
    if isinstance(value, Mapping):
        mask = read_run_lengths(value)
        reason = f"{where}: its run lengths do not fit their size."
        if mask and size and mask["size"] != [size[1], size[0]]:
            reason = f"{where}: its mask is {mask['size'][1]} x {mask['size'][0]} pixels, not as large as its image."
            mask = None
        return (), mask, [] if mask else [Problem(key=key, kind="bad-mask", reason=reason)]
    outlines = value if isinstance(value, list) else []
    polygons = [_numbers(outline) for outline in outlines]
    good = [tuple(each) for each in polygons if each and len(each) >= 6 and len(each) % 2 == 0 and _finite(each)]
    reason = f"{where}: an outline is no list of at least three points."
    bad = [Problem(key=key, kind="bad-polygon", reason=reason)] if len(good) < len(polygons) else []
    return tuple(good), None, bad


def _finite(values: list[float]) -> bool:
    return math.isfinite(sum(values)) and max(values) < 1e9 and min(values) > -1e9


def _shown(value: Any) -> str:
    return repr(value)[:60]
