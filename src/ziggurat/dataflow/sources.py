"""Sources that need no file: lists, arrays, iterables, generators, queues, synthetic data, other libraries' values."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.base import DataFlow, Datapoint, UnknownLengthError
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.errors import DataError, UsageError

__all__ = [
    "DataFromArrays",
    "DataFromGenerator",
    "DataFromIterable",
    "DataFromList",
    "DataFromQueue",
    "FakeData",
    "as_component",
    "as_datapoint",
]

_QueueClosed: tuple[type[Exception], ...] = tuple(filter(None, [getattr(queue, "ShutDown", None)]))  # Python 3.13


class DataFromList(IndexedFlow):
    """The datapoints of a list, or of anything with a length and numbered items.

    Args:
        lst: the datapoints. It is neither copied nor changed.
        shuffle: a new random order in every pass (as in Tensorpack, this is the default).
        on_error: what happens where an item cannot be read, as in a sequence that reads files: ``"raise"``,
            ``"skip"``, ``"log"``, or an ``ErrorPolicy``.
    """

    def __init__(
        self, lst: Sequence[Datapoint], shuffle: bool = True, *, on_error: OnError | ErrorPolicy = "raise"
    ) -> None:
        super().__init__(shuffle=shuffle)
        self.policy = ErrorPolicy.of(on_error)
        if not (hasattr(lst, "__len__") and hasattr(lst, "__getitem__")) or isinstance(lst, (dict, str, bytes)):
            raise UsageError(
                "`DataFromList` takes a list of datapoints, or a sequence.",
                received=type(lst).__name__,
                advice="Use `DataFromIterable` for other iterables.",
            )
        self.lst = lst

    def __len__(self) -> int:
        return len(self.lst)

    def datapoint(self, index: int) -> Datapoint:
        """Return item ``index`` itself, not a copy."""
        return self.lst[index]

    def read_many(self, indices: list[int]) -> list[Datapoint]:
        """Return many items."""
        lst = self.lst
        try:
            return [lst[index] for index in indices]
        except Exception:  # one by one, to find the item
            return super().read_many(indices)


class DataFromArrays(IndexedFlow):
    """The rows of arrays of equal length: datapoint ``i`` is ``[arrays[0][i], arrays[1][i], …]``, in new memory.

    Batches of it are gathered by index, many times faster than datapoint by datapoint.

    Args:
        arrays: one for each component, (N, …) each; memory-mapped ones are read where needed only.
        shuffle: a new random order in every pass.
    """

    def __init__(self, *arrays: Any, shuffle: bool = True) -> None:
        super().__init__(shuffle=shuffle)
        self.arrays = [array if isinstance(array, np.ndarray) else np.asarray(array) for array in arrays]
        shapes = [array.shape for array in self.arrays]
        if not shapes or any(not shape for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
            raise UsageError(
                "`DataFromArrays` takes one or more arrays with the same number of rows.",
                received=f"shapes {', '.join(map(str, shapes)) or 'of no array'}",
            )
        self.gathers = all(array.dtype.kind in "biufc" for array in self.arrays)

    def __len__(self) -> int:
        return len(self.arrays[0])

    def datapoint(self, index: int) -> list[Any]:
        """Return row ``index`` of each array: a copy, or a NumPy scalar."""
        return [array[index].copy() if array.ndim > 1 else array[index] for array in self.arrays]

    def gather(self, indices: np.ndarray) -> list[np.ndarray]:
        """Return the rows ``indices`` of each array."""
        return [array.take(indices, axis=0) for array in self.arrays]


class DataFromIterable(DataFlow):
    """The datapoints of an iterable, from its beginning in every pass.

    Args:
        iterable: any iterable. An iterator (such as a generator object) can be read in one pass only.

    Resuming iterates it again up to the position.
    """

    resumes_by_replay = True

    def __init__(self, iterable: Iterable[Datapoint]) -> None:
        self.iterable = iterable
        self._read = False

    def __len__(self) -> int:
        if not hasattr(self.iterable, "__len__"):
            raise UnknownLengthError(self)
        return len(self.iterable)  # pyright: ignore[reportArgumentType]

    def iterate(self) -> Iterator[Datapoint]:
        """Yield what the iterable yields."""
        if isinstance(self.iterable, Iterator):
            if self._read:
                raise DataError(
                    "An iterator can be read in one pass only, and every pass of a data flow begins anew.",
                    received=f"a second pass over a {type(self.iterable).__name__}",
                    advice="Give a list, or `DataFromGenerator` with a function that returns a new iterator.",
                )
            self._read = True
        yield from self.iterable


class DataFromGenerator(DataFromIterable):
    """The datapoints of a generator function, called anew for every pass; or of an iterable.

    Args:
        gen: a function without arguments that returns an iterable, or an iterable.

    Resuming runs it again up to the position. The length is that of an iterable which has one, and unknown otherwise.
    """

    def __init__(self, gen: Callable[[], Iterable[Datapoint]] | Iterable[Datapoint]) -> None:
        super().__init__(() if callable(gen) else gen)
        self._function = gen if callable(gen) else None

    def __len__(self) -> int:
        if self._function is not None:
            raise UnknownLengthError(self)
        return super().__len__()

    def iterate(self) -> Iterator[Datapoint]:
        """Yield what the function's iterable yields."""
        if self._function is None:
            yield from super().iterate()
        else:
            yield from self._function()


class DataFromQueue(DataFlow):
    """What comes out of a queue, until None comes or the queue is shut down.

    Args:
        queue: anything with a ``get()`` that waits.

    A resumed flow goes on with what the queue holds then: what was taken out is gone.
    """

    def __init__(self, queue: Any) -> None:
        self.queue = queue

    def children(self) -> Sequence[DataFlow]:
        """Return nothing: a queue is no flow."""
        return ()

    def iterate(self) -> Iterator[Datapoint]:
        """Yield what ``get()`` returns."""
        while True:
            try:
                point = self.queue.get()
            except _QueueClosed:
                return
            if point is None:
                return
            yield point


class FakeData(DataFlow):
    """Arrays of given shapes with uniform random values in ``[low, high)``.

    Args:
        shapes: shape of each component; ``[]`` is a scalar.
        size: number of datapoints in a pass.
        random: new values for every datapoint; otherwise every datapoint is a copy of the first.
        dtype: of all components, or a list with one for each.
        domain: ``(low, high)`` of all components, or a list with one for each. Integers stay below ``high``.
    """

    def __init__(
        self,
        shapes: Sequence[Sequence[int]],
        size: int = 1000,
        random: bool = True,
        dtype: Any = "float32",
        domain: Any = (0, 1),
    ) -> None:
        self.shapes = [tuple(shape) for shape in shapes]
        self._size = int(size)
        self.random = bool(random)
        self.dtypes = [np.dtype(one) for one in self._for_each(dtype, isinstance(dtype, (list, tuple)), "dtype")]
        self.domains = self._for_each(domain, isinstance(domain[0], (list, tuple)), "domain")

    def __len__(self) -> int:
        return self._size

    def children(self) -> Sequence[DataFlow]:
        """Return nothing: made-up data reads no other flow."""
        return ()

    def iterate(self) -> Iterator[list[Any]]:
        """Yield lists of arrays; what datapoint ``i`` holds depends on the seed, the pass and ``i`` only."""
        stream = self._ziggurat_stream()
        first = [] if self.random else self._draw(stream.seek(0))
        for index in range(self._ziggurat_resume_index, self._size):
            if self.random:
                yield self._draw(stream.seek(self._ziggurat_pass_index, index))
            else:
                yield [array.copy() for array in first]

    def _draw(self, rng: np.random.RandomState) -> list[np.ndarray]:
        columns = zip(self.shapes, self.dtypes, self.domains, strict=True)
        return [_uniform(rng, shape, dtype, low, high) for shape, dtype, (low, high) in columns]

    def _for_each(self, value: Any, is_list: bool, name: str) -> list[Any]:
        """Return one value a component."""
        values = list(value) if is_list else [value] * len(self.shapes)
        if len(values) != len(self.shapes):
            raise UsageError(f"`FakeData` got {len(values)} of `{name}` for {len(self.shapes)} shapes.")
        return values


def _uniform(rng: np.random.RandomState, shape: tuple[int, ...], dtype: np.dtype, low: Any, high: Any) -> np.ndarray:
    """Return uniform values in ``[low, high)``; an empty interval gives ``low``."""
    if dtype.kind in "iu":
        top = max(int(np.ceil(high)), int(low) + 1)
        return np.asarray(rng.randint(int(low), top, size=shape, dtype=dtype.type))
    values = np.asarray(rng.random_sample(shape)) * (high - low) + low
    return np.asarray(values, dtype=dtype)


def as_datapoint(value: Any) -> Datapoint:
    """Return what another library yields as a datapoint: a dict stays one, all else becomes a list of components."""
    if isinstance(value, dict):
        return {key: as_component(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_component(item) for item in value]
    return [as_component(value)]


def as_component(value: Any) -> Any:
    """Return tensors as arrays, Pillow's images as (H, W, C) uint8, and anything else as it is."""
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor of PyTorch
        return value.detach().cpu().numpy()[()]  # a tensor without dimensions becomes a scalar
    if hasattr(value, "getbands") and hasattr(value, "convert"):  # an image of Pillow
        gray = value.mode in ("1", "L")
        pixels = np.array(value.convert("L" if gray else "RGB"))
        return pixels[:, :, None] if gray else pixels
    if isinstance(value, dict):
        return {key: as_component(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_component(item) for item in value]
    return value
