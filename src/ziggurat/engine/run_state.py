"""State of a training run: what a checkpoint holds, taken from a trainer and given back to one."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ziggurat.engine.arithmetic import arithmetic_of
from ziggurat.errors import CheckpointError

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = [
    "RunState",
    "StepTiming",
    "global_random_state",
    "load_global_random_state",
    "load_run_state",
    "run_state",
    "seed_global_random",
]

_COUNTERS: Final = ("epoch_num", "global_step", "local_step", "finish_reason")


@dataclass
class StepTiming:
    """Where the time of an attempt went.

    Args:
        steps: steps done in this attempt.
        wait_s: seconds that the loop waited for batches.
        step_s: seconds inside ``program.step``.
        recent_s: seconds of each of the last 10,000 steps, the wait for its batch included; oldest first.
    """

    steps: int = 0
    wait_s: float = 0.0
    step_s: float = 0.0
    recent_s: deque[float] = field(default_factory=lambda: deque(maxlen=10_000))

    def add_step(self, began: float, loaded: float, ended: float) -> int:
        """Count a step by the seconds when it began to wait, had its batch, and was done; return how many there are."""
        self.wait_s += loaded - began
        self.step_s += ended - loaded
        self.recent_s.append(ended - began)
        self.steps = steps = self.steps + 1
        return steps


@dataclass(frozen=True)
class RunState:
    """All that decides how a training goes on.

    Args:
        meta: counters, callbacks, monitors, data position and random generators, as JSON values.
        arrays: the program's arrays by name.
    """

    meta: dict[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


def run_state(trainer: Trainer) -> RunState:
    """Return the state of a trainer that is at a boundary or does not train."""
    meta = {
        **{name: getattr(trainer, name) for name in _COUNTERS},
        "in_epoch": trainer.in_epoch,
        "steps_per_epoch": trainer.steps_per_epoch,
        "callbacks": {callback.name: callback.state() for callback in trainer.callbacks},
        "latest": trainer.monitors.state(),
        "batches": trainer.batches.state() if trainer.feed is None else trainer.feed.position(),
        "random": global_random_state(),
        "arithmetic": arithmetic_of(trainer.program, trainer.batches.source),
    }
    return RunState(meta, trainer.program.state())


def load_run_state(trainer: Trainer, state: RunState) -> None:
    """Give a state to a trainer that is set up.

    Raises:
        CheckpointError: where the state is of another network or another epoch length.
    """
    meta = state.meta
    if meta["in_epoch"] and meta["steps_per_epoch"] != trainer.steps_per_epoch:
        raise CheckpointError(
            "An epoch that was left in the middle is resumed with the same `steps_per_epoch`.",
            received=f"{trainer.steps_per_epoch} instead of {meta['steps_per_epoch']}",
            advice="Set it as it was, or resume from a checkpoint at the end of an epoch.",
        )
    trainer.program.load_state(state.arrays)
    for name in _COUNTERS:
        setattr(trainer, name, meta[name])
    trainer.in_epoch = meta["in_epoch"]
    trainer.monitors.load_state(meta["latest"])
    if trainer.feed is not None:
        trainer.feed.close()
    trainer.batches.load_state(meta["batches"])
    saved = meta["callbacks"]
    for callback in trainer.callbacks:
        if saved.get(callback.name) is not None:
            callback.load_state(saved[callback.name])
    load_global_random_state(meta["random"])


def seed_global_random(seed: int) -> None:
    """Let ``seed`` decide what users' code draws from ``random`` and ``numpy.random`` until a state is loaded."""
    random.seed(seed)
    np.random.seed(seed % 2**32)


def global_random_state() -> dict[str, Any]:
    """Return the state of ``random`` and of ``numpy.random``, as JSON values."""
    version, words, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=False)
    inner = numpy_state["state"]
    return {
        "python": [version, list(words), gauss],
        "numpy": {
            "bit_generator": numpy_state["bit_generator"],
            "key": [int(word) for word in inner["key"]],
            "pos": int(inner["pos"]),
            "has_gauss": int(numpy_state["has_gauss"]),
            "gauss": float(numpy_state["gauss"]),
        },
    }


def load_global_random_state(state: dict[str, Any]) -> None:
    """Take back what ``global_random_state()`` gave."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    numpy_state = state["numpy"]
    np.random.set_state(
        (
            numpy_state["bit_generator"],
            np.array(numpy_state["key"], dtype=np.uint32),
            numpy_state["pos"],
            numpy_state["has_gauss"],
            numpy_state["gauss"],
        )
    )
