"""Chromium without a driver: commands of the DevTools protocol through a pipe, and nothing that watches its pages."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["FLAGS", "Chromium", "chromium", "path_of_chromium", "why_no_chromium"]

FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_ALONE: Final = (
    "--headless",
    "--hide-scrollbars",
    "--disable-breakpad",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--no-default-browser-check",
)
"""What a driver would add: the browser brings nothing of its own into the pages."""
_WITHIN_S: Final = 60.0
_READ_BYTES: Final = 1 << 20
_COMMANDS, _ANSWERS = 3, 4
"""The file descriptors that Chromium reads commands from, and writes answers to."""


class Chromium:
    """A running browser.

    Args:
        process: its number.
        commands: file descriptor that takes commands.
        answers: file descriptor that gives answers.
    """

    def __init__(self, process: int, commands: int, answers: int) -> None:
        self._process, self._commands, self._answers = process, commands, answers
        self._come = b""
        self._asked = 0

    def send(self, method: str, values: Mapping[str, Any] | None = None, *, session: str = "") -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile are passed over.

        Args:
            method: such as ``Page.navigate``.
            values: of the command.
            session: of the page that it is for; empty for the browser.

        Raises:
            RuntimeError: the browser refused.
            TimeoutError: it did not answer within a minute.
        """
        self._asked += 1
        command = {"id": self._asked, "method": method, "params": values or {}}
        os.write(self._commands, json.dumps(command | ({"sessionId": session} if session else {})).encode() + b"\0")
        end_s = time.monotonic() + _WITHIN_S
        while True:
            answer = json.loads(self._next(end_s))
            if answer.get("id") != self._asked:
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return dict(answer["result"])

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(OSError, RuntimeError):
            self.send("Browser.close")
        os.close(self._commands)
        os.close(self._answers)
        os.kill(self._process, signal.SIGTERM)  # a browser that does not answer would go on
        os.waitpid(self._process, 0)

    def _next(self, end_s: float) -> bytes:
        while b"\0" not in self._come:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, end_s - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium did not answer")
            more = os.read(self._answers, _READ_BYTES)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._come += more
        message, _, self._come = self._come.partition(b"\0")
        return message


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Give Chromium without a window, with a profile of its own."""
    path = path_of_chromium()
    assert path is not None, why_no_chromium()
    with tempfile.TemporaryDirectory(prefix="ziggurat-bench-chromium-", ignore_cleanup_errors=True) as profile:
        words = [path, *_ALONE, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        from_us, commands = os.pipe()
        answers, to_us = os.pipe()
        quiet = os.open(os.devnull, os.O_RDWR)
        actions = [
            *((os.POSIX_SPAWN_DUP2, quiet, number) for number in (0, 1, 2)),
            *_moved({_COMMANDS: from_us, _ANSWERS: to_us}),
        ]
        try:
            process = os.posix_spawn(path, words, os.environ, file_actions=actions)
        finally:
            for each in (from_us, to_us, quiet):
                os.close(each)
        opened = Chromium(process, commands, answers)
        try:
            yield opened
        finally:
            opened.close()


def why_no_chromium() -> str:
    """Return why there is no browser to measure with; empty where there is one."""
    return "" if path_of_chromium() else "there is no Chromium"


def path_of_chromium() -> str | None:
    """Return where Chromium is installed; None where it is not."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def _moved(wanted: Mapping[int, int]) -> list[tuple[Any, ...]]:
    """Return what gives file descriptors new numbers, by way of high ones: a new one may be an old one, too."""
    high = {number: 100 + number for number in wanted}
    away = [(os.POSIX_SPAWN_DUP2, old, high[number]) for number, old in wanted.items()]
    return [*away, *((os.POSIX_SPAWN_DUP2, high[number], number) for number in wanted)]
