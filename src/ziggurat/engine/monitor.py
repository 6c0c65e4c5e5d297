"""Monitors: sinks of metrics, ``Monitors`` that sends every value to all of them, and messages to the user."""

from __future__ import annotations

import operator
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ziggurat.engine.callback import Callback
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.events import Event, Message

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["Image", "Monitor", "Monitors", "Scalar", "ScalarWatch", "better", "duration_text", "say"]

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

    def add(self, *monitors: Monitor) -> None:
        """Add sinks behind the others."""
        self._monitors += monitors

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
            pixels: (H, W, C) or (H, W), RGB or gray, in [0, 255]; a batch (N, H, W, C) gives one image each.
        """
        trainer = self._trainer
        if pixels.dtype != np.uint8:
            pixels = np.clip(np.nan_to_num(pixels), 0, 255).astype(np.uint8)
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
        """Hand a framework's summary to every monitor.

        Args:
            summary: serialized, or a ``Summary`` message, whose single numbers become scalars, as by ``put_scalar``.
        """
        if hasattr(summary, "SerializeToString"):
            summary = self._without_scalars(summary)
        if summary:
            for monitor in self._monitors:
                monitor.process_summary(summary, self._trainer.global_step)

    def _without_scalars(self, summary: Any) -> bytes:
        """Put the single numbers of a message; return the rest of it, serialized."""
        rest = type(summary)()
        for value in summary.value:
            if value.WhichOneof("value") == "simple_value":
                self.put_scalar(value.tag, value.simple_value)
            else:
                rest.value.add().CopyFrom(value)
        return rest.SerializeToString()

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


def say(trainer: Trainer, text: str, *, level: str = "info") -> None:
    """Hand one sentence to every monitor.

    Args:
        trainer: whose monitors.
        text: the sentence.
        level: ``info``, ``warning`` or ``error``.
    """
    monitors = trainer.monitors
    monitors.put_event(Message(time=monitors.now(), level=level, text=text, step=trainer.global_step))


def duration_text(duration_s: float) -> str:
    """Return a time in its two largest units.

    >>> duration_text(4.26), duration_text(87), duration_text(7322), duration_text(200000)
    ('4.3 s', '1 min 27 s', '2 h 2 min', '2 d 7 h')
    """
    if duration_s < 10:
        return f"{duration_s:.1f} s"
    whole_s = round(duration_s)
    for unit_s, name, part_s, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole_s >= unit_s:
            return f"{whole_s // unit_s} {name} {whole_s % unit_s // part_s} {part}"
    return f"{whole_s} s"


class ScalarWatch:
    """Looks at one scalar.

    Args:
        tag: its name.
    """

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._is_missed = False

    def newest(self, trainer: Trainer) -> tuple[int, float] | None:
        """Return (step, value) of the newest point; None where there is none yet, which is said once."""
        try:
            return trainer.monitors.get_history(self.tag)[-1]
        except UnknownNameError as error:
            if not self._is_missed:
                self._is_missed = True
                say(trainer, f"No scalar `{self.tag}` was put so far. {error.advice}", level="warning")
            return None


def better(mode: str) -> Callable[[float, float], bool]:
    """Return the comparison that says whether a value is strictly better than another; NaN never is.

    Raises:
        ConfigurationError: where the mode is neither ``min`` nor ``max``.
    """
    if mode not in ("min", "max"):
        raise ConfigurationError(
            "`mode` must be `min` or `max`.", received=mode, advice="Use `min` for errors and `max` for accuracies."
        )
    return operator.lt if mode == "min" else operator.gt
