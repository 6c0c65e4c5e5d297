"""Fakes for the engine tests: a program with one weight, a recording monitor, a settable clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.callbacks import Callback, Image, Monitor, Scalar, Trainer
from ziggurat.engine.feed import BatchCycle, DirectFeed, Feed
from ziggurat.errors import CheckpointError, UnknownNameError
from ziggurat.events import Event


class FakeProgram:
    """Lets one weight follow the mean of each batch, with noise: whatever a resume does not bring back shows.

    Args:
        costs: makes the value ``cost`` from the number of the step, from 1; the distance to the batch otherwise.
    """

    def __init__(self, costs: Callable[[int], float] | None = None) -> None:
        self.costs = costs
        self.weight = 1.0
        self.steps = 0
        self.rates = {"learning_rate": 0.5, "momentum": 0.0}
        self.rates_used: list[float] = []
        self.fetched: list[tuple[str, ...]] = []
        self.declared: list[str] = []
        self.noise = np.random.Generator(np.random.PCG64(7))

    def names(self) -> Sequence[str]:
        return ("cost", "rows", "wrong", "labels", "summary")

    def declare(self, names: Sequence[str]) -> None:
        self.declared = list(names)

    def connect(self, batches: BatchCycle) -> Feed:
        return DirectFeed(batches)

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        self.steps += 1
        self.fetched.append(tuple(names))
        self.rates_used.append(self.rates["learning_rate"])
        distance = float(np.mean(batch[0])) - self.weight
        self.weight += self.rates["learning_rate"] * distance + 0.01 * float(self.noise.normal())
        return self._values(batch, names, abs(distance) if self.costs is None else self.costs(self.steps))

    def evaluate(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        return self._values(batch, names, abs(float(np.mean(batch[0])) - self.weight))

    def _values(self, batch: Any, names: Sequence[str], cost: float) -> dict[str, Any]:
        rows = np.asarray(batch[0])
        every = {
            "cost": cost,
            "rows": rows,
            "wrong": (rows > 0).astype(np.float32),
            "labels": np.asarray(batch[1]) if len(batch) > 1 else rows,
            "summary": b"\n\x00",
        }
        return {name: every[name] for name in names}

    def hyperparameters(self) -> Mapping[str, float]:
        return dict(self.rates)

    def set_hyperparameter(self, name: str, value: float) -> None:
        if name not in self.rates:
            raise UnknownNameError("hyperparameter", name, self.rates)
        self.rates[name] = value

    def state(self) -> dict[str, np.ndarray]:
        inner: Any = self.noise.bit_generator.state
        words = [inner["state"][key] >> shift & (1 << 64) - 1 for key in ("state", "inc") for shift in (0, 64)]
        return {
            "weight": np.array(self.weight),
            "steps": np.array(self.steps),
            "rates": np.array(list(self.rates.values())),
            "noise": np.array([*words, inner["has_uint32"], inner["uinteger"]], np.uint64),
        }

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        if set(state) != set(self.state()):
            raise CheckpointError("The names are those of another network.")
        self.weight, self.steps = float(state["weight"]), int(state["steps"])
        self.rates = dict(zip(self.rates, map(float, state["rates"]), strict=True))
        low, high, inc_low, inc_high, has_uint32, uinteger = (int(word) for word in state["noise"])
        inner = {"state": low | high << 64, "inc": inc_low | inc_high << 64}
        self.noise.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": inner,
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }

    def close(self) -> None:
        pass


class Memory(Monitor):
    """Remembers everything that is put."""

    def __init__(self) -> None:
        self.scalars: list[Scalar] = []
        self.images: list[Image] = []
        self.events: list[Event] = []
        self.summaries: list[tuple[int, Any]] = []

    def process_scalar(self, scalar: Scalar) -> None:
        self.scalars.append(scalar)

    def process_image(self, image: Image) -> None:
        self.images.append(image)

    def process_event(self, event: Event) -> None:
        self.events.append(event)

    def process_summary(self, summary: Any, step: int) -> None:
        self.summaries.append((step, summary))

    def points(self, tag: str) -> list[tuple[int, float]]:
        """Return (step, value) of a tag."""
        return [(scalar.step, scalar.value) for scalar in self.scalars if scalar.tag == tag]

    def of_type(self, kind: type[Any]) -> list[Any]:
        """Return the events of a type."""
        return [event for event in self.events if isinstance(event, kind)]


class Clock:
    """A clock that goes on only when somebody says so, or by ``tick`` with every look."""

    def __init__(self, now: float = 1000.0, tick: float = 0.0) -> None:
        self.now = now
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


class PutEachEpoch(Callback):
    """Puts one number after each epoch: the next of a list."""

    def __init__(self, tag: str, values: Sequence[float]) -> None:
        self.tag = tag
        self.values = values

    def trigger(self) -> None:
        self.trainer.put(self.tag, self.values[self.epoch_num - 1])


def make_batches(count: int = 4, size: int = 2) -> list[Any]:
    """Return batches [x, y] with x = 0, 1, 2, … and y = x odd."""
    values = np.arange(count * size, dtype=np.float64).reshape(count, size)
    return [[row, row.astype(np.int64) % 2] for row in values]


def make_trainer(*callbacks: Callback, monitors: Sequence[Monitor] = (), **options: Any) -> Trainer:
    """Return a trainer of the fake program with four steps in an epoch and a clock that stands still."""
    program = options.pop("program", FakeProgram())
    batches = options.pop("batches", make_batches())
    options.setdefault("clock", Clock())
    return Trainer(program, batches, callbacks=callbacks, monitors=monitors, **options)


def train(*callbacks: Callback, epochs: int = 1, **options: Any) -> Memory:
    """Train and return what was put."""
    memory = Memory()
    monitors = [*options.pop("monitors", ()), memory]
    make_trainer(*callbacks, monitors=monitors, **options).train(epochs)
    return memory
