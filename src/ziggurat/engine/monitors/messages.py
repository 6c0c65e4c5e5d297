"""User-facing messages of callbacks: sentences as events, durations as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ziggurat.events import Message

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["duration_text", "say"]


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
