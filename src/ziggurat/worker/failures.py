"""Report of the error that ended an attempt: an event, a sentence, a traceback in the log."""

from __future__ import annotations

import sys
import time
import traceback

from ziggurat.engine.trainer import Trainer
from ziggurat.entities.heartbeat import write_last_words
from ziggurat.errors import StorageError, ZigguratError, memory_error
from ziggurat.events import AttemptEnded, ErrorRaised, EventFile
from ziggurat.layout import JobFolder

__all__ = ["report_failure"]


def report_failure(
    error: BaseException,
    folder: JobFolder,
    events: EventFile,
    trainer: Trainer | None,
    *,
    with_traceback: bool,
    stack: str = "",
) -> int:
    """Write down why an attempt failed; return the exit code of the error's family.

    Args:
        error: what was raised.
        folder: the job folder, whose log gets the traceback.
        events: get the error, its traceback, and the end of the attempt.
        trainer: where there was one already.
        with_traceback: whether standard error gets the traceback, too.
        stack: where the main thread was, of an error that was not raised there; empty for the error's own traceback.
    """
    known = error if isinstance(error, ZigguratError) else _unexpected(error)
    shape = known.as_dict() if known is error else {**known.as_dict(), "error": "unexpected"}
    text = stack or "".join(traceback.format_exception(error))
    sys.stderr.write(text if with_traceback else "")
    sys.stderr.write(f"Error: {known}\n")
    _append(folder, text)
    step, epoch = (trainer.global_step, trainer.epoch_num) if trainer is not None else (0, 0)
    now = time.time()
    ended = AttemptEnded(
        time=now, outcome="failed", exit_code=known.exit_code, reason=str(known), global_step=step, epoch=epoch
    )
    try:
        events.write(ErrorRaised(time=now, error=shape, traceback=text, step=step), ended)
    except StorageError as full:
        write_last_words(folder.last_words, ended)
        sys.stderr.write(f"Error: {full}\n")
    return known.exit_code


def _unexpected(error: BaseException) -> ZigguratError:
    """Return an error that is none of ours in the usual form, with the notes on which callback raised it."""
    short = memory_error(error)
    if short is not None:
        return short
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    notes = " ".join(getattr(error, "__notes__", ()))
    return ZigguratError(
        "The attempt ended by an error that Ziggurat does not know.",
        received=f"{said} ({notes.rstrip('.')})" if notes else said,
        advice="Its traceback is in log.txt of the job; mend the cause, then resume the job.",
    )


def _append(folder: JobFolder, text: str) -> None:
    """Append to the log; one that cannot be written hides no error."""
    try:
        with folder.log.open("a", encoding="utf-8") as log:
            log.write(text)
    except OSError:
        pass
