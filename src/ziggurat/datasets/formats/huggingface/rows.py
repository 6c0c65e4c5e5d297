"""Rows of metadata beside images: what their columns mean, their labels, and the objects in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import BoxRule, plain_number
from ziggurat.datasets.formats.shared.frames import FrameRule
from ziggurat.datasets.formats.shared.text_files import Labels, ListLine, survey
from ziggurat.datasets.formats.table.image_tables import FILE_COLUMN
from ziggurat.datasets.image_size import stored_size_of_file
from ziggurat.datasets.samples import Problem
from ziggurat.records.objects import ImageObject

__all__ = ["Columns", "NoLabelError", "RowObjects", "columns_of", "count_of_boxes", "label_line", "survey_rows"]

_OBJECTS: Final = ("objects", "bbox", "bboxes", "annotations")
_LABELS: Final = ("label", "labels", "class", "class_name", "category", "target")
_TEXTS: Final = ("text", "caption", "description", "prompt")
_CLASSES: Final = ("category", "categories", "category_id", "label", "labels", "class", "classes")
_MASKS: Final = ("mask", "label", "segmentation", "annotation")


class NoLabelError(Exception):
    """A row has nothing to learn from.

    Args:
        reason: one sentence.
        class_name: class of the row that the dataset does not have; empty if it has none.
        objects: how many objects are lost with it.
    """

    def __init__(self, reason: str, class_name: str = "", objects: int = 0) -> None:
        super().__init__(reason)
        self.class_name = class_name
        self.objects = objects


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What is where in a row.

    Args:
        kind: of the dataset.
        label: column with the label, the objects or the text; empty for none.
        second: column with the path of the second image; empty for none.
    """

    kind: str
    label: str = ""
    second: str = ""


def columns_of(names: Iterable[str], label: str = "") -> Columns:
    """Return what the columns of a file mean, by their names.

    Args:
        names: of the columns.
        label: the one that a person named; empty for none.
    """
    others = [name for name in names if name not in (FILE_COLUMN, "split")]
    if not label:
        label = next((name for name in (*_OBJECTS, *_LABELS) if name in others), "")
    seconds = [name for name in others if name.endswith(f"_{FILE_COLUMN}")]
    if not label and seconds:
        kind = "segmentation" if seconds[0].startswith(_MASKS) else "image-to-image"
        return Columns(kind=kind, second=seconds[0])
    if not label:
        label = next((name for name in _TEXTS if name in others), others[0] if len(others) == 1 else "")
    if label in _OBJECTS:
        return Columns(kind="detection", label=label)
    if label in _TEXTS:
        return Columns(kind="generic", label=label)
    return Columns(kind="image-classification" if label else "image-to-image", label=label)


def survey_rows(rows: Iterable[Mapping[str, Any] | None], columns: Columns) -> Labels | None:
    """Return how the labels of rows become numbers; None where no row has any."""
    return survey((line for row in rows if row is not None for line in _lines(row, columns)), None, "auto")


def label_line(row: Mapping[str, Any], columns: Columns) -> ListLine:
    """Return the label of a row, as a line of a list would have it.

    Raises:
        NoLabelError: where it has none.
    """
    return ListLine("", _texts(_parsed(row.get(columns.label))))


class RowObjects:
    """Reads the objects of rows, in pixels of the images as they are shown.

    Args:
        root: folder that the paths of images are relative to.
        columns: what is where.
        labels: gives the classes their numbers.
        options: of the importer.
    """

    def __init__(self, root: Path, columns: Columns, labels: Labels, options: Mapping[str, Any]) -> None:
        self._root = root
        self._columns = columns
        self._labels = labels
        self._has_sizes = options["box_format"] == "xywh"
        self._rule = BoxRule(options["zero_size_boxes"])
        self._frames = FrameRule(options)

    def label(self, path: str, row: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Problem]]:
        """Return the objects of a row, and what is wrong with them.

        Raises:
            NoLabelError: where the row has no boxes, or not as many classes as boxes.
        """
        boxes = boxes_of(row, self._columns)
        width, height = (plain_number(row.get(name)) for name in ("width", "height"))
        said = (width, height) if width and height and min(width, height) > 0 else None
        image = partial(stored_size_of_file, self._root / path)
        frame = self._frames.of(path, image, said, labelled=bool(boxes))
        objects: list[dict[str, Any]] = []
        problems = list(frame.problems)
        for number, (box, name) in enumerate(boxes, 1):
            shown = "" if isinstance(name, list | dict) or name is None else str(name)[:80]
            sides = [plain_number(side) for side in box] if isinstance(box, list) else []
            if len(sides) != 4 or None in sides:
                reason = f"object {number} has no box of four numbers."
                problems.append(Problem(key=path, kind="bad-box", reason=reason, objects=1, class_name=shown))
                continue
            left, top, right, bottom = (side for side in sides if side is not None)
            if self._has_sizes:
                right, bottom = left + right, top + bottom
            corners = (left, top, right, bottom)
            found, wrong = self._rule.check(path, corners, f"object {number}", frame.size, class_name=shown)
            problems += wrong
            if found is None:
                continue
            try:
                class_number = self._labels.label(ListLine("", _texts(name)))
            except (KeyError, ValueError, NoLabelError):
                reason = f"There is no class {str(name)[:80]!r}."
                problems.append(Problem(key=path, kind="unknown-class", reason=reason, objects=1, class_name=shown))
                continue
            objects.append(frame.moved(ImageObject(class_number=class_number, box=found)).as_json())
        return objects, problems


def count_of_boxes(row: Mapping[str, Any], columns: Columns) -> int:
    """Return how many objects a row has, as far as it can be read; 0 in datasets without objects."""
    if columns.kind != "detection":
        return 0
    try:
        return len(boxes_of(row, columns))
    except NoLabelError as error:
        return error.objects


def boxes_of(row: Mapping[str, Any], columns: Columns) -> list[tuple[Any, Any]]:
    """Return (box, class) of the objects of a row; class 0 where it has no classes.

    Raises:
        NoLabelError: where the row has no boxes, or not as many classes as boxes.
    """
    content = _parsed(row.get(columns.label))
    if isinstance(content, list) and all(isinstance(each, dict) for each in content):
        return [(each.get("bbox"), _class_in(each, 0)) for each in content]
    boxes, classes = content, _class_in(row, None)
    if isinstance(content, dict):
        boxes, classes = content.get("bbox", content.get("bboxes")), _class_in(content, None)
    if not isinstance(boxes, list):
        raise NoLabelError("It has no boxes.")
    if boxes and not isinstance(boxes[0], list):
        boxes = [boxes]
    classes = _parsed(classes)
    classes = [0] * len(boxes) if classes is None else classes if isinstance(classes, list) else [classes]
    if len(classes) != len(boxes):
        raise NoLabelError(f"It has {len(boxes)} boxes and {len(classes)} classes.", objects=len(boxes))
    return list(zip(boxes, classes))


def _lines(row: Mapping[str, Any], columns: Columns) -> Iterator[ListLine]:
    try:
        if columns.kind == "detection":
            for _, name in boxes_of(row, columns):
                yield ListLine("", _texts(name))
        else:
            yield label_line(row, columns)
    except NoLabelError:
        return


def _class_in(values: Mapping[str, Any], default: Any) -> Any:
    return next((values[name] for name in _CLASSES if values.get(name) is not None), default)


def _parsed(value: Any) -> Any:
    """Return a cell; lists and objects that are written as JSON are read."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values or any(each is None or each == "" or isinstance(each, (list, dict)) for each in values):
        raise NoLabelError("It has no label.")
    return tuple(str(each) for each in values)
