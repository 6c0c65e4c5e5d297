"""Logging setup: one line per message with its time, on a stream and in a job's log file; no effect on import.

Only the loggers ``ziggurat`` and ``py.warnings`` are changed, never the root logger, so that a program that uses the
library keeps its own logging.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Self, TextIO

from ziggurat.errors import StorageError, UnknownNameError

__all__ = ["LEVELS", "LogSetUp", "set_up_logging"]

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
"""Names of levels, least important first."""

_OWNERS: Final = ("ziggurat", "py.warnings")
_COLORS: Final = {logging.DEBUG: "2", logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "1;31"}


def set_up_logging(
    level: str = "info", *, stream: TextIO | None = None, color: bool = False, job_log: Path | None = None
) -> LogSetUp:
    """Show messages until the result is closed; use it as a context manager.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
        stream: where people read; standard error where it is not given.
        color: whether levels are colored on the stream.
        job_log: a file to append to, such as a job's ``log.txt``; left alone where the stream writes there already.

    Raises:
        UnknownNameError: where the level is unknown.
        StorageError: where the file cannot be written.
    """
    return LogSetUp(level, stream or sys.stderr, color, job_log)


class LogSetUp:
    """The handlers of one ``set_up_logging``; closing it takes them away, and warnings go where they went before."""

    def __init__(self, level: str, stream: TextIO, color: bool, file: Path | None) -> None:
        if level not in LEVELS:
            raise UnknownNameError("log level", level, LEVELS)
        self._handlers: list[logging.Handler] = [_stream_handler(stream, color)]
        if file is not None and not _is_same_file(stream, file):
            self._handlers.append(_file_handler(file))
        self._before = [(logging.getLogger(name), logging.getLogger(name).level) for name in _OWNERS]
        for logger, _ in self._before:
            logger.setLevel(LEVELS[level])
            logger.propagate = False
            for handler in self._handlers:
                logger.addHandler(handler)
        logging.captureWarnings(True)

    def close(self) -> None:
        """Undo everything; closing twice does nothing."""
        for logger, level in self._before:
            logger.setLevel(level)
            logger.propagate = True
            for handler in self._handlers:
                logger.removeHandler(handler)
        if self._before:
            logging.captureWarnings(False)
        for handler in self._handlers:
            with suppress(OSError):  # of a full disk; raised here, it would hide what the attempt ended by
                handler.close()
        self._handlers, self._before = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


class _LineFormatter(logging.Formatter):
    """``12:30:05 WARNING ziggurat.worker: text``; further lines of the text are indented."""

    def __init__(self, date_format: str, *, color: bool, utc: bool) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", date_format)
        self._color = color
        if utc:
            self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).rstrip("\n").replace("\n", "\n    ")
        code = _COLORS.get(record.levelno)
        if self._color and code:
            name = f"{record.levelname:<7}"
            return text.replace(name, f"\x1b[{code}m{name}\x1b[0m", 1)
        return text


def _lose_lines(handler: logging.Handler) -> logging.Handler:
    """Return the handler, which from now on drops messages that cannot be written, such as on a full disk."""
    say = handler.handleError
    handler.handleError = lambda record: None if isinstance(sys.exception(), OSError) else say(record)
    return handler


def _stream_handler(stream: TextIO, color: bool) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_LineFormatter("%H:%M:%S", color=color, utc=False))
    return _lose_lines(handler)


def _file_handler(path: Path) -> logging.Handler:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"The log must be written to {path}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk or mend the folder's rights.",
        ) from error
    handler.setFormatter(_LineFormatter("%Y-%m-%dT%H:%M:%SZ", color=False, utc=True))
    return _lose_lines(handler)


def _is_same_file(stream: TextIO, path: Path) -> bool:
    """Return whether the stream was redirected into the file: each message would stand there twice."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except (OSError, ValueError):
        return False
