"""Internal state of a data flow: position in its pass, seed and path in the pipeline, and timing."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import Any

from ziggurat.dataflow.policy import ErrorCounts
from ziggurat.errors import DataError, UsageError, ZigguratError

__all__ = ["FlowState", "Position", "StageContractError", "StageErrors", "StageStats", "UnknownLengthError"]


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
