"""Errors of a script as text: its own file and line first, then the way that led there."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import ziggurat
from ziggurat.errors import install_advice

__all__ = ["failure_text"]

_OURS: Final = str(Path(ziggurat.__file__).parent)
_OLD_SYNTAX: Final = "This is neither Python 3 nor Python 2 that can be converted; rewrite the line."


def failure_text(error: BaseException, is_users: Callable[[str], bool]) -> str:
    """Return what a person sees of an error that ended a script.

    Args:
        error: as it was raised.
        is_users: whether a file belongs to the script.
    """
    file, line = _place(error, is_users)
    parts = [f"{_where(file, line)}\n"] if file else []
    parts.append(f"{type(error).__name__}: {_message(error)}\n")
    if isinstance(error, SyntaxError):
        parts.append(f"{_OLD_SYNTAX}\n")
    if advice := install_advice(error):
        parts.append(f"{advice}\n")
    if made := _where_made(error, is_users):
        parts.append(f"The operation was made at {made}\n")
    if trace := _trace(error, is_users):
        parts.append(f"\n{trace}")
    return "".join(parts)


def _place(error: BaseException, is_users: Callable[[str], bool]) -> tuple[str, int]:
    if isinstance(error, SyntaxError) and error.filename and is_users(error.filename):
        return error.filename, error.lineno or 0
    found = ("", 0)
    step: TracebackType | None = error.__traceback__
    while step is not None:
        if is_users(step.tb_frame.f_code.co_filename):
            found = (step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return found


def _where(file: str, line: int) -> str:
    source = linecache.getline(file, line).strip()
    return f"{file}, line {line}: {source}" if source else f"{file}, line {line}"


def _message(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    if not _is_of_operation(error):
        return text
    # TensorFlow repeats where the operation was made, and puts that around what is wrong.
    wrong = re.split(r"^Node: '.*'\n", text, maxsplit=1, flags=re.MULTILINE)[-1]
    return re.split(r"\n\s*\[\[|\n\s*\n|\nOriginal stack trace", wrong.strip())[0]


def _is_of_operation(error: BaseException) -> bool:
    return hasattr(error, "node_def") and hasattr(error, "op")


def _where_made(error: BaseException, is_users: Callable[[str], bool]) -> str:
    """Return the script's line that made the operation that failed, where TensorFlow knows it."""
    operation: Any = getattr(error, "op", None)
    steps: Iterable[Any] = getattr(operation, "traceback", None) or ()
    places = [(step.filename, step.lineno) for step in steps if is_users(step.filename)]
    return _where(*places[-1]) if places else ""


def _trace(error: BaseException, is_users: Callable[[str], bool]) -> str:
    """Return the traceback from the script's first line on, without Ziggurat's own steps."""
    whole = traceback.TracebackException.from_exception(error)
    each: Any = whole
    while each is not None:
        steps = list(each.stack)
        first = next((place for place, step in enumerate(steps) if is_users(step.filename)), len(steps))
        shown = [step for step in steps[first:] if not step.filename.startswith(_OURS)]
        each.stack = traceback.StackSummary.from_list(shown)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    if not whole.stack and whole.__cause__ is None and whole.__context__ is None:
        return ""
    if _is_of_operation(error):  # what it was raised from says the same, at length
        return "".join(["Traceback (most recent call last):\n", *whole.stack.format()])
    return "".join(whole.format())
