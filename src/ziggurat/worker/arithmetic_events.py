"""Events on the arithmetic of an attempt: its record, and what a person is told of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from ziggurat.engine.arithmetic import arithmetic_of, usable_cores
from ziggurat.engine.trainer import Trainer
from ziggurat.entities.arithmetic import compare_arithmetic
from ziggurat.events import ArithmeticRecorded, Event, Message
from ziggurat.formatting import plural

__all__ = ["arithmetic_events"]

_LOG: Final = logging.getLogger(__name__)


def arithmetic_events(
    trainer: Trainer, checkpoint: str, before: Mapping[str, Any] | None, threads: int = 0, note: str = ""
) -> list[Event]:
    """Return the record of the attempt that begins, and messages on how it differs from that of its checkpoint.

    Args:
        trainer: set up, at the state of the checkpoint.
        checkpoint: name of the checkpoint that it goes on from; empty for none.
        before: arithmetic of the attempt that wrote the checkpoint; None if not recorded.
        threads: that the spec gives to the operations; 0 for none.
        note: sentence on fewer processes than the spec asks for; else empty.
    """
    found = compare_arithmetic(arithmetic_of(trainer.program, trainer.batches.source), checkpoint, before)
    found = replace(found, text=f"{note} {found.text}".strip())
    now, step = time.time(), trainer.global_step
    events: list[Event] = [ArithmeticRecorded(time=now, **asdict(found))]
    texts = [found.text] if note or found.verdict in ("other", "unknown") else []
    cores = usable_cores()
    if threads > cores:
        texts.append(f"It computes with {threads} threads on {plural(cores, 'core')}: slower, with the same bits.")
    for text in texts:
        _LOG.warning("%s", text)
        events.append(Message(time=now, level="warning", text=text, step=step))
    if found.verdict == "same" and not note:
        _LOG.info("%s", found.text)
    return events
