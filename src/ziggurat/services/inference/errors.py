"""Errors of pooled processes: those that they send, in their own family, and those for a process that has ended."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

from ziggurat.errors import JobError

__all__ = ["STUCK", "ProcessEndedError", "ended", "too_long"]

STUCK: Final = "it answered nobody and was ended"


class ProcessEndedError(JobError):
    """A warm process ended without an answer.

    ``may_retry`` says whether the request did not begin there: another process can take it without harm.
    """

    may_retry: bool = False


def ended(
    folder: Path, exit_code: int | None, log: Path, *, why: str = "", may_retry: bool = False
) -> ProcessEndedError:
    """Return the error for a process that is gone.

    Args:
        folder: the job folder.
        exit_code: of the process, negative for the signal that killed it; None if unknown.
        log: its output.
        why: it was ended from here; empty where it was not.
        may_retry: as in the error.
    """
    if why or exit_code is None:
        how, advice = why or "it is gone", "Ask again: a new one is started."
    elif exit_code < 0:
        how = f"it was killed by {_signal_name(-exit_code)}"
        advice = "Ask again: a new one is started. Out of memory is the usual reason: free some, or send fewer images."
    else:
        how = f"exit code {exit_code}{_last_words(log)}"
        advice = f"Look at its output in {log}."
    error = ProcessEndedError(
        f"The warm process of {folder} must answer before it ends.",
        received=how,
        advice=advice,
        details={"folder": str(folder), "exit_code": exit_code},
    )
    error.may_retry = may_retry
    return error


def too_long(folder: Path, limit_s: float, log: Path, *, is_stuck: bool) -> JobError:
    """Return the error for an answer that did not come in time.

    Args:
        folder: the job folder.
        limit_s: how long was waited.
        log: output of the process.
        is_stuck: whether it answered nobody in that time, so that it was ended.
    """
    return JobError(
        f"The warm process of {folder} must answer within {limit_s:g} s.",
        received=f"no answer; {STUCK}" if is_stuck else "no answer; it is busy with other requests",
        advice=f"Look at its output in {log}, or ask with more time.",
        details={"folder": str(folder), "limit_s": limit_s, "is_stuck": is_stuck},
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


def _last_words(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f"; its last line: {lines[-1][:300]}" if lines else ""
