"""Terminal monitor: the scalars of each epoch, and the messages of callbacks."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TextIO

from ziggurat.engine.monitor import Monitor, Scalar, duration_text
from ziggurat.entities import INTERVENTION
from ziggurat.entities.best_checkpoint import metric_text, metric_title
from ziggurat.errors import ConfigurationError
from ziggurat.events import Event, Message, Progress

__all__ = ["ScalarPrinter"]


class ScalarPrinter(Monitor):
    """Prints ``tag: value`` lines, sorted, and every message.

    Args:
        enable_step: print the scalars of each step in which some were put.
        enable_epoch: print the newest scalars of each epoch.
        whitelist: patterns; only tags that one of them matches are printed. None for all.
        blacklist: patterns; tags that one of them matches are not printed.
        stream: where to; None for the standard output.
        is_short: print an epoch as one line for people: ``Epoch 2/3, step 38: loss 0.98, accuracy 77.3 %``.
    """

    def __init__(
        self,
        enable_step: bool = False,
        enable_epoch: bool = True,
        whitelist: Sequence[str] | None = None,
        blacklist: Sequence[str] | None = None,
        *,
        stream: TextIO | None = None,
        is_short: bool = False,
    ) -> None:
        self._enable_step = enable_step
        self._enable_epoch = enable_epoch
        self._whitelist = None if whitelist is None else [_compiled(pattern) for pattern in whitelist]
        self._blacklist = [_compiled(pattern) for pattern in blacklist or ()]
        self._stream = stream
        self._is_short = is_short
        self._of_step: dict[str, float] = {}
        self._of_epoch: dict[str, float] = {}
        self._left_s: float | None = None

    def hooks(self) -> frozenset[str]:
        """Steps are of interest only where they are printed."""
        return super().hooks() - (frozenset() if self._enable_step else {"trigger_step"})

    def process_scalar(self, scalar: Scalar) -> None:
        """Keep the newest value of each tag."""
        self._of_epoch[scalar.tag] = scalar.value
        if self._enable_step:
            self._of_step[scalar.tag] = scalar.value

    def process_event(self, event: Event) -> None:
        """Print a message at once; remember the time left."""
        if isinstance(event, Message):
            self._print(event.text if event.level in ("info", INTERVENTION) else f"{event.level.upper()}: {event.text}")
        elif isinstance(event, Progress):
            self._left_s = event.remaining_s

    def trigger_step(self) -> None:
        """Print what was put in this step, once all callbacks have had their turn."""
        if self._of_step:
            self.trainer.at_boundary(self._print_step)

    def trigger_epoch(self) -> None:
        """Print what was put in this epoch, once all callbacks have had their turn."""
        if self._enable_epoch:
            self.trainer.at_boundary(self._print_epoch)

    def _print_step(self) -> None:
        values, self._of_step = self._of_step, {}
        self._print_values(f"Step {self.global_step}", values)

    def _print_epoch(self) -> None:
        values, self._of_epoch, self._of_step = self._of_epoch, {}, {}
        left = "" if not self._left_s else f", about {duration_text(self._left_s)} left"
        title = f"Epoch {self.epoch_num}/{self.trainer.max_epoch}, step {self.global_step}{left}"
        if not self._is_short:
            self._print_values(title, values)
            return
        tags = [tag for tag in sorted(values) if self._wants(tag) and not _is_said_by_accuracy(tag, values)]
        shown = [f"{metric_title(tag).removeprefix('training ')} {metric_text(tag, values[tag])}" for tag in tags]
        self._print(f"{title}: {', '.join(shown)}" if shown else title)

    def _print_values(self, title: str, values: dict[str, float]) -> None:
        lines = [f"  {tag}: {values[tag]:.5g}" for tag in sorted(values) if self._wants(tag)]
        self._print("\n".join([title, *lines]))

    def _wants(self, tag: str) -> bool:
        allowed = self._whitelist is None or any(pattern.match(tag) for pattern in self._whitelist)
        return allowed and not any(pattern.match(tag) for pattern in self._blacklist)

    def _print(self, text: str) -> None:
        stream = self._stream or sys.stdout
        stream.write(text + "\n")
        stream.flush()


def _is_said_by_accuracy(tag: str, values: dict[str, float]) -> bool:
    accuracy = tag.replace("error", "accuracy")
    return accuracy != tag and accuracy in values


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(
            "`whitelist` and `blacklist` hold regular expressions.",
            received=f"{pattern!r} ({error})",
            advice="Escape characters such as `(` and `*` that are meant as they are.",
        ) from error
