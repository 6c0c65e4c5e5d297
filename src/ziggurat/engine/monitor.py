"""Monitor interface: a monitor is a sink for metrics, and ``Monitors`` sends every value to all of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ziggurat.engine.callback import Callback
from ziggurat.errors import UnknownNameError
from ziggurat.events import Event

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["Image", "Monitor", "Monitors", "Scalar"]

_HISTORY_LENGTH = 10_000


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number of one moment.

    Args:
        tag: name of the curve.
        value: the number.
        step: ``global_step`` of the moment.
        epoch: epoch of the moment, from 1 (0 before training).
        time: seconds since 1970 (UTC).
    """

    tag: str
    value: float
    step: int
    epoch: int
    time: float


@dataclass(frozen=True, slots=True)
class Image:
    """One image of one moment.

    Args:
        tag: name of the image.
        pixels: (H, W, C) uint8, RGB or gray (C = 1).
        step: ``global_step`` of the moment.
        epoch: epoch of the moment, from 1.
        time: seconds since 1970 (UTC).
    """

    tag: str
    pixels: np.ndarray
    step: int
    epoch: int
    time: float


class Monitor(Callback):
    """A sink of numbers, images and events. It has a callback's hooks, which are called after all callbacks'."""

    def process_scalar(self, scalar: Scalar) -> None:
        """Take one number."""

    def process_image(self, image: Image) -> None:
        """Take one image."""

    def process_event(self, event: Event) -> None:
        """Take one event that is neither scalar nor image."""

    def process_summary(self, summary: Any, step: int) -> None:
        """Take a framework's own serialized summary (TensorBoard's protocol buffer, as bytes)."""

    def flush(self) -> None:
        """Bring what was taken to where others can read it."""


class Monitors:
    """All monitors of a trainer, and the latest value of each tag.

    Args:
        monitors: the sinks, in order.
        trainer: whose steps and epochs the numbers belong to.
        clock: seconds since 1970.
    """

    def __init__(self, monitors: Sequence[Monitor], trainer: Trainer, clock: Callable[[], float] = time.time) -> None:
        self._monitors = list(monitors)
        self._trainer = trainer
        self._clock = clock
        self._history: dict[str, deque[tuple[int, float]]] = {}

    def __iter__(self) -> Any:
        return iter(self._monitors)

    def put_scalar(self, tag: str, value: Any) -> None:
        """Hand one number to every monitor.

        Args:
            tag: name of the curve.
            value: anything that ``float()`` takes; NaN and infinities are handed on.
        """
        trainer = self._trainer
        scalar = Scalar(tag, float(value), trainer.global_step, trainer.epoch_num, self._clock())
        history = self._history.get(tag)
        if history is None:
            history = self._history[tag] = deque(maxlen=_HISTORY_LENGTH)
        history.append((scalar.step, scalar.value))
        for monitor in self._monitors:
            monitor.process_scalar(scalar)

    def put_image(self, tag: str, pixels: np.ndarray) -> None:
        """Hand one image to every monitor.

        Args:
            tag: name of the image.
            pixels: (H, W, C) or (H, W) uint8, RGB or gray; a batch (N, H, W, C) gives one image each.
        """
        trainer = self._trainer
        pictures = pixels if pixels.ndim == 4 else pixels[None]
        for number, picture in enumerate(pictures):
            name = tag if len(pictures) == 1 else f"{tag}/{number}"
            whole = picture[:, :, None] if picture.ndim == 2 else picture
            image = Image(name, whole, trainer.global_step, trainer.epoch_num, self._clock())
            for monitor in self._monitors:
                monitor.process_image(image)

    def put_event(self, event: Event) -> None:
        """Hand one event to every monitor."""
        for monitor in self._monitors:
            monitor.process_event(event)

    def put_summary(self, summary: Any) -> None:
        """Hand a framework's serialized summary to every monitor."""
        for monitor in self._monitors:
            monitor.process_summary(summary, self._trainer.global_step)

    def flush(self) -> None:
        """Let every monitor bring what it has to where others can read it."""
        for monitor in self._monitors:
            monitor.flush()

    def now(self) -> float:
        """Return the time that the next number would carry, in seconds since 1970."""
        return self._clock()

    def get_latest(self, tag: str) -> float:
        """Return the newest value of a tag.

        Raises:
            UnknownNameError: where nothing was put under that tag yet.
        """
        return self.get_history(tag)[-1][1]

    def get_history(self, tag: str) -> list[tuple[int, float]]:
        """Return (step, value) of a tag, oldest first; the last 10,000 are kept.

        Raises:
            UnknownNameError: where nothing was put under that tag yet.
        """
        if tag not in self._history:
            raise UnknownNameError("tag", tag, self._history)
        return list(self._history[tag])

    def latest(self) -> Mapping[str, float]:
        """Return the newest value of every tag."""
        return {tag: history[-1][1] for tag, history in self._history.items()}

    def state(self) -> Any:
        """Return the newest point of every tag, as JSON values."""
        return {tag: list(history[-1]) for tag, history in self._history.items()}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self._history = {
            tag: deque([(int(step), float(value))], maxlen=_HISTORY_LENGTH) for tag, (step, value) in state.items()
        }
