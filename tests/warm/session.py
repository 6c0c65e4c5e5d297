"""Warm starts of a test session: one template process, and an interpreter that asks it.

``sys.executable`` names a script while the tests run. What starts a worker, a one-shot command or an inference process
by it gets a fork of the template; everything else becomes the real interpreter. Processes that are started by other
processes, as workers of a studio are, begin cold: so do tests of signals, adoption, memory and lazy imports that need
it, by the fixture ``cold_starts``.
"""

import os
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SOCKET = "TESTS_WARM_SOCKET"
"""Environment variable with the template's socket, set by the first process of the session; empty for cold starts."""

REPOSITORY = Path(__file__).parents[2]

MODULES = ("ziggurat.worker", "ziggurat.worker.commands", "ziggurat.worker.inference")

_SCRIPT = """#!/bin/sh
case "$*" in
    # The template has chosen graph mode; the debugger of networks computes eagerly.
    *" debug") exec %s "$@" ;;
esac
if [ "$1" = -m ] && [ -S "${TESTS_WARM_SOCKET}" ] && [ -z "${ZIGGURAT_OUTPUT_IS_LOG}" ]; then
    case "$2" in
        %s) exec %s -I -S %s "${TESTS_WARM_SOCKET}" %s "$@" ;;
    esac
fi
exec %s "$@"
"""


class WarmStarts:
    """The template process of a session, if this is its first process, and the script in every process of it.

    Args:
        framework: Framework that the template imports.
    """

    def __init__(self, framework: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ziggurat-warm-")
        self._python = sys.executable
        self._template: subprocess.Popen[bytes] | None = None
        folder = Path(self._folder.name)
        if not os.environ.get(SOCKET):
            path = str(folder / "socket")
            with socket.socket(socket.AF_UNIX) as listener:
                # Requests wait in its queue while the template imports the framework.
                listener.bind(path)
                listener.listen(64)
                command = [self._python, "-m", "tests.warm.template", framework, str(listener.fileno())]
                self._template = subprocess.Popen(
                    command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, pass_fds=(listener.fileno(),)
                )
            os.environ[SOCKET] = path
        script = folder / "python"
        real = shlex.quote(self._python)
        start = shlex.quote(str(Path(__file__).with_name("start.py")))
        script.write_text(_SCRIPT % (real, "|".join(MODULES), real, start, real, real), encoding="utf-8")
        script.chmod(0o700)
        sys.executable = str(script)

    def close(self) -> None:
        """End the template; later processes start cold."""
        sys.executable = self._python
        if self._template is not None:
            os.environ.pop(SOCKET, None)
            self._template.kill()
            self._template.wait()
        self._folder.cleanup()


@pytest.fixture
def cold_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every process of this test anew, whatever it imports."""
    monkeypatch.setenv(SOCKET, "")
