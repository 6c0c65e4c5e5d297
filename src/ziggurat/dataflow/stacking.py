"""Stacking of datapoint components into batches, and errors for components that do not fit.

NumPy arrays and scalars keep their types. Python's bool becomes bool, int becomes int64, float becomes float32.
Bytes, text and any other object stay as they are, in an array of objects. Different types of one component are
promoted as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ziggurat.errors import DataError

__all__ = ["stack_datapoints"]


def stack_datapoints(
    points: Sequence[Any], *, use_list: bool = False, first: int = 0, numbers: Sequence[int] | None = None
) -> Any:
    """Return one batch: a list (or dict, as the datapoints are) of stacked components.

    Args:
        points: at least one datapoint.
        use_list: make lists instead of arrays.
        first: number of the first datapoint, for errors; the others follow it.
        numbers: the numbers of all, where they do not follow each other.

    Raises:
        DataError: where components are missing or cannot be stacked; it names the datapoint and the component.
    """
    return _stack_structure(points, _Place(numbers or range(first, first + len(points))), use_list)


class _Place:
    """Where in the batch something is stacked, for errors."""

    def __init__(self, numbers: Sequence[int], component: str = "") -> None:
        self.numbers = numbers
        self.component = component

    def inner(self, name: Any) -> _Place:
        return _Place(self.numbers, f"{self.component}[{name!r}]")

    def name(self, number: int) -> str:
        datapoint = f"datapoint {self.numbers[number]}"
        return f"component {self.component} of {datapoint}" if self.component else datapoint

    def misfit(self, rule: str, number: int, odd: str, usual: str, advice: str) -> DataError:
        """Return the error for a value that does not fit to the first one of the batch."""
        return self.error(rule, number, f"{odd}, where {self.name(0)} is {usual}", advice)

    def error(self, rule: str, number: int, what: str, advice: str) -> DataError:
        details = {"index": self.numbers[number], "component": self.component}
        return DataError(rule, received=f"{self.name(number)} is {what}", advice=advice, details=details)


def _stack_structure(points: Sequence[Any], place: _Place, use_list: bool) -> Any:
    """Stack datapoints, or components that are dicts."""
    example = points[0]
    if isinstance(example, dict):
        return _stack_dicts(points, place, use_list)
    if not isinstance(example, (list, tuple)):
        raise place.error(
            "A datapoint is a list, a tuple or a dict of components.",
            0,
            _describe(example),
            "Let the flow yield `[value]`.",
        )
    if set(map(type, points)) != {type(example)} or len(set(map(len, points))) > 1:  # cheap; nearly always enough
        _require_same(points, lambda point: isinstance(point, (list, tuple)) and len(point) == len(example), place)
    return [_stack_component(component, place.inner(number), use_list) for number, component in enumerate(zip(*points))]


def _stack_dicts(points: Sequence[Any], place: _Place, use_list: bool) -> dict[Any, Any]:
    keys = points[0].keys()
    _require_same(points, lambda point: isinstance(point, dict) and point.keys() == keys, place)
    return {key: _stack_component([point[key] for point in points], place.inner(key), use_list) for key in keys}


def _stack_component(values: Sequence[Any], place: _Place, use_list: bool) -> Any:
    if isinstance(values[0], dict):
        return _stack_structure(values, place, use_list)
    return list(values) if use_list else _stack_values(values, place)


def _stack_values(values: Sequence[Any], place: _Place) -> np.ndarray:
    """Return the values as one array with a new axis 0."""
    kinds = set(map(type, values))
    if kinds == {np.ndarray}:
        return _stack_arrays(values, place)
    if kinds <= {bool, int, float}:
        return _stack_numbers(values, kinds, place)
    if all(issubclass(kind, np.generic) and not issubclass(kind, (bytes, str)) for kind in kinds):
        return np.array(values)
    if any(_is_array_like(kind) for kind in kinds):
        return _stack_arrays([_as_array(value, place, number) for number, value in enumerate(values)], place)
    objects = np.empty(len(values), dtype=object)
    for number, value in enumerate(values):
        objects[number] = value
    return objects


def _stack_arrays(arrays: Sequence[np.ndarray], place: _Place) -> np.ndarray:
    try:
        return np.array(arrays)  # for small arrays it takes half the time of `np.stack`
    except ValueError:
        shape = arrays[0].shape
        odd = next((number for number, array in enumerate(arrays) if array.shape != shape), None)
        if odd is None:
            raise
    raise place.misfit(
        "The components of a batch have one shape.",
        odd,
        f"of shape {arrays[odd].shape}",
        f"of shape {shape}",
        "Resize, crop or pad them, use `BatchDataByShape`, or `BatchData` with `use_list=True`.",
    )


def _stack_numbers(values: Sequence[Any], kinds: set[type], place: _Place) -> np.ndarray:
    """Return Python's numbers as bool, int64 or float32."""
    dtype = np.float32 if float in kinds else np.int64 if int in kinds else np.bool_
    try:
        return np.array(values, dtype=dtype)
    except OverflowError as error:
        odd = next(number for number, value in enumerate(values) if not -(2**63) <= value < 2**63)
        rule = "Python's whole numbers are batched as int64."
        raise place.error(rule, odd, repr(values[odd]), "Make it a NumPy number of a type that holds it.") from error


def _is_array_like(kind: type) -> bool:
    if issubclass(kind, (bytes, str)):  # np.str_ has `__array__`, and an array of text would cut zero bytes off
        return False
    return issubclass(kind, (list, tuple)) or hasattr(kind, "__array__") or hasattr(kind, "__array_interface__")


def _as_array(value: Any, place: _Place, number: int) -> np.ndarray:
    """Return a component that is a list of numbers, an array, or something like it, as an array."""
    if type(value) is float:
        return np.asarray(value, dtype=np.float32)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise place.error(
            "A list in a datapoint has rows of one length.",
            number,
            "a list with rows of different lengths",
            "Pad it, or use `BatchData` with `use_list=True`.",
        ) from error
    if not isinstance(value, (list, tuple)):
        return array
    if array.dtype.kind in "SU":
        return np.asarray(value, dtype=object)
    return array.astype(np.float32) if array.dtype == np.float64 and _holds_floats(value) else array


def _holds_floats(value: Any) -> bool:
    """Tell whether a list (of lists) holds Python's numbers, and not NumPy's."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return type(value) in (int, float, bool)


def _require_same(points: Sequence[Any], same: Callable[[Any], bool], place: _Place) -> None:
    for number, point in enumerate(points):
        if not same(point):
            raise place.misfit(
                "The datapoints of a batch have the same components.",
                number,
                _describe(point),
                _describe(points[0]),
                "Let the stage before it yield the same components every time.",
            )


def _describe(point: Any) -> str:
    if isinstance(point, dict):
        return f"a dict with {', '.join(map(repr, point)) or 'nothing'}"
    if isinstance(point, (list, tuple)):
        return f"a {type(point).__name__} of {len(point)}"
    return f"a {type(point).__name__}"
