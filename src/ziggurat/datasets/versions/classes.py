"""Classes of a version: changes to names and other per-class values, label validation, and renumbered labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError, UnknownNameError, UsageError
from ziggurat.records.objects import ImageObject
from ziggurat.records.schema import Schema

__all__ = [
    "DROPPED",
    "ClassEdit",
    "checked_label",
    "drop_classes",
    "has_one_class",
    "join_classes",
    "keep_classes",
    "label_fault",
    "merge_classes",
    "name_classes",
    "rename_class",
    "renumbered",
]

_NOTHING: Final = object()  # None is a value that a format may store

DROPPED: Final = -1
"""In a map of class numbers: the class is left out."""

_WITHOUT_LABEL: Final = ("segmentation", "image-to-image")


def changed_details(schema: Schema, change: Callable[[Sequence[Any]], list[Any]]) -> dict[str, Any]:
    """Return the details with a change to all lists by class number."""

    def changed(value: Any) -> Any:
        if _is_by_class(value, schema):
            return change(value)
        return {key: changed(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value

    return {key: changed(value) for key, value in schema.details.items()}


def joined_details(first: Schema, other: Schema, new: Sequence[int]) -> dict[str, Any]:
    """Return the details of the first with the new classes of another.

    A list by class number that the other has not, or that would hold an ``id`` twice, cannot go on and is left away.

    Args:
        first: whose classes come first.
        other: that has more.
        new: numbers in the other of the classes that come behind.
    """

    def joined(ours: Any, theirs: Any) -> Any:
        if _is_by_class(ours, first):
            if not new:
                return ours
            values = [*ours, *(theirs[number] for number in new)] if _is_by_class(theirs, other) else []
            return values if values and _has_own_ids(values) else _NOTHING
        if not isinstance(ours, Mapping):
            return ours
        inner = theirs if isinstance(theirs, Mapping) else {}
        pairs = {key: joined(value, inner.get(key)) for key, value in ours.items()}
        return {key: value for key, value in pairs.items() if value is not _NOTHING}

    return joined(first.details, other.details)


def _is_by_class(value: Any, schema: Schema) -> bool:
    return isinstance(value, list | tuple) and 0 < len(value) == len(schema.class_names)


def _has_own_ids(values: Sequence[Any]) -> bool:
    ids = [str(value["id"]) for value in values if isinstance(value, Mapping) and "id" in value]
    return len(set(ids)) == len(ids)


@dataclass(frozen=True)
class ClassEdit:
    """A schema with other classes.

    Args:
        schema: the new one.
        numbers: (K,) int32, the new number of each old class, -1 for one that is left out.
    """

    schema: Schema
    numbers: np.ndarray


def rename_class(schema: Schema, name: str, new_name: str) -> ClassEdit:
    """Give a class another name; its number stays.

    Raises:
        UnknownNameError: where there is no such class.
        UsageError: where the new name is empty or another class has it.
    """
    at = _numbers_of(schema, [name])[0]
    if not new_name or new_name in schema.class_names:
        raise UsageError(
            "A class gets a name that no other class has.",
            received=repr(new_name),
            advice="Use MergeClasses to make one class of two.",
        )

    def renamed(values: Sequence[Any]) -> list[Any]:
        return [_renamed(value, name, new_name) if place == at else value for place, value in enumerate(values)]

    return ClassEdit(_mapped(schema, renamed), np.arange(len(schema.class_names), dtype=np.int32))


def name_classes(schema: Schema, names: Sequence[str], colours: Sequence[tuple[int, int, int]] = ()) -> ClassEdit:
    """Give all classes their names, and the classes of masks their colors; numbers stay.

    Args:
        schema: of the dataset.
        names: by class number; as many as there are, and any number for masks whose classes have no names.
        colours: (R, G, B), from 0 to 255, of each class in a mask; empty: they stay.

    Raises:
        UsageError: where a name is empty or there twice, or their number or that of the colors is another one.
        DataError: where the classes of the dataset cannot be named.
    """
    old = schema.class_names
    if not old and schema.kind != "segmentation":
        raise DataError("Classes are named in a dataset that has some.", received=f"kind {schema.kind} without classes")
    if not names or (old and len(names) != len(old)):
        raise UsageError(
            f"There is one name for each of the {len(old)} classes." if old else "There is a name for each class.",
            received=str(len(names)),
        )
    twice = next((name for place, name in enumerate(names) if not name or name in names[:place]), None)
    if twice is not None:
        raise UsageError("Each class has a name of its own.", received=f"`{twice}` twice" if twice else "an empty name")
    are_colors = all(len(color) == 3 and all(0 <= value <= 255 for value in color) for color in colours)
    if colours and (schema.kind != "segmentation" or len(colours) != len(names) or not are_colors):
        raise UsageError(
            "Colors are for the classes of masks: R, G and B from 0 to 255 for each.",
            received=f"{len(colours)} colors for {len(names)} classes",
        )

    def named(values: Sequence[Any]) -> list[Any]:
        return [_renamed(value, was, new) for value, was, new in zip(values, old, names, strict=True)]

    mapped = _mapped(schema, named) if old else schema
    chosen = tuple(colours) or schema.colours
    return ClassEdit(replace(mapped, class_names=tuple(names), colours=chosen), np.arange(len(old), dtype=np.int32))


def merge_classes(schema: Schema, names: Sequence[str], into: str) -> ClassEdit:
    """Make one class of several; it stands where ``into`` stood, or else where the first of them stood.

    Raises:
        UnknownNameError: where there is no such class.
        UsageError: where there is none to merge, or ``into`` is empty.
        DataError: where classes are pixels of masks.
    """
    _refuse_without_numbers(schema)
    merged = set(_numbers_of(schema, names))
    if into in schema.class_names:
        merged.add(schema.class_names.index(into))
    if not names or not into:
        raise UsageError(f"Classes cannot be merged: {list(names)} into {into!r}.")
    stays = schema.class_names.index(into) if into in schema.class_names else min(merged)
    old = schema.class_names[stays]
    named = schema if old == into else rename_class(schema, old, into).schema
    kept = [number for number in range(len(schema.class_names)) if number == stays or number not in merged]
    edit = _selected(named, kept)
    edit.numbers[list(merged)] = kept.index(stays)
    return edit


def drop_classes(schema: Schema, names: Sequence[str]) -> ClassEdit:
    """Leave classes out; the others move up and keep their order.

    Raises:
        UnknownNameError: where there is no such class.
        UsageError: where none would be left.
        DataError: where classes are pixels of masks.
    """
    _refuse_without_numbers(schema)
    dropped = set(_numbers_of(schema, names))
    kept = [number for number in range(len(schema.class_names)) if number not in dropped]
    if not kept:
        raise UsageError("A dataset keeps at least one class.", received=f"all {len(dropped)} are to be left out")
    return _selected(schema, kept)


def keep_classes(schema: Schema, names: Sequence[str]) -> ClassEdit:
    """Leave all other classes out; those that stay keep their order.

    Raises:
        UnknownNameError: where there is no such class.
        UsageError: where none would be left.
        DataError: where classes are pixels of masks.
    """
    kept = set(_numbers_of(schema, names))
    return drop_classes(schema, [name for number, name in enumerate(schema.class_names) if number not in kept])


def join_classes(first: Schema, other: Schema) -> ClassEdit:
    """Return the first schema with the classes of another behind its own, and the numbers of the other's classes.

    Classes are the same where their names are. Nothing of the first gets another number.
    """
    ours, theirs_named = _told_apart(first.class_names), _told_apart(other.class_names)
    known = set(ours)
    from_other = [number for number, name in enumerate(theirs_named) if name not in known]
    everything = [*ours, *(theirs_named[number] for number in from_other)]
    colours: tuple[tuple[int, int, int], ...] = ()
    if len(first.colours) == len(first.class_names) and len(other.colours) == len(other.class_names):
        colours = (*first.colours, *(other.colours[number] for number in from_other))
    details = joined_details(first, other, from_other)
    places = {name: number for number, name in enumerate(everything)}
    numbers = np.array([places[name] for name in theirs_named], np.int32)
    names = tuple(name for name, _ in everything)
    return ClassEdit(replace(first, class_names=names, colours=colours, details=details), numbers)


def _selected(schema: Schema, kept: Sequence[int]) -> ClassEdit:
    numbers = np.full(len(schema.class_names), DROPPED, np.int32)
    numbers[list(kept)] = np.arange(len(kept))
    return ClassEdit(_mapped(schema, lambda values: [values[number] for number in kept]), numbers)


def _mapped(schema: Schema, change: Callable[[Sequence[Any]], list[Any]]) -> Schema:
    """Change all that has one value a class: names, colors, the target's categories, and lists in the details."""
    details = changed_details(schema, change)
    columns = tuple(
        replace(column, categories=tuple(change(column.categories)))
        if column.name == schema.target and column.categories == schema.class_names
        else column
        for column in schema.columns
    )
    names = tuple(change(schema.class_names))
    colours = tuple(change(schema.colours)) if len(schema.colours) == len(schema.class_names) else schema.colours
    return replace(schema, class_names=names, colours=colours, columns=columns, details=details)


def _renamed(value: Any, name: str, new_name: str) -> Any:
    """Return what a format keeps of a class, with the class's new name where it held the old one."""
    if isinstance(value, Mapping) and value.get("name") == name:
        return {**value, "name": new_name}
    return new_name if isinstance(value, str) else value


def _told_apart(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return each name with how often it came before: COCO has lists where two classes share one."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        found.append((name, seen.get(name, 0)))
        seen[name] = found[-1][1] + 1
    return found


def _numbers_of(schema: Schema, names: Sequence[str]) -> list[int]:
    for name in names:
        if name not in schema.class_names:
            raise UnknownNameError("class", name, schema.class_names)
    return [schema.class_names.index(name) for name in names]


def _refuse_without_numbers(schema: Schema) -> None:
    if schema.kind != "detection" and not has_one_class(schema):
        raise DataError(
            "Classes are merged and left out where a sample or an object has one class as its label.",
            received=f"kind {schema.kind}",
            advice="Change them in the source, or in the importer's options, and create the dataset anew.",
        )


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
