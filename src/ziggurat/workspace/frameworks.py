"""Frameworks that work on this machine, and why others do not; checked in short processes, never imported here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.plugins import available

__all__ = ["FrameworkState", "Frameworks", "why_backend_does_not_work"]

_WITHIN_S: Final = 120.0

_NAMES: Final = {"tensorflow": "TensorFlow", "torch": "PyTorch"}
"""Backend → what people call the framework; other backends are no frameworks."""

_ASK_BACKEND: Final = """
import sys
from ziggurat.errors import ZigguratError
from ziggurat.plugins import load
try:
    backend = load("backends", sys.argv[1])
    print((backend() if isinstance(backend, type) else backend).why_not())
except ZigguratError as error:
    print(error)
"""


@dataclass(frozen=True)
class FrameworkState:
    """Whether a framework works.

    Args:
        backend: name of the backend that needs it.
        name: what people call it.
        why_not: why it does not work, and what to do; empty where it works.
    """

    backend: str
    name: str
    why_not: str

    @property
    def works(self) -> bool:
        """Whether it works."""
        return not self.why_not

    @property
    def sentence(self) -> str:
        """What a person is told where it does not work; empty where it does."""
        return "" if self.works else f"{self.name} support is disabled. {self.why_not}"


class Frameworks:
    """The frameworks, each asked once. Any thread may call any method.

    Args:
        backends: names; those that are installed and belong to a framework where it is not given.
        time_limit_s: longest time for one to load.
    """

    def __init__(self, backends: Sequence[str] | None = None, *, time_limit_s: float = _WITHIN_S) -> None:
        installed = [plugin.name for plugin in available("backends") if plugin.name in _NAMES]
        self._backends = tuple(installed if backends is None else backends)
        self._time_limit_s = time_limit_s
        self._lock = threading.Lock()
        self._known: tuple[FrameworkState, ...] | None = None

    @property
    def known(self) -> tuple[FrameworkState, ...] | None:
        """What was found; None while nobody has asked."""
        return self._known

    def find(self) -> tuple[FrameworkState, ...]:
        """Return how each framework is; the first call takes seconds."""
        with self._lock:
            if self._known is None:
                self._known = tuple(
                    FrameworkState(each, _NAMES.get(each, each), why_backend_does_not_work(each, self._time_limit_s))
                    for each in self._backends
                )
            return self._known

    def forget(self) -> None:
        """Ask again the next time, after something was installed."""
        with self._lock:
            self._known = None


def why_backend_does_not_work(name: str, time_limit_s: float = _WITHIN_S) -> str:
    """Return why a backend does not work, found in a process of its own; empty where it works."""
    process = subprocess.Popen(
        [sys.executable, "-c", _ASK_BACKEND, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,  # so that it can be ended with all that the framework may have started
    )
    try:
        out, words = process.communicate(timeout=time_limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"It did not load within {time_limit_s:.0f} s."
    if process.returncode:
        lines = words.strip().splitlines()
        said = lines[-1] if lines else "no word"
        return f"It ended the process that loaded it (exit code {process.returncode}): {said}"
    return out.strip()
