"""Label validation for each kind of dataset, and renumbering of labels when class numbers change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError, UnknownNameError
from ziggurat.records.objects import ImageObject
from ziggurat.records.schema import Schema

__all__ = ["DROPPED", "checked_label", "has_one_class", "label_fault", "renumbered"]

DROPPED: Final = -1
"""In a map of class numbers: the class is left out."""

_WITHOUT_LABEL: Final = ("segmentation", "image-to-image")


def has_one_class(schema: Schema) -> bool:
    """Return whether the label of a sample is the number of its one class."""
    return bool(schema.class_names) and schema.kind in ("image-classification", "text-classification", "table")


def checked_label(schema: Schema, label: Any) -> Any:
    """Return a label that a person gave in its stored form; the name of a class becomes its number.

    Raises:
        UnknownNameError: where there is no class of that name.
        DataError: where the kind of the dataset has no such labels.
    """
    if has_one_class(schema) and isinstance(label, str):
        if label not in schema.class_names:
            raise UnknownNameError("class", label, schema.class_names)
        return schema.class_names.index(label)
    fault = label_fault(schema, label)
    if fault:
        raise DataError(f"A label of a dataset of kind {schema.kind} is as its kind says: {fault}", received=label)
    return label


def label_fault(schema: Schema, label: Any) -> str:
    """Return what is wrong with a label, one sentence; empty where it is right.

    Args:
        schema: of the dataset.
        label: a JSON value.
    """
    if schema.kind in _WITHOUT_LABEL:
        return "" if label is None else "the second part is the label, so it is None."
    if schema.kind == "detection":
        return _objects_fault(schema, label)
    if schema.kind == "image-pairs":
        return "" if type(label) is int and label in (0, 1) else "it is 1 for the same and 0 for others."
    if schema.kind == "image-regression":
        return "" if isinstance(label, list) and all(map(_is_number, label)) else "it is a list of finite numbers."
    if schema.kind == "generic":
        values = label if isinstance(label, list) else [label]
        is_right = label is None or all(map(_is_number, values))
        return "" if is_right else "it is None, a number, or a list of numbers."
    if schema.kind == "table" and (label is None or (not schema.class_names and _is_number(label))):
        return ""
    is_class = type(label) is int and 0 <= label < max(len(schema.class_names), 1)
    return "" if is_class else f"it is the number of a class, from 0 to {len(schema.class_names) - 1}."


def renumbered(label: Any, classes: np.ndarray) -> Any:
    """Return a label with the new numbers of its classes; ``DROPPED`` for a class that is left out.

    Args:
        label: the number of a class (others come back as they are), or a list of objects, which loses those whose class
            is left out; objects without a class (-1) stay.
        classes: (K,) the new number of each class.
    """
    if type(label) is int:
        return int(classes[label]) if 0 <= label < len(classes) else label
    if not isinstance(label, list) or not label or not isinstance(label[0], dict):
        return label
    kept = [each if each["class"] < 0 else each | {"class": int(classes[each["class"]])} for each in label]
    return [new for new, old in zip(kept, label, strict=True) if new["class"] != DROPPED or old["class"] < 0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _objects_fault(schema: Schema, label: Any) -> str:
    if not isinstance(label, list) or not all(isinstance(each, Mapping) for each in label):
        return "it is a list of objects."
    for place, content in enumerate(label):
        try:
            each = ImageObject.from_json(content)
            left, top, right, bottom = each.box
            is_box = all(map(_is_number, each.box)) and left <= right and top <= bottom
        except (KeyError, TypeError, ValueError):
            return f"object {place} has no `class` and `box` of four numbers."
        if not is_box:
            return f"the box of object {place} is four finite numbers: left, top, right, bottom."
        if type(each.class_number) is not int or not -1 <= each.class_number < len(schema.class_names):
            return f"the class of object {place} is a number from 0 to {len(schema.class_names) - 1}, or -1 for none."
    return ""
