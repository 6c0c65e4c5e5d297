"""Test sessions: one without a framework, one for each framework, one in a real browser.

A process holds one framework, never two, so TensorFlow's and PyTorch's tests never share one. The first argument may
name a part: ``quick`` is what ``make test`` runs, ``rest`` what the build server runs after it, and ``nightly`` what
``make test-all`` alone adds. Other arguments are passed on to every session: ``tools.run_tests quick -k resume``.

Every session writes how long each test took to ``build/test-durations/PART-SESSION.jsonl``. The report at the end has
the minutes of each session and the most expensive test files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.durations import VARIABLE, by_file

__all__ = ["PARTS", "SESSIONS", "Outcome", "Session", "main"]

SESSIONS = {"no framework": "", "TensorFlow": "tensorflow", "PyTorch": "torch", "browser": "browser"}
"""Name of a session → the folder of its tests; the first has all other folders.

A test that needs both frameworks, or one of them in a process that it starts, stands in those other folders.
"""

WARM = ("TensorFlow", "PyTorch")
"""Sessions that import their framework once for the processes that their tests start; see ``tests.warm``."""

MATRIX = "matrix"
"""Folder of the combinations that ``make test-matrix`` runs, and no session."""

TESTS = Path("tests")
DURATIONS = Path("build/test-durations")
FILES_SHOWN = 10
LOOK_S = 0.2
NO_TESTS = 5
SMOKE = "not nightly and smoke"
ONCE = "not nightly and not smoke"


@dataclass(frozen=True)
class Session:
    """One run of pytest.

    Args:
        name: Key of ``SESSIONS``.
        marks: expression that its tests must match.
        processes: number of test processes.
    """

    name: str
    marks: str = ""
    processes: int = 2

    @property
    def folder(self) -> str:
        """Name of the folder of its tests; empty for all folders that no other session has."""
        return SESSIONS[self.name]


@dataclass(frozen=True)
class Outcome:
    """End of one session.

    Args:
        name: of the session.
        code: exit code of pytest.
        duration_s: how long it took.
        durations: file with the duration of each test.
    """

    name: str
    code: int
    duration_s: float
    durations: Path


# Sessions of one group run at the same time: those of the browser and of the smoke tests mostly wait for processes.
PARTS = {
    "quick": (
        (Session("no framework", "not slow"), Session("TensorFlow", SMOKE, 1)),
        (Session("browser", SMOKE),),
    ),
    "rest": (
        (Session("no framework", "slow and not nightly"), Session("browser", ONCE, 1)),
        (Session("TensorFlow", ONCE),),
        (Session("PyTorch", "not nightly"),),
    ),
    "nightly": tuple((Session(name, "nightly"),) for name in SESSIONS),
    "": tuple((Session(name),) for name in SESSIONS),
}
"""Name of a part → groups of sessions; the first three parts together are all tests, and no test is in two."""


def main(arguments: Sequence[str]) -> int:
    """Run every session of a part, whatever the others gave; return 1 if one failed."""
    # A script starts what it puts into the background with Ctrl-C ignored, and processes of the tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    part = arguments[0] if arguments and arguments[0] in PARTS else ""
    passed_on = arguments[1:] if part else arguments
    outcomes = [outcome for group in PARTS[part] for outcome in _run_group(part, group, passed_on)]
    _report(outcomes)
    failed = [outcome.name for outcome in outcomes if outcome.code not in (0, NO_TESTS)]
    if failed or all(outcome.code == NO_TESTS for outcome in outcomes):
        print(f"Not every test passed: {', '.join(failed) or 'none was found'}.")
        return 1
    print("Every test passed.")
    return 0


def _run_group(part: str, group: Sequence[Session], passed_on: Sequence[str]) -> list[Outcome]:
    """Run sessions at the same time; the output of the first is shown at once, that of the others when they end."""
    with ExitStack() as stack:
        began = time.perf_counter()
        running: list[tuple[Session, subprocess.Popen[bytes], IO[bytes] | None, Path]] = []
        for session in group:
            output = stack.enter_context(tempfile.TemporaryFile()) if running else None
            path = DURATIONS / f"{part or 'all'}-{session.name.replace(' ', '-')}.jsonl"
            path.unlink(missing_ok=True)
            if output is None:
                print(f"\n=== tests: {session.name}", flush=True)
            running.append((session, _start(session, passed_on, path, output), output, path))
        ended_s: dict[str, float] = {}
        while len(ended_s) < len(running):
            for session, process, _, _ in running:
                if session.name not in ended_s and process.poll() is not None:
                    ended_s[session.name] = time.perf_counter() - began
            time.sleep(LOOK_S)
        outcomes: list[Outcome] = []
        for session, process, output, path in running:
            if output is not None:
                print(f"\n=== tests: {session.name}", flush=True)
                output.seek(0)
                sys.stdout.write(output.read().decode(errors="replace"))
            print(f"=== tests: {session.name}: {ended_s[session.name]:.0f} s", flush=True)
            outcomes.append(Outcome(session.name, process.returncode, ended_s[session.name], path))
        return outcomes


def _start(
    session: Session, passed_on: Sequence[str], durations: Path, output: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    # Tests of a browser share the studio of their file; the others are spread one by one.
    spread = "loadfile" if session.name == "browser" else "worksteal"
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(session.processes), "--dist", spread]
    if session.marks:
        command += ["-m", session.marks]
    if session.marks == SMOKE:
        # A few tests: pytest reads no other files for them.
        command += [str(path) for path in sorted((TESTS / session.folder).rglob("test_*.py")) if _has_smoke(path)]
    else:
        # Deselected too: a folder that is named in the arguments is not ignored.
        command += [f"--{leave}={other}" for other in _others(session.folder) for leave in ("ignore", "deselect")]
    variables = {**os.environ, VARIABLE: str(durations.resolve())}
    if session.name in WARM:
        variables["TESTS_WARM"] = session.folder
    if session.name == "PyTorch":
        # PyTorch's threads spin while they wait, and would take the processor from the tests beside them.
        variables.setdefault("OMP_NUM_THREADS", "1")
    return subprocess.Popen(
        [*command, *passed_on], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables
    )


def _has_smoke(path: Path) -> bool:
    return "mark.smoke" in path.read_text(encoding="utf-8")


def _others(folder: str) -> list[Path]:
    """Return the folders that a session leaves to others."""
    if not folder:
        return [TESTS / other for other in (*filter(None, SESSIONS.values()), MATRIX)]
    return sorted(path for path in TESTS.iterdir() if path.is_dir() and path.name != folder)


def _report(outcomes: Sequence[Outcome]) -> None:
    """Print the minutes of each session and the most expensive test files."""
    print("\n=== minutes of each session")
    for outcome in outcomes:
        print(f"{outcome.duration_s / 60:7.1f}  {outcome.name}")
    expensive = by_file(outcome.durations for outcome in outcomes if outcome.durations.is_file())
    print(f"=== the {FILES_SHOWN} most expensive test files: seconds, tests")
    for name, (seconds, count) in list(expensive.items())[:FILES_SHOWN]:
        print(f"{seconds:7.0f}  {count:5d}  {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
