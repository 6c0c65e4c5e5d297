"""The base classes of data flows: passes, positions, seeds, exact resume, bulk reading, and time per stage.

A flow is iterated once a *pass*. It counts what it delivers, so that ``state()`` can say where it stands and
``load_state()`` can put another object of the same shape there: the next ``iter()`` goes on after the last datapoint
that was delivered. A stage implements ``iterate()``; a user's class may define ``__iter__`` or ``get_data`` as a plain
generator and gets the rest for nothing.

``flow.read()`` begins a pass as ``iter(flow)`` does and returns a ``Reader``: the same datapoints as one by one, at a
fraction of the cost. A stage that can produce many datapoints at once implements ``bulk()``; every other stage is read
one by one behind the same interface.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Self

import numpy as np

from ziggurat.dataflow.adapting import OpenProperty, adapt, reserved
from ziggurat.dataflow.flow_state import (
    FlowState,
    Position,
    Resumable,
    StageContractError,
    StageErrors,
    StageStats,
    UnknownLengthError,
)
from ziggurat.dataflow.random import RandomStream, fresh_seed

__all__ = [
    "Bulk",
    "DataFlow",
    "Datapoint",
    "ProxyDataFlow",
    "RNGDataFlow",
    "Reader",
    "StageErrors",
    "StageStats",
    "UnknownLengthError",
]

Datapoint = Any
"""A list of components; a tuple or a dict of components is accepted wherever a list is."""


class DataFlow(Resumable, ABC):
    """Something that yields datapoints, pass after pass.

    Subclasses of this package implement ``iterate()``. A user's subclass may define ``__iter__`` (or ``get_data``) as a
    generator instead, as in Tensorpack; it is then resumed by running the pass again up to the position.

    All other names of such a class are its own: its ``seed``, ``children`` or ``prepare()`` mean nothing here.

    A pass that is broken off is over: the next ``iter()`` begins a new one. A flow has one pass at a time.
    """

    _ziggurat_life: FlowState

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        self = super().__new__(cls)
        # Here and not in `__init__`, which a user's class need not call.
        self._ziggurat_life = FlowState()
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        adapt(cls)
        if "_ziggurat_iterate" in cls.__dict__ and "_ziggurat_bulk" not in cls.__dict__:
            cls._ziggurat_bulk = DataFlow.bulk  # an inherited one would bypass the new `iterate`

    # ---- what a stage implements

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints of pass ``pass_index``, from number ``resume_index`` on (0 where it replays)."""
        raise StageContractError(self)

    def children(self) -> Sequence[DataFlow]:
        """Return the flows that this one reads: those that its attributes hold, alone or in a list."""
        found: list[DataFlow] = []
        for value in vars(self).values():
            if isinstance(value, DataFlow):
                found.append(value)
            elif isinstance(value, (list, tuple)) and value and isinstance(value[0], DataFlow):
                found.extend(item for item in value if isinstance(item, DataFlow))
        return found

    def prepare(self) -> None:
        """Open files and the like; called once in every process that uses the flow, before its first pass there."""

    def bulk(self) -> Bulk | None:
        """Begin the pass like ``iterate()``, for many datapoints at a time; None where the stage has no such way."""
        return None

    def __len__(self) -> int:
        """Return the number of datapoints in a pass.

        Raises:
            UnknownLengthError: where it is not known.
        """
        raise UnknownLengthError(self)

    # ---- what a user calls

    def __iter__(self) -> Iterator[Datapoint]:
        """Begin the next pass, or go on where ``load_state()`` pointed."""
        life = self._ziggurat_life
        if life.inside:  # super().__iter__() in a user's own generator
            above: Any = super(life.inside[-1], self)
            return above._ziggurat_iterate()
        position = self._ziggurat_begin()
        return self._ziggurat_deliver(position, position.delivered if self._ziggurat_resumes_by_replay else 0)

    def read(self) -> Reader:
        """Begin the next pass (or go on) as ``iter()`` does, to be read many datapoints at a time."""
        position = self._ziggurat_begin()
        bulk = None if self._ziggurat_resumes_by_replay else self._ziggurat_bulk()
        items = self._ziggurat_deliver(position, position.delivered if self._ziggurat_resumes_by_replay else 0)
        return Reader(self._ziggurat_life, position, bulk, items)

    def get_data(self) -> Iterator[Datapoint]:
        """Return ``iter(self)``: the name of the tutorial."""
        return iter(self)

    def size(self) -> int:
        """Return ``len(self)``: the name of the tutorial."""
        return len(self)

    def reset_state(self) -> None:
        """Prepare the flow in the process that uses it. Iterating does it by itself; calling it again does nothing."""
        life = self._ziggurat_life
        if life.ready:
            return
        if life.seed is None:
            self._ziggurat_seed(fresh_seed())
        life.prepared_by = os.getpid()
        self._ziggurat_prepare()
        for child in self._ziggurat_children():
            child.reset_state()

    def seed(self, seed: int) -> Self:
        """Let ``seed`` decide every random number of the pipeline that ends here; return self.

        Call it on the last stage, before the first pass.
        """
        self._ziggurat_assign_seed(int(seed), ())
        return self

    def stats(self) -> list[StageStats]:
        """Return the time spent in each stage so far, this stage first."""
        life = self._ziggurat_life
        children = self._ziggurat_children()
        own_s = max(0.0, life.total_s - sum(child._ziggurat_life.total_s for child in children))
        mine = StageStats(type(self).__name__, life.path, life.datapoints, life.total_s, own_s)
        return [mine, *(row for child in children for row in child._ziggurat_stats())]

    def error_counts(self) -> list[StageErrors]:
        """Return what the stages dropped because of errors, for those that dropped anything, this stage first."""
        rows = [row for child in self._ziggurat_children() for row in child._ziggurat_error_counts()]
        counts = self._ziggurat_policy.counts()
        if not counts.total:
            return rows
        return [StageErrors(type(self).__name__, self._ziggurat_life.path, counts), *rows]

    def close(self) -> None:
        """Free workers, files and memory at once; the flow may be iterated again afterwards."""
        for child in self._ziggurat_children():
            child._ziggurat_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ziggurat_close()

    # ---- for stages

    @OpenProperty
    def pass_index(self) -> int:
        """Number of the newest pass, from 0; -1 before the first."""
        return self._ziggurat_life.position.pass_index

    @OpenProperty
    def delivered(self) -> int:
        """How many datapoints the newest pass has delivered; the number of the next one."""
        return self._ziggurat_life.position.delivered

    @OpenProperty
    def resume_index(self) -> int:
        """Number of the datapoint at which ``iterate()`` starts."""
        return 0 if self._ziggurat_resumes_by_replay else self._ziggurat_life.position.delivered

    def stream(self, *purpose: int | str) -> RandomStream:
        """Return a new stream of random numbers that belongs to this stage (and purpose)."""
        if self._ziggurat_life.seed is None:
            self._ziggurat_seed(fresh_seed())
        seed = self._ziggurat_life.seed
        assert seed is not None
        path = self._ziggurat_life.path
        return RandomStream(seed, (*path, "for", *purpose) if purpose else path)

    # ---- inside

    def _ziggurat_begin(self) -> Position:
        """Make the next pass, or the loaded one, the newest."""
        life = self._ziggurat_life
        if not life.ready:
            if life.seed is None:
                self._ziggurat_seed(fresh_seed())
            self.reset_state()
            life.prepared_by = os.getpid()  # also where a user's `reset_state` does not call the base's
        if life.loaded is not None:
            position, life.loaded = life.loaded, None
        else:
            position = Position(life.position.pass_index + 1, ended=False)
            if not self._ziggurat_spans_passes:
                self._ziggurat_abandon_children()
            if self._ziggurat_resumes_by_replay:
                position.children_at_start = self._ziggurat_children_state()
        life.position = position
        self._ziggurat_begin_pass(position)
        return position

    def _ziggurat_begin_pass(self, position: Position) -> None:
        """Do what a pass needs before its first datapoint."""

    def _ziggurat_deliver(self, position: Position, unseen: int) -> Iterator[Datapoint]:
        life = self._ziggurat_life
        # The last stage of a pipeline makes and counts each datapoint under its lock; the others are inside of that.
        lock = threading.RLock() if life.path else life.lock
        clock = time.perf_counter
        items = self._ziggurat_iterate()
        try:
            while True:
                with lock:
                    if life.position is not position:
                        life.check_newest(position)
                    began = clock()
                    try:
                        item = next(items)
                    except StopIteration:
                        position.children_if_over = None
                        position.ended = True
                        return
                    finally:
                        life.total_s += clock() - began
                    if unseen:
                        unseen -= 1
                        continue
                    position.children_if_over = None
                    # Counted before the yield: a state that is taken between two datapoints includes this one.
                    position.delivered += 1
                    life.datapoints += 1
                yield item
        finally:
            _close(items)

    # ---- the reserved names, by which the package calls a flow, see `adapting`

    _ziggurat_is_stage: bool | None = None
    _ziggurat_iterate = iterate
    _ziggurat_children = children
    _ziggurat_prepare = prepare
    _ziggurat_bulk = bulk
    _ziggurat_read = read
    _ziggurat_seed = seed
    _ziggurat_stats = stats
    _ziggurat_error_counts = error_counts
    _ziggurat_close = close
    _ziggurat_stream = stream
    _ziggurat_pass_index = reserved(pass_index)
    _ziggurat_delivered = reserved(delivered)
    _ziggurat_resume_index = reserved(resume_index)


class ProxyDataFlow(DataFlow):
    """A flow that reads one other flow, ``ds``, and passes everything on unless a subclass says otherwise."""

    def __init__(self, ds: DataFlow) -> None:
        self.ds = ds

    def children(self) -> Sequence[DataFlow]:
        """Return the flow that is read."""
        return (self.ds,)

    def __len__(self) -> int:
        """Return the length of the flow that is read."""
        return len(self.ds)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield what the other flow yields."""
        yield from self.ds


class RNGDataFlow(DataFlow):
    """A flow with random numbers of its own, ``rng``: the same ones in every pass with the same number and seed."""

    _ziggurat_own_stream: RandomStream | None = None
    _ziggurat_own_rng: Any = None

    @property
    def rng(self) -> np.random.RandomState:
        """The generator; at the start of a pass it stands where seed, stage and pass put it.

        A generator that is assigned instead is used as it is, neither seeded nor resumed.
        """
        if self._ziggurat_own_rng is not None:
            return self._ziggurat_own_rng
        if self._ziggurat_own_stream is None:
            self._ziggurat_own_stream = self._ziggurat_stream()
        return self._ziggurat_own_stream.rng

    @rng.setter
    def rng(self, generator: Any) -> None:
        self._ziggurat_own_rng = generator

    def _ziggurat_begin_pass(self, position: Position) -> None:
        if self._ziggurat_own_stream is None:
            self._ziggurat_own_stream = self._ziggurat_stream()
        self._ziggurat_own_stream.seek(position.pass_index)

    def _ziggurat_assign_seed(self, seed: int, path: tuple[int, ...]) -> None:
        super()._ziggurat_assign_seed(seed, path)
        self._ziggurat_own_stream = None


def _close(items: Any) -> None:
    close = getattr(items, "close", None)
    if close is not None:
        close()


class Bulk:
    """One pass of a stage, made many datapoints at a time; it starts at the stage's ``resume_index``."""

    stacks: bool = False
    """True where ``batch()`` can be used."""

    fresh: bool = False
    """True where the datapoints of ``points()`` are lists without other references, which may be changed."""

    def points(self, count: int) -> list[Any]:
        """Return the next ``count`` datapoints; fewer only where the pass ends."""
        raise NotImplementedError

    def batch(self, count: int) -> tuple[int, Any]:
        """Return how many datapoints were left (at most ``count``), and their components stacked on a new axis 0."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop reading."""


class Reader:
    """Reads one pass of a flow, and counts in the flow what it hands out.

    Use it in ``with``, or call ``close()``.
    """

    def __init__(self, life: FlowState, position: Position, bulk: Bulk | None, items: Iterator[Any]) -> None:
        self._life = life
        self._position = position
        self._bulk = bulk
        self._items = items

    @property
    def stacks(self) -> bool:
        """Tell whether ``take_batch()`` can be used."""
        return self._bulk is not None and self._bulk.stacks

    @property
    def fresh(self) -> bool:
        """Tell whether the datapoints of ``take()`` are lists without other references."""
        return self._bulk is not None and self._bulk.fresh

    def take(self, count: int) -> list[Any]:
        """Return the next ``count`` datapoints; fewer only where the pass ends."""
        if self._bulk is None:
            return list(islice(self._items, count))
        self._life.check_newest(self._position)
        with self._life.lock:
            began = time.perf_counter()
            try:
                points = self._bulk.points(count)
            finally:
                self._life.total_s += time.perf_counter() - began
            self._count(len(points), count)
        return points

    def take_batch(self, count: int) -> tuple[int, Any]:
        """Return the number of datapoints in the next batch (fewer than ``count`` only at the end), and the batch."""
        assert self._bulk is not None
        life = self._life
        life.check_newest(self._position)
        with life.lock:
            began = time.perf_counter()
            try:
                taken, batch = self._bulk.batch(count)
            finally:
                life.total_s += time.perf_counter() - began
            self._count(taken, count)
        return taken, batch

    def close(self) -> None:
        """Stop reading; the pass is broken off unless it came to its end."""
        if self._bulk is not None:
            self._bulk.close()
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _count(self, taken: int, wanted: int) -> None:
        self._position.delivered += taken
        self._life.datapoints += taken
        if taken < wanted:
            self._position.ended = True
