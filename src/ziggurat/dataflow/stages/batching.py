"""Batching: stacking of datapoints into batches, batching by shape, and the memory pool of batches.

NumPy arrays and scalars keep their types. Python's bool becomes bool, int becomes int64, float becomes float32.
Bytes, text and any other object stay as they are, in an array of objects. Different types of one component are
promoted as NumPy does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow, Reader, UnknownLengthError
from ziggurat.dataflow.stages.buffering import Held, HoldingFlow
from ziggurat.dataflow.stages.mapping import component_of
from ziggurat.errors import DataError, UsageError

__all__ = ["BatchBuffers", "BatchData", "BatchDataByShape", "is_pooled", "length_or_none", "stack_datapoints"]

_ALIGN_BYTES = 64


class BatchData(ProxyDataFlow):
    """Batches of ``batch_size`` datapoints: each component is stacked on a new axis 0, in new memory.

    Args:
        ds: a flow of lists, tuples or dicts; a component may be a dict again.
        batch_size: datapoints in a batch.
        remainder: also yield a smaller last batch; it is dropped otherwise.
        use_list: make lists instead of arrays, for components of different shapes.

    A flow that gathers by index (``DataFromArrays`` and readers like it) is read batch by batch.
    """

    def __init__(self, ds: DataFlow, batch_size: int, remainder: bool = False, use_list: bool = False) -> None:
        super().__init__(ds)
        if batch_size < 1:
            raise UsageError("`batch_size` is 1 or more.", received=batch_size)
        self.batch_size = int(batch_size)
        self.remainder = remainder
        self.use_list = use_list
        self._share: Any = None
        length = length_or_none(ds)
        if not remainder and length is not None and length < batch_size:
            raise UsageError(
                "A pass must fill at least one batch.",
                received=f"batch_size {batch_size} for {length} datapoints",
                advice="Make `batch_size` smaller, or set `remainder=True`.",
            )

    def __len__(self) -> int:
        """Return the number of batches in a pass; with ``remainder`` it is right where the length of ``ds`` is."""
        full, rest = divmod(len(self.ds), self.batch_size)
        return full + (1 if rest and self.remainder else 0)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the batches."""
        if self._ziggurat_resume_index and self.ds._ziggurat_ended:
            return  # the smaller last batch was the newest
        with self.ds._ziggurat_read() as reader:
            next_batch = self._gathered if reader.stacks and not self.use_list else self._stacked
            while True:
                count, batch = next_batch(reader)
                if count == self.batch_size or (count and self.remainder):
                    yield batch
                if count < self.batch_size:
                    return

    def take_share(self, share: Any) -> bool:
        """Compute only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.flow_program``."""
        self._share = share
        return share.offer(self.ds)

    def _gathered(self, reader: Reader) -> tuple[int, Datapoint]:
        return reader.take_batch(self.batch_size)

    def _stacked(self, reader: Reader) -> tuple[int, Datapoint]:
        points = reader.take(self.batch_size)
        count = len(points)
        if not count or (count < self.batch_size and not self.remainder):
            return count, None
        if self._share is not None and not self._share.mine:
            return count, self._share.NOT_MINE
        return count, stack_datapoints(points, use_list=self.use_list, first=self.ds._ziggurat_delivered - count)


def length_or_none(ds: DataFlow) -> int | None:
    """Return the number of datapoints in a pass, or None where it is not known."""
    try:
        return len(ds)
    except (NotImplementedError, TypeError):
        return None


class BatchDataByShape(HoldingFlow):
    """Batches of datapoints that have one component of the same shape; a batch comes as soon as it is full.

    Args:
        ds: a flow.
        batch_size: datapoints in a batch.
        idx: number or key of the component that is looked at.
        remainder: at the end of a pass also yield what is left of each shape; it is dropped otherwise.

    Resuming reads again from the oldest datapoint that waits for others of its shape.
    """

    def __init__(self, ds: DataFlow, batch_size: int, idx: int | str, *, remainder: bool = False) -> None:
        super().__init__(ds)
        if batch_size < 1:
            raise UsageError("`batch_size` is 1 or more.", received=batch_size)
        self.batch_size = int(batch_size)
        self.idx = idx
        self.remainder = remainder

    def __len__(self) -> int:
        raise UnknownLengthError(self)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the batches."""
        held, loaded = self.begin_holding(every=max(1, self.batch_size))
        waiting = loaded.get("waiting", [])
        groups: dict[tuple[int, ...], list[int]] = {}
        with held:
            held.read_again(loaded.get("count", 0), waiting)
            for number in waiting:
                self._add(held, number, groups)
            while (number := held.pull()) is not None:
                full = self._add(held, number, groups)
                if full:
                    yield _batch(held, full)
            for shape in list(groups) if self.remainder else ():
                yield _batch(held, groups.pop(shape))

    def held_state(self) -> dict[str, Any]:
        """Return how many datapoints were read, and the numbers of those that wait."""
        assert self._held is not None
        return {"count": self._held.count, "waiting": self._held.numbers()}

    def _add(self, held: Held, number: int, groups: dict[tuple[int, ...], list[int]]) -> list[int] | None:
        """Put a datapoint to those of its shape; return them where they fill a batch."""
        shape = np.shape(component_of(held.points[number], self.idx))
        group = groups.setdefault(shape, [])
        group.append(number)
        return groups.pop(shape) if len(group) == self.batch_size else None


def _batch(held: Held, numbers: list[int]) -> Datapoint:
    return stack_datapoints([held.points.pop(number) for number in numbers], numbers=numbers)


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


class _Pooled(np.ndarray):
    """Memory of a pool."""


def is_pooled(array: np.ndarray) -> bool:
    """Return whether the memory of an array is a pool's, so that nothing writes over it while the array is held."""
    base = array.base
    while isinstance(base, np.ndarray) and not isinstance(base, _Pooled):
        base = base.base
    return isinstance(base, _Pooled)


class BatchBuffers:
    """Hands out arrays of one shape, and takes back the memory of those that are gone.

    Whether an array, a view of it, or a tensor that shares its memory is still alive is told by the reference count of
    the memory: a batch may be kept for ever. Where the interpreter does not count exactly (without a GIL), every array
    gets new memory. A page that was used before costs no time in the kernel: about 15 µs an image of 224 pixels.

    Args:
        shape: of the arrays, which are aligned to 64 bytes, as TensorFlow likes them.
        keep: how much unused memory is kept for later, in arrays.
        dtype: of the arrays.
    """

    def __init__(self, shape: tuple[int, ...], keep: int, dtype: DTypeLike = np.uint8) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._bytes = int(np.prod(shape)) * self._dtype.itemsize
        self._keep = keep
        self._memory: list[np.ndarray] = []
        self._counts = getattr(sys, "_is_gil_enabled", lambda: True)()

    def take(self) -> np.ndarray:
        """Return an array with anything in it."""
        memory = self._unused() if self._counts else None
        if memory is None:
            memory = _Pooled((self._bytes + _ALIGN_BYTES,), np.uint8)
            self._memory.append(memory)
        # The array starts at the next multiple of 64 bytes; `base` stays the pooled memory.
        return np.ndarray(self._shape, self._dtype, buffer=memory, offset=-memory.ctypes.data % _ALIGN_BYTES)

    def clear(self) -> None:
        """Forget the memory; arrays that are still held keep theirs."""
        self._memory = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_memory": []}

    def _unused(self) -> np.ndarray | None:
        """Return memory that nothing else references. Forget what is too much, and what is referenced for long."""
        counted = list(zip(_references(self._memory), self._memory, strict=True))
        free = [memory for references, memory in counted if references <= _ALONE]
        used = [memory for references, memory in counted if references > _ALONE]
        # A consumer that keeps every batch must not make this list, and each search of it, ever longer.
        self._memory = [*used[-4 * self._keep :], *free[: self._keep]]
        return free[0] if free else None


def _references(memory: list[np.ndarray]) -> list[int]:
    return [sys.getrefcount(one) for one in memory]


_ALONE = _references([np.empty(0, np.uint8)])[0]
