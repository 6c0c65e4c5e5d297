"""Owns what every data flow is: passes, positions, seeds, exact resume, and time per stage.

A flow is iterated once a *pass*. It counts what it delivers, so that ``state()`` can say where it stands and
``load_state()`` can put another object of the same shape there: the next ``iter()`` goes on after the last datapoint
that was delivered. A stage implements ``iterate()``; a user's class may define ``__iter__`` or ``get_data`` as a plain
generator and gets the rest for nothing.
"""

from __future__ import annotations

import time
from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from ziggurat.dataflow.random import RandomStream, fresh_seed
from ziggurat.errors import DataError, ZigguratError

__all__ = ["DataFlow", "Datapoint", "ProxyDataFlow", "RNGDataFlow", "StageStats", "UnknownLengthError"]

Datapoint = Any
"""A list of components; a tuple or a dict of components is accepted wherever a list is."""


class UnknownLengthError(DataError, TypeError, NotImplementedError):
    """A flow cannot tell how many datapoints a pass has.

    It is a ``TypeError``, so that ``list(flow)`` works, and a ``NotImplementedError``, which Tensorpack's users catch.
    """

    code = "unknown_length"

    def __init__(self, flow: object) -> None:
        super().__init__(
            f"`len()` needs a data flow of known length; {type(flow).__name__} has none.",
            advice="Give the length where it is needed, or define `__len__`.",
        )


@dataclass(frozen=True)
class StageStats:
    """Time spent in one stage of a pipeline.

    Args:
        stage: class name of the stage.
        path: its place, from the root (the end of the pipeline) down.
        datapoints: how many it delivered.
        total_s: seconds that its consumer waited for it, its own children included.
        own_s: the same without its children.
    """

    stage: str
    path: tuple[int, ...]
    datapoints: int
    total_s: float
    own_s: float


@dataclass
class _Position:
    """Where one pass stands."""

    pass_index: int = -1
    delivered: int = 0
    ended: bool = True
    children_at_start: list[Any] = field(default_factory=list)


@dataclass
class _Life:
    """What a flow knows of itself; made before ``__init__``, which users' classes need not call."""

    position: _Position = field(default_factory=_Position)
    loaded: _Position | None = None
    ready: bool = False
    seed: int | None = None
    path: tuple[int, ...] = ()
    datapoints: int = 0
    total_s: float = 0.0
    inside: list[type[DataFlow]] = field(default_factory=list)


class DataFlow(ABC):
    """Something that yields datapoints, pass after pass.

    Subclasses of this package implement ``iterate()``. A user's subclass may define ``__iter__`` (or ``get_data``) as a
    generator instead, as in Tensorpack; it is then resumed by running the pass again up to the position.
    """

    resumes_by_replay: ClassVar[bool] = False
    """True where the stage cannot start in mid-pass: it is run again from the start of the pass, unseen."""

    spans_passes: ClassVar[bool] = False
    """True where a new pass of this stage goes on in the middle of a pass of its children."""

    _life: _Life

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        self = super().__new__(cls)
        self._life = _Life()
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "__iter__" in own or "get_data" in own:
            original = own.get("__iter__") or own["get_data"]
            cls.iterate = _adapted(cls, original)
            for name in ("__iter__", "get_data"):
                if name in own:
                    delattr(cls, name)
            if "resumes_by_replay" not in own:
                cls.resumes_by_replay = True
        if "size" in own and "__len__" not in own:
            cls.__len__ = own["size"]

    # ---- what a stage implements

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints of pass ``pass_index``, from number ``resume_index`` on (0 where it replays)."""
        raise StageContractError(self)

    def children(self) -> Sequence[DataFlow]:
        """Return the flows that this one reads."""
        return ()

    def stage_state(self) -> Any:
        """Return what the stage must remember beside its position, as JSON values."""
        return None

    def load_stage_state(self, state: Any) -> None:
        """Take back what ``stage_state()`` gave."""

    def __len__(self) -> int:
        """Return the number of datapoints in a pass.

        Raises:
            UnknownLengthError: where it is not known.
        """
        raise UnknownLengthError(self)

    # ---- what a user calls

    def __iter__(self) -> Iterator[Datapoint]:
        """Begin the next pass, or go on where ``load_state()`` pointed."""
        life = self._life
        if life.inside:  # super().__iter__() in a user's own generator
            return super(life.inside[-1], self).iterate()
        self.reset_state()
        if life.loaded is not None:
            position, life.loaded = life.loaded, None
        else:
            position = _Position(life.position.pass_index + 1, ended=False)
            if self.resumes_by_replay:
                position.children_at_start = [child.state() for child in self.children()]
        life.position = position
        return self._deliver(position, position.delivered if self.resumes_by_replay else 0)

    def get_data(self) -> Iterator[Datapoint]:
        """Return ``iter(self)``: the name of the tutorial."""
        return iter(self)

    def size(self) -> int:
        """Return ``len(self)``: the name of the tutorial."""
        return len(self)

    def reset_state(self) -> None:
        """Prepare the flow in the process that uses it. Iterating does it by itself; calling it again does nothing."""
        life = self._life
        if life.ready:
            return
        if life.seed is None:
            self.seed(fresh_seed())
        life.ready = True
        for child in self.children():
            child.reset_state()

    def seed(self, seed: int) -> Self:
        """Let ``seed`` decide every random number of the pipeline that ends here; return self.

        Call it on the last stage, before the first pass.
        """
        self._assign_seed(int(seed), ())
        return self

    def state(self) -> dict[str, Any]:
        """Return where the newest pass stands, as JSON values: after the last datapoint that was delivered."""
        life = self._life
        position = life.loaded or life.position
        replays = self.resumes_by_replay and not position.ended
        return {
            "stage": type(self).__name__,
            "seed": life.seed,
            "pass": position.pass_index,
            "delivered": position.delivered,
            "ended": position.ended,
            "own": self.stage_state(),
            "children": position.children_at_start if replays else [child.state() for child in self.children()],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Let the next ``iter()`` go on where ``state()`` was called on a flow of the same shape.

        Raises:
            DataError: where the state is of another pipeline.
        """
        children = self.children()
        if state["stage"] != type(self).__name__ or len(state["children"]) != len(children):
            raise DataError(
                "A data flow takes the state of a pipeline of the same shape only.",
                received=f"{state['stage']} with {len(state['children'])} children for "
                f"{type(self).__name__} with {len(children)}",
                advice="Build the pipeline as it was when the state was saved, or start its data anew.",
            )
        life = self._life
        if not life.path and state["seed"] is not None:
            self._assign_seed(state["seed"], ())
        ended = bool(state["ended"])
        position = _Position(state["pass"], state["delivered"], ended, list(state["children"]))
        life.loaded = None if ended else position
        life.position = position
        for child, child_state in zip(children, state["children"], strict=True):
            # A pass of the parent that ended leaves no pass of a child half-way, unless the stage says so.
            child.load_state(child_state if self.spans_passes or not ended else {**child_state, "ended": True})
        self.load_stage_state(state["own"])

    def stats(self) -> list[StageStats]:
        """Return the time spent in each stage so far, this stage first."""
        life = self._life
        children = self.children()
        own_s = max(0.0, life.total_s - sum(child._life.total_s for child in children))
        mine = StageStats(type(self).__name__, life.path, life.datapoints, life.total_s, own_s)
        return [mine, *(row for child in children for row in child.stats())]

    def close(self) -> None:
        """Free workers, files and memory at once; the flow may be iterated again afterwards."""
        for child in self.children():
            child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # ---- for stages

    @property
    def pass_index(self) -> int:
        """Number of the newest pass, from 0; -1 before the first."""
        return self._life.position.pass_index

    @property
    def delivered(self) -> int:
        """How many datapoints the newest pass has delivered; the number of the next one."""
        return self._life.position.delivered

    @property
    def resume_index(self) -> int:
        """Number of the datapoint at which ``iterate()`` starts."""
        return 0 if self.resumes_by_replay else self._life.position.delivered

    def stream(self, *purpose: int | str) -> RandomStream:
        """Return a new stream of random numbers that belongs to this stage (and purpose)."""
        self.reset_state()
        seed = self._life.seed
        assert seed is not None
        return RandomStream(seed, (*self._life.path, *purpose))

    # ---- inside

    def _assign_seed(self, seed: int, path: tuple[int, ...]) -> None:
        self._life.seed = seed
        self._life.path = path
        for number, child in enumerate(self.children()):
            child._assign_seed(seed, (*path, number))

    def _deliver(self, position: _Position, unseen: int) -> Iterator[Datapoint]:
        life = self._life
        clock = time.perf_counter
        items = self.iterate()
        try:
            while True:
                began = clock()
                try:
                    item = next(items)
                except StopIteration:
                    break
                finally:
                    life.total_s += clock() - began
                if unseen:
                    unseen -= 1
                    continue
                position.delivered += 1
                life.datapoints += 1
                yield item
            position.ended = True
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()


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

    _stream: RandomStream | None = None

    @property
    def rng(self) -> np.random.RandomState:
        """The generator; at the start of a pass it stands where seed, stage and pass put it."""
        if self._stream is None:
            self._stream = self.stream()
        return self._stream.rng

    def _deliver(self, position: _Position, unseen: int) -> Iterator[Datapoint]:
        if self._stream is None:
            self._stream = self.stream()
        self._stream.seek(position.pass_index)
        return super()._deliver(position, unseen)

    def _assign_seed(self, seed: int, path: tuple[int, ...]) -> None:
        super()._assign_seed(seed, path)
        self._stream = None


class StageContractError(ZigguratError, TypeError):
    """A flow defines neither ``iterate()`` nor ``__iter__`` nor ``get_data``."""

    def __init__(self, flow: object) -> None:
        super().__init__(
            "A data flow defines `__iter__` as a generator of datapoints.",
            received=f"class {type(flow).__name__} without it",
            advice="Add `def __iter__(self): ...` that yields a list of components for each datapoint.",
        )


def _adapted(cls: type[DataFlow], original: Any) -> Any:
    """Return ``iterate`` for a class whose author wrote ``__iter__`` or ``get_data``."""

    def iterate(self: DataFlow) -> Iterator[Datapoint]:
        inside = self._life.inside
        inside.append(cls)
        try:
            items = iter(original(self))
        finally:
            inside.pop()
        while True:
            inside.append(cls)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                inside.pop()
            yield item

    return iterate
