"""State of a data flow: position in its pass as JSON values, resuming from one, seed and path, and timing."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ziggurat.dataflow.adapting import OpenProperty, reserved
from ziggurat.dataflow.policy import ErrorCounts, ErrorPolicy
from ziggurat.errors import DataError, UsageError, ZigguratError

__all__ = [
    "FlowState",
    "Position",
    "Resumable",
    "StageContractError",
    "StageErrors",
    "StageStats",
    "UnknownLengthError",
]


@dataclass
class Position:
    """Where one pass stands."""

    pass_index: int = -1
    delivered: int = 0
    ended: bool = True
    children_at_start: list[Any] = field(default_factory=list)
    children_if_over: list[Any] | None = None
    """Of a pass that is resumed, until its first datapoint: the states that the children had, as they were ahead."""


@dataclass
class FlowState:
    """What a flow knows of itself; made before ``__init__``, which users' classes need not call."""

    position: Position = field(default_factory=Position)
    loaded: Position | None = None
    prepared_by: int | None = None
    """Number of the process in which the flow was prepared."""
    seed: int | None = None
    path: tuple[int, ...] = ()
    datapoints: int = 0
    total_s: float = 0.0
    inside: list[type] = field(default_factory=list)
    """The users' classes whose generators are running just now, innermost last."""
    lock: Any = field(default_factory=threading.RLock, compare=False, repr=False)
    """Held while the last stage of a pipeline makes a datapoint, so that ``state()`` in another thread waits for it."""

    @property
    def ready(self) -> bool:
        """Tell whether this process has prepared the flow."""
        return self.prepared_by == os.getpid()

    def check_newest(self, position: Position) -> None:
        """Refuse to go on with a pass after another one began: both would count in the same place.

        Raises:
            UsageError: where ``position`` is not that of the newest pass.
        """
        if self.position is not position:
            raise UsageError(
                "A data flow has one pass at a time.",
                received=f"a request to pass {position.pass_index} after pass {self.position.pass_index} began",
                advice="Build another flow for a second reader, or let one finish before the next begins.",
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "lock": None, "prepared_by": None, "inside": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=threading.RLock())


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


@dataclass(frozen=True)
class StageErrors:
    """Datapoints that one stage of a pipeline dropped because of errors.

    Args:
        stage: class name of the stage.
        path: its place, from the root (the end of the pipeline) down.
        counts: how many, of which kinds, and the first of them.
    """

    stage: str
    path: tuple[int, ...]
    counts: ErrorCounts


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


class StageContractError(ZigguratError, TypeError):
    """A flow defines neither ``iterate()`` nor ``__iter__`` nor ``get_data``."""

    def __init__(self, flow: object) -> None:
        super().__init__(
            "A data flow defines `__iter__` as a generator of datapoints.",
            received=f"class {type(flow).__name__} without it",
            advice="Add `def __iter__(self): ...` that yields a list of components for each datapoint.",
        )


class Resumable:
    """The part of every data flow that knows its state. A state holds positions and never data."""

    resumes_by_replay: bool = False
    """True where the stage cannot start in mid-pass: it is run again from the start of the pass, unseen."""

    spans_passes: bool = False
    """True where a new pass of this stage goes on in the middle of a pass of its children."""

    policy: ErrorPolicy = ErrorPolicy("raise")
    """What the stage does with datapoints that cannot be used; a stage with the choice has a policy of its own."""

    _ziggurat_life: FlowState

    # ---- what a stage implements

    def children(self) -> Sequence[Any]:
        """Return the flows that this one reads."""
        raise NotImplementedError

    def stage_state(self) -> Any:
        """Return what the stage must remember beside its position, as JSON values."""
        return None

    def load_stage_state(self, state: Any) -> None:
        """Take back what ``stage_state()`` gave."""

    def children_state(self) -> list[Any]:
        """Return the states that the children are to have when this pass goes on; an earlier one where the stage reads
        ahead or holds datapoints back."""
        return [child._ziggurat_state() for child in self._ziggurat_children()]

    def children_state_if_over(self) -> list[Any]:
        """Return the states that the children are to have when this pass does not go on."""
        return [child._ziggurat_state() for child in self._ziggurat_children()]

    # ---- what a user calls

    def state(self) -> dict[str, Any]:
        """Return where the newest pass stands, as JSON values: after the last datapoint that was delivered.

        In another thread it waits while a datapoint is being made.
        """
        life = self._ziggurat_life
        with life.lock:
            position = life.loaded or life.position
            state: dict[str, Any] = {
                "stage": type(self).__name__,
                "seed": life.seed,
                "pass": position.pass_index,
                "delivered": position.delivered,
                "ended": position.ended,
                "own": self._ziggurat_stage_state(),
                **self._ziggurat_children_states(position),
            }
            if self._ziggurat_policy.counts().total:
                state["errors"] = self._ziggurat_policy.state()
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Let the next ``iter()`` go on where ``state()`` was called on a flow of the same shape.

        Raises:
            DataError: where the state is of another pipeline.
        """
        children = self._ziggurat_children()
        if state["stage"] != type(self).__name__ or len(state["children"]) != len(children):
            raise DataError(
                "A data flow takes the state of a pipeline of the same shape only.",
                received=f"{state['stage']} with {len(state['children'])} children for "
                f"{type(self).__name__} with {len(children)}",
                advice="Build the pipeline as it was when the state was saved, or start its data anew.",
            )
        life = self._ziggurat_life
        if not life.path and state["seed"] is not None:
            self._ziggurat_assign_seed(state["seed"], ())
        ended = bool(state["ended"])
        position = Position(state["pass"], state["delivered"], ended, state["children"], state.get("children_if_over"))
        life.loaded = None if ended else position
        life.position = position
        if ended:
            self._ziggurat_load_over(position)
        else:
            for child, child_state in zip(children, state["children"], strict=True):
                child._ziggurat_load_state(child_state)
        if self._ziggurat_policy is not Resumable.policy:
            self._ziggurat_policy.load_state(state.get("errors"))
        self._ziggurat_load_stage_state(state["own"])

    @OpenProperty
    def ended(self) -> bool:
        """True where the newest pass is over, or none has begun.

        A stage that still yields after its child has ended (a last, smaller batch) asks for it when it is resumed.
        """
        return self._ziggurat_life.loaded is None and self._ziggurat_life.position.ended

    # ---- inside

    @property
    def _ziggurat_policy(self) -> ErrorPolicy:
        """The ``policy``, passing over what a user's class calls so."""
        held = [vars(self), *map(vars, type(self).__mro__)]
        return next(policy for each in held if isinstance(policy := each.get("policy"), ErrorPolicy))

    def _ziggurat_abandon(self) -> None:
        """Let a pass that was broken off be over, so that no state says that it goes on."""
        life = self._ziggurat_life
        position = life.loaded or life.position
        life.loaded = None
        position.ended = True
        if position.children_if_over is not None:
            self._ziggurat_load_over(position)  # it was resumed, but its children have not caught up
        elif not self._ziggurat_spans_passes:
            self._ziggurat_abandon_children()

    def _ziggurat_abandon_children(self) -> None:
        """Let the passes of the children be over."""
        for child in self._ziggurat_children():
            child._ziggurat_abandon()

    def _ziggurat_load_over(self, position: Position) -> None:
        """Load the children for a pass that is over: no pass of them is half-way, unless the stage says so."""
        states = position.children_at_start if position.children_if_over is None else position.children_if_over
        position.children_if_over = None
        for child, state in zip(self._ziggurat_children(), states, strict=True):
            child._ziggurat_load_state(state if self._ziggurat_spans_passes else {**state, "ended": True})

    def _ziggurat_children_states(self, position: Position) -> dict[str, list[Any]]:
        if position.ended:
            return {"children": self._ziggurat_children_state_if_over()}
        goes_back = (
            self._ziggurat_resumes_by_replay or type(self)._ziggurat_children_state is not Resumable.children_state
        )
        if not goes_back:
            return {"children": self._ziggurat_children_state()}
        over = position.children_if_over
        return {
            "children": position.children_at_start
            if self._ziggurat_resumes_by_replay
            else self._ziggurat_children_state(),
            "children_if_over": self._ziggurat_children_state_if_over() if over is None else over,
        }

    def _ziggurat_assign_seed(self, seed: int, path: tuple[int, ...]) -> None:
        """Let ``seed`` decide the random numbers of this flow, at its place in the pipeline, and of its children."""
        self._ziggurat_life.seed = seed
        self._ziggurat_life.path = path
        for number, child in enumerate(self._ziggurat_children()):
            child._ziggurat_assign_seed(seed, (*path, number))

    # ---- the reserved names, by which the package calls a flow, see `adapting`

    _ziggurat_children = children
    _ziggurat_stage_state = stage_state
    _ziggurat_load_stage_state = load_stage_state
    _ziggurat_children_state = children_state
    _ziggurat_children_state_if_over = children_state_if_over
    _ziggurat_state = state
    _ziggurat_load_state = load_state
    _ziggurat_ended = reserved(ended)
    _ziggurat_resumes_by_replay = resumes_by_replay
    _ziggurat_spans_passes = spans_passes
