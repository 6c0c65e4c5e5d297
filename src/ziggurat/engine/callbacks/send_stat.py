"""External command that receives scalars, for example to send a phone message; no shell is involved."""

from __future__ import annotations

import queue
import re
import shlex
import string
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ziggurat.engine.callback import Callback
from ziggurat.engine.monitor import say
from ziggurat.errors import ConfigurationError, UnknownNameError

__all__ = ["SendStat", "command_arguments"]

# What people write behind a command to keep it quiet; the output is not shown in any case.
_QUIET = re.compile(r"(?<!\S)(?:[12&]?>>?\s*/dev/null|2>&1|1>&2)(?=\s|$)")
_OPERATORS = frozenset("();<>|&")


class SendStat(Callback):
    """Runs a command with the latest scalars after each epoch.

    >>> SendStat("curl -d body={val-error-top1} https://ntfy.example/me > /dev/null 2>&1", "val-error-top1")

    The command is split into arguments first and the numbers are filled in afterwards, so nothing that is filled in can
    become a command. It runs in a thread; a command that fails or takes too long is reported, and training goes on.

    Args:
        command: a list of arguments, or a string with the quoting rules of a shell, but without its pipes, variables
            and files. ``{tag}`` stands for the latest value of a scalar; ``{{`` for a brace.
        names: the scalars, or one of them.
        limit_s: longest time for one command, in seconds.

    Raises:
        ConfigurationError: where the command needs a shell, or names a scalar that is not in ``names``.
    """

    def __init__(self, command: str | Sequence[str], names: str | Sequence[str], *, limit_s: float = 60.0) -> None:
        self._arguments = command_arguments(command) if isinstance(command, str) else list(command)
        self._names = (names,) if isinstance(names, str) else tuple(names)
        self._limit_s = limit_s
        self._waiting: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self._problems: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._missed: set[str] = set()
        for argument in self._arguments:
            _fill(argument, dict.fromkeys(self._names, 0.0))

    def trigger(self) -> None:
        """Send once all callbacks have put their numbers."""
        self.trainer.at_boundary(self._send)

    def after_train(self) -> None:
        """Wait for the commands that were begun."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._waiting.put(None)
            thread.join()
            self._report()

    def _send(self) -> None:
        self._report()
        latest = self.trainer.monitors.latest()
        missing = {name for name in self._names if name not in latest}
        if missing:
            if missing - self._missed:
                names = ", ".join(f"`{name}`" for name in sorted(missing))
                say(self.trainer, f"SendStat waits for {names}: nothing was put there so far.", level="warning")
            self._missed |= missing
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_commands, name="send-stat", daemon=True)
            self._thread.start()
        self._waiting.put([_fill(argument, latest) for argument in self._arguments])

    def _run_commands(self) -> None:
        while (arguments := self._waiting.get()) is not None:
            problem = _run(arguments, self._limit_s)
            if problem:
                self._problems.put(f"SendStat: `{arguments[0]}` {problem}. Training goes on.")

    def _report(self) -> None:
        while not self._problems.empty():
            say(self.trainer, self._problems.get(), level="warning")


def command_arguments(command: str) -> list[str]:
    """Return the arguments of a command line, split as a shell would.

    Redirections to ``/dev/null`` are dropped, and a backslash at the end of a line joins it to the next.

    Raises:
        ConfigurationError: where the line is empty, badly quoted, or needs a shell.
    """
    line = _QUIET.sub(" ", command.replace("\\\n", " "))
    splitter = shlex.shlex(line, posix=True, punctuation_chars=True)
    splitter.whitespace_split = True
    splitter.commenters = ""
    try:
        arguments = list(splitter)
    except ValueError as error:
        raise ConfigurationError(
            "The command of SendStat must be a command line.",
            received=f"{command!r} ({error})",
            advice="Close the quotes.",
        ) from error
    operators = [argument for argument in arguments if argument and set(argument) <= _OPERATORS]
    if not arguments or operators:
        raise ConfigurationError(
            "SendStat runs one program, without a shell.",
            received=f"`{operators[0]}` in {command!r}" if operators else repr(command),
            advice="Put pipes and files into a script and run that, or quote the character.",
        )
    return arguments


class _Filler(string.Formatter):
    """Fills in ``{tag}`` for any tag, also one with dots and brackets."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        if field_name not in kwargs:
            raise UnknownNameError("scalar of this SendStat", field_name, kwargs)
        return kwargs[field_name], field_name


def _fill(argument: str, values: Mapping[str, float]) -> str:
    try:
        return _Filler().vformat(argument, (), values)
    except ValueError as error:
        raise ConfigurationError(
            f"The braces in {argument!r} of SendStat's command do not stand around tags: {str(error).rstrip('.')}.",
            advice="Write `{{` and `}}` for braces that are meant as they are.",
        ) from error


def _run(arguments: Sequence[str], limit_s: float) -> str:
    """Run a program; return what was wrong with it, to end the sentence "`program` …", or nothing."""
    try:
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return f"took longer than {limit_s:g} s and was ended"
    except OSError as error:
        return f"cannot be run ({error.strerror})"
    if not done.returncode:
        return ""
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return f"failed with exit code {done.returncode}" + (f": {said[-1]}" if said else "")
