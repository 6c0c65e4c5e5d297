"""Frameworks that work on this machine, and why others do not; checked in short processes, never imported here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.entities.backend_info import backend_infos, backend_title
from ziggurat.settings import Settings, child_environment

__all__ = ["FrameworkState", "Frameworks", "why_backend_does_not_work", "worker_environment"]

_WITHIN_S: Final = 120.0

_ASK_BACKEND: Final = """
import sys
from ziggurat.entities.backend_info import open_backend
from ziggurat.errors import ZigguratError
try:
    print(open_backend(sys.argv[1]).why_not())
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
        backends: names; those of all that this version can use where it is not given.
        time_limit_s: longest time for one to load.
        environment: of the processes that load them; that of this process if None.
    """

    def __init__(
        self,
        backends: Sequence[str] | None = None,
        *,
        time_limit_s: float = _WITHIN_S,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        usable = [name for name, info in backend_infos().items() if not info.unavailable]
        self._backends = tuple(usable if backends is None else backends)
        self._time_limit_s = time_limit_s
        self._environment = environment
        self._lock = threading.Lock()
        self._known: tuple[FrameworkState, ...] | None = None

    @property
    def known(self) -> tuple[FrameworkState, ...] | None:
        """The result; None before the first request."""
        return self._known

    def find(self) -> tuple[FrameworkState, ...]:
        """Return how each framework is; the first call takes seconds."""
        with self._lock:
            if self._known is None:
                self._known = tuple(
                    FrameworkState(
                        each,
                        backend_title(each),
                        why_backend_does_not_work(each, self._time_limit_s, environment=self._environment),
                    )
                    for each in self._backends
                )
            return self._known

    def forget(self) -> None:
        """Ask again the next time, after something was installed."""
        with self._lock:
            self._known = None


def why_backend_does_not_work(
    name: str, time_limit_s: float = _WITHIN_S, *, environment: Mapping[str, str] | None = None
) -> str:
    """Return why a backend does not work, found in a process of its own; empty where it works.

    Args:
        name: of the backend.
        time_limit_s: longest time for it to load.
        environment: of the process; that of this one if None.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _ASK_BACKEND, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=None if environment is None else dict(environment),
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


def worker_environment(settings: Settings, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a worker, with the variables by which the installed frameworks are set up.

    Args:
        settings: of this process.
        environment: the environment variables; those of the process where it is not given.
    """
    patterns = [pattern for info in backend_infos().values() for pattern in info.worker_variables]
    variables = child_environment(settings, environment, patterns=patterns)
    # Idle threads of PyTorch sleep. By default they spin, and take the cores from others on a busy machine.
    variables.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return variables
