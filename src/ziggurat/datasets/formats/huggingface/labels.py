"""Meaning of the columns in a metadata file, and conversion of rows to labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.datasets.formats.huggingface.metadata import FILE_COLUMN
from ziggurat.datasets.formats.shared.list_lines import ListLine
from ziggurat.datasets.formats.text_list.survey import Labels, survey
from ziggurat.records.objects import ImageObject, objects_to_json

__all__ = ["Columns", "NoLabelError", "boxes_of", "columns_of", "label_line", "objects_of", "survey_rows"]

_OBJECTS: Final = ("objects", "bbox", "bboxes", "annotations")
_LABELS: Final = ("label", "labels", "class", "class_name", "category", "target")
_TEXTS: Final = ("text", "caption", "description", "prompt")
_CLASSES: Final = ("category", "categories", "category_id", "label", "labels", "class", "classes")
_MASKS: Final = ("mask", "label", "segmentation", "annotation")


class NoLabelError(Exception):
    """A row has nothing to learn from."""


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


def objects_of(
    row: Mapping[str, Any], columns: Columns, labels: Labels, form: str
) -> tuple[list[Any], list[tuple[str, str]]]:
    """Return the objects of a row as a label, and (kind, reason) of the problems of those left out.

    Args:
        row: of the metadata.
        columns: what is where.
        labels: gives the classes their numbers.
        form: ``xywh`` or ``xyxy``.

    Raises:
        NoLabelError: where the row has no boxes, or not as many classes as boxes.
    """
    found, wrong = [], []
    for box, name in boxes_of(row, columns):
        corners = _corners(box, form)
        if corners is None:
            wrong.append(("zero-size-box", f"The box {str(box)[:80]} has no size, or is none."))
            continue
        try:
            number = labels.label(ListLine("", _texts(name)))
        except (KeyError, ValueError, NoLabelError):
            wrong.append(("unknown-class", f"There is no class {str(name)[:80]!r}."))
            continue
        found.append(ImageObject(class_number=number, box=corners))
    return objects_to_json(found), wrong


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
        raise NoLabelError(f"It has {len(boxes)} boxes and {len(classes)} classes.")
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


def _corners(box: Any, form: str) -> tuple[float, float, float, float] | None:
    if not isinstance(box, list) or len(box) != 4 or not all(type(number) in (int, float) for number in box):
        return None
    if not all(abs(number) < 1e9 for number in box):
        return None  # also where it is not a number
    left, top, right, bottom = box
    if form == "xywh":
        right, bottom = left + right, top + bottom
    return (left, top, right, bottom) if right > left and bottom > top and math.isfinite(right + bottom) else None
