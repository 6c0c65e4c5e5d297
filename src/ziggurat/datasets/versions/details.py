"""Update of per-class lists in a schema's details when classes change.

Only the importer knows what its details mean, so the form decides: a list with one value per class, at any depth, is
treated as a list by class number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ziggurat.records.schema import Schema

__all__ = ["changed_details", "joined_details"]

_NOTHING: Final = object()


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
