"""Input sources: how batches get from Python or from TensorFlow into the towers of a graph.

A source is set up once with the specifications of the inputs, and asked for tensors once a tower. What it feeds by
hand (``fed``), the program takes from a *feed* of the engine with every step; a source of pure TensorFlow feeds
nothing.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow.adapting import method_of
from ziggurat.dataflow.base import UnknownLengthError
from ziggurat.engine.feed import BatchCycle, DirectFeed, Feed
from ziggurat.errors import ConfigurationError, DataError, StateError

__all__ = [
    "FeedInput",
    "FlowInput",
    "InputSource",
    "NothingFed",
    "PlaceholderInput",
    "TowerBatches",
    "check_components",
    "input_placeholder",
    "more_components_left_out",
    "reason_of_end",
    "remap_input_source",
    "shape_text",
    "source_of",
    "steps_taken",
]

_ARRAY: Final = np.ndarray
_PASS_STEPS: Final = 64
"""Steps after which the position of the data is noted: where a wait for a batch is broken off, the source begins there
again."""


_sources: WeakKeyDictionary[Any, list[InputSource]] = WeakKeyDictionary()


def source_of(graph: Any) -> InputSource | None:
    """Return the source that a graph's towers were built with, for trainers that do not say; None where there is none.

    Args:
        graph: the graph.
    """
    return next((each for each in _sources.get(graph, []) if each.tower_count), None)


class InputSource(ABC):
    """Base of all input sources."""

    def __init__(self) -> None:
        self.signature: list[Any] = []
        """The ``tf.TensorSpec`` of each input; there after ``setup``."""
        self.fed: list[Any] = []
        """Placeholders that every step feeds, tower after tower."""
        self.tower_count = 0
        """How often tensors were asked for."""
        self.given: list[Any] = []
        """The tensors of all towers: an operation that depends on one of them reads the batch."""
        self._is_set_up = False
        self._own_names: Sequence[str] | None = None
        self._whole_signature: list[Any] = []

    # ---- what a source implements

    def _setup(self, input_signature: Sequence[Any]) -> None:
        """Prepare what must exist once; the graph is open."""

    @abstractmethod
    def _get_input_tensors(self) -> list[Any]:
        """Return one tensor an input, for another tower."""

    def _get_callbacks(self) -> list[Any]:
        """Return the callbacks that the source needs."""
        return []

    def _size(self) -> int:
        raise UnknownLengthError(self)

    def batches(self) -> Iterable[Any]:
        """Return what the loop takes its batches from: for each step, one array for each of ``fed``.

        It may have ``state()``, ``load_state()`` and ``close()``. A source that feeds nothing returns an endless
        iterable of empty lists.
        """
        return NothingFed()

    def connect(self, batches: BatchCycle, session: Any) -> Feed:
        """Return the feed that hands the arrays of ``fed`` to each step.

        Args:
            batches: endless, over ``batches()``.
            session: the open session, for sources that prepare on their device.
        """
        return DirectFeed(batches)

    def step_operations(self) -> Sequence[Any]:
        """Return operations to run along with every step, such as one that lets go of its batch."""
        return ()

    def error_behind(self, error: BaseException) -> BaseException | None:
        """Return the error of a data flow that TensorFlow replaced by one of its own; None where it is none of these.

        Args:
            error: what a session raised.
        """
        return None

    # ---- what trainers call

    def setup(self, input_signature: Sequence[Any]) -> list[Any]:
        """Set the source up, once; return the callbacks that it needs.

        Raises:
            StateError: where it was set up before.
        """
        if self._is_set_up:
            raise StateError(
                "An input source serves one training.",
                received=f"a second `setup` of {type(self).__name__}",
                advice="Make another one over the same data flow.",
            )
        self._whole_signature = list(input_signature)
        self.signature = self._own_signature()
        self._is_set_up = True
        _sources.setdefault(tf.get_default_graph(), []).append(self)
        self._setup(self.signature)
        return self.get_callbacks()

    def setup_done(self) -> bool:
        """Return whether it was set up."""
        return self._is_set_up

    def get_input_tensors(self) -> list[Any]:
        """Return one tensor an input for one tower; each call is of another batch, as each tower has its own."""
        if not self._is_set_up:
            raise StateError(
                "An input source is set up before it gives tensors.",
                received=type(self).__name__,
                advice="Call `setup(input_signature)`.",
            )
        self.tower_count += 1
        tensors = self._get_input_tensors()
        self.given += tensors
        if self._own_names is None:
            return tensors
        found = dict(zip((spec.name for spec in self.signature), tensors, strict=True))
        is_first = self.tower_count == 1
        return [
            found[spec.name] if spec.name in found else input_placeholder(spec, reused=is_first)
            for spec in self._whole_signature
        ]

    def get_callbacks(self) -> list[Any]:
        """Return the callbacks that the source needs."""
        return self._get_callbacks()

    def reset_state(self) -> None:
        """Begin the data again, as before an evaluation."""

    def size(self) -> int:
        """Return the batches in a pass.

        Raises:
            UnknownLengthError: where it is not known.
        """
        return self._size()

    def __len__(self) -> int:
        return self.size()

    def cached_name_scope(self) -> AbstractContextManager[Any]:
        """Return the name scope of the source's own operations, the same with each call."""
        return tf.get_default_graph().name_scope(f"{type(self).__name__}/")

    def _own_signature(self) -> list[Any]:
        """Return the inputs that the source gives, in the order of its components."""
        if self._own_names is None:
            return self._whole_signature
        by_name = {spec.name: spec for spec in self._whole_signature}
        unknown = [name for name in self._own_names if name not in by_name]
        if unknown:
            raise ConfigurationError(
                "A source gives inputs of the model.",
                received=", ".join(unknown),
                advice=f"The model has: {', '.join(by_name)}.",
            )
        return [by_name[name] for name in self._own_names]


_Source = TypeVar("_Source", bound=InputSource)


def remap_input_source(input: _Source, names: Sequence[str]) -> _Source:  # noqa: A002 - Tensorpack's name
    """Return a source of the same type that gives some inputs of the model only; the others are placeholders.

    Args:
        input: a source that was not set up.
        names: for each of its components, the input of the model that it is.

    Raises:
        StateError: where it was set up before.
        ConfigurationError: where a name is there twice; in ``setup``, where the model has no such input.
    """
    if input.setup_done():
        raise StateError(
            f"The {type(input).__name__} is remapped after it was set up.", advice="Remap it before `setup`."
        )
    if len(set(names)) != len(names):
        raise ConfigurationError("Names of inputs differ.", received=", ".join(names), advice="Name each input once.")
    source = copy.copy(input)
    source.fed, source.given = [], []
    source._own_names = list(names)
    return source


_leaves_more_out = False


@contextmanager
def more_components_left_out() -> Iterator[None]:
    """Let batches have more components than the model has inputs, inside: the first ones count."""
    global _leaves_more_out
    before, _leaves_more_out = _leaves_more_out, True
    try:
        yield
    finally:
        _leaves_more_out = before


def check_components(what: str, components: Any, signature: Sequence[Any]) -> list[Any]:
    """Return the parts of a batch, or of what describes one, in the order of the inputs.

    Args:
        what: where they are from, for errors: ``a batch``.
        components: a list or a tuple with one part an input, a mapping by names, or the only part.
        signature: a ``tf.TensorSpec`` for each input.

    Raises:
        DataError: where there are more or fewer, or a name is missing.
    """
    names = [spec.name for spec in signature]
    if isinstance(components, Mapping):
        missing = [name for name in names if name not in components]
        if missing:
            raise DataError(
                f"{what} has {', '.join(map(str, components)) or 'nothing'}, and the inputs of this model "
                f"are {', '.join(names)}.",
                advice=f"Give it {', '.join(missing)}.",
            )
        return [components[name] for name in names]
    parts = list(components) if isinstance(components, list | tuple) else [components]
    if _leaves_more_out:
        parts = parts[: len(names)]
    if len(parts) != len(names):
        raise DataError(
            f"{what} has {len(parts)} component(s), and the inputs of this model are {', '.join(names)}.",
            advice="Give the data one component for each input.",
        )
    return parts


class NothingFed:
    """Endless empty batches, with a count as position: of a source whose batches are made in the graph."""

    def __init__(self) -> None:
        self._count = 0

    def __iter__(self) -> Iterator[list[Any]]:
        while True:
            self._count += 1
            yield []

    def state(self) -> Any:
        """Return how many there were."""
        return {"count": self._count}

    def load_state(self, state: Any) -> None:
        """Go on behind so many."""
        self._count = state["count"]


def reason_of_end(error: Any) -> str:
    """Return why a training is complete: a ``tf.errors.OutOfRangeError`` of an input that TensorFlow itself reads."""
    return f"the input has ended ({(str(error.message or '') or 'out of range').splitlines()[0]})"


def steps_taken(batches: BatchCycle) -> int:
    """Return the steps before the position of batches that are all ``NothingFed``."""
    state = batches.state()
    return state["source"]["count"] + state.get("skip", 0)


class PlaceholderInput(InputSource):
    """Placeholders and nothing else: of predictors, and of loops that feed by themselves."""

    def _get_input_tensors(self) -> list[Any]:
        return [input_placeholder(spec, reused=self.tower_count == 1) for spec in self.signature]


class FlowInput(InputSource):
    """Base of sources that feed the batches of a data flow.

    Args:
        ds: a data flow, or any iterable of batches that can be iterated again. A batch is a list with one component an
            input, or a mapping by the names of the inputs.
    """

    def __init__(self, ds: Iterable[Any]) -> None:
        super().__init__()
        self.ds = ds

    def _size(self) -> int:
        try:
            return len(self.ds)  # pyright: ignore[reportArgumentType]
        except (TypeError, NotImplementedError) as error:
            raise UnknownLengthError(self) from error

    def _get_input_tensors(self) -> list[Any]:
        placeholders = [input_placeholder(spec, reused=self.tower_count == 1) for spec in self.signature]
        self.fed += placeholders
        return placeholders

    def batches(self) -> Iterable[Any]:
        """Return endless steps' arrays: one batch a tower, checked and converted."""
        return TowerBatches(self.ds, self.signature, max(1, self.tower_count))


class FeedInput(FlowInput):
    """Feeds each batch when its step needs it: nothing is prepared ahead.

    Args:
        ds: the batches.
        infinite: taken for Tensorpack's programs: a training repeats the flow, and ``InferenceRunner`` reads one pass,
            whatever it is.
    """

    def __init__(self, ds: Iterable[Any], infinite: bool = True) -> None:
        super().__init__(ds)


class TowerBatches:
    """Endless arrays for the towers of a step: one batch a tower, each component checked and converted.

    The passes of the flow are joined: a step may take its first batch from the end of one and the second from the next.

    Args:
        ds: the flow.
        signature: a ``tf.TensorSpec`` for each input.
        towers: batches in a step.
    """

    def __init__(self, ds: Iterable[Any], signature: Sequence[Any], towers: int) -> None:
        reset = method_of(ds, "reset_state")
        if reset is not None:
            reset()
        self._cycle = BatchCycle(ds)
        self._signature = list(signature)
        self._inputs = [FedArray(spec) for spec in signature]
        self._towers = towers

    def __iter__(self) -> Iterator[list[np.ndarray]]:
        """Return the steps of a pass: some of them, for the passes of the flow are joined anyway."""
        take, inputs, count = iter(self._cycle).__next__, self._inputs, len(self._inputs)
        is_alone = self._towers == 1
        for _ in range(_PASS_STEPS):
            batch = take()
            if is_alone and type(batch) is list and len(batch) == count:
                # Nearly every batch, and written out: between two steps the processor's caches are cold.
                for each, part in zip(inputs, batch, strict=True):
                    if type(part) is not _ARRAY or part.dtype is not each.dtype or part.shape != each.seen:
                        break
                else:
                    yield batch
                    continue
            arrays = self._arrays(batch)
            for _ in range(self._towers - 1):
                arrays += self._arrays(take())
            yield arrays

    def state(self) -> Any:
        """Return the position behind the last whole step."""
        return self._cycle.state()

    def load_state(self, state: Any) -> None:
        """Go on where ``state()`` was called."""
        self._cycle.load_state(state)

    def close(self) -> None:
        """Free the flow."""
        self._cycle.close()

    def _arrays(self, batch: Any) -> list[np.ndarray]:
        inputs = self._inputs
        parts = batch if type(batch) is list and len(batch) == len(inputs) else None
        if parts is None:
            parts = check_components("a batch", batch, self._signature)
        return [each.array(part) for each, part in zip(inputs, parts, strict=True)]


class FedArray:
    """What an array must be to be fed to an input.

    Args:
        spec: the ``tf.TensorSpec`` of the input.

    Attributes:
        dtype: of what is fed.
        seen: shape of the array before, which fits; None at first.
    """

    def __init__(self, spec: Any) -> None:
        self._name = spec.name
        self.dtype = np.dtype(spec.dtype.as_numpy_dtype)
        self._is_text = spec.dtype == tf.string
        self._shape = spec.shape
        self.seen: tuple[int, ...] | None = None

    def array(self, part: Any) -> np.ndarray:
        """Return a component as it is fed.

        Raises:
            DataError: where its shape is another, or its values do not convert.
        """
        try:
            array = np.asarray(part, None if self._is_text else self.dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(
                f"A {type(part).__name__} cannot be fed to the input `{self._name}` of type {self.dtype}: "
                f"{str(error).rstrip('.')}.",
                advice="Give it numbers, with rows of one shape.",
            ) from error
        if not self._shape.is_compatible_with(array.shape):
            raise DataError(
                f"An array of shape {array.shape} does not fit the input `{self._name}` of shape "
                f"{shape_text(self._shape)}.",
                advice="Batch and resize the data to that shape, or open a dimension by None in its `tf.TensorSpec`.",
            )
        self.seen = array.shape
        return array


def shape_text(shape: Any) -> str:
    """Return a ``tf.TensorShape`` as it is written in a ``tf.TensorSpec``: None for open sizes."""
    return "unknown" if shape.rank is None else str(tuple(shape.as_list()))


def input_placeholder(spec: Any, *, reused: bool) -> Any:
    """Return a placeholder for an input.

    Args:
        spec: its ``tf.TensorSpec``.
        reused: take the placeholder that the graph has under that name, where it has one.
    """
    graph = tf.get_default_graph()
    if reused:
        try:
            found = graph.get_tensor_by_name(f"{spec.name}:0")
        except (KeyError, ValueError):
            found = None
        if found is not None:
            if found.op.type != "Placeholder" or found.dtype.base_dtype != spec.dtype:
                raise ConfigurationError(
                    f"The name of the input `{spec.name}` is free in the graph, or that of its placeholder.",
                    received=f"{found.op.type} of type {found.dtype.name}",
                    advice="Give the input another name.",
                )
            return found
    # Outside of the scopes of towers: `image:0` is the first tower's, `image_1:0` that of the second.
    with graph.name_scope(None):
        return tf.placeholder(spec.dtype, spec.shape, name=spec.name)
