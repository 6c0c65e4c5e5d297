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


PROCESSES = 3
"""How many test processes run at the same time: one more than two cores have, since many of them mostly wait."""

PARTS = {
    "quick": (
        Session("no framework", "not slow"),
        Session("TensorFlow", SMOKE, 1),
        Session("browser", SMOKE),
    ),
    "rest": (
        Session("browser", ONCE, 1),
        Session("no framework", "slow and not nightly"),
        Session("TensorFlow", ONCE),
        Session("PyTorch", "not nightly"),
    ),
    "nightly": tuple(Session(name, "nightly") for name in SESSIONS),
    "": tuple(Session(name) for name in SESSIONS),
}
"""Name of a part → its sessions, in the order in which they start; the first three parts together are all tests, and no
test is in two."""


@dataclass
class _Running:
    session: Session
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None
    durations: Path
    began_s: float


def main(arguments: Sequence[str]) -> int:
    """Run every session of a part, whatever the others gave; return 1 if one failed."""
    # A script starts what it puts into the background with Ctrl-C ignored, and processes of the tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    part = arguments[0] if arguments and arguments[0] in PARTS else ""
    passed_on = arguments[1:] if part else arguments
    outcomes = _run(part, passed_on)
    _report(outcomes)
    failed = [outcome.name for outcome in outcomes if outcome.code not in (0, NO_TESTS)]
    if failed or all(outcome.code == NO_TESTS for outcome in outcomes):
        print(f"Not every test passed: {', '.join(failed) or 'none was found'}.")
        return 1
    print("Every test passed.")
    return 0


def _run(part: str, passed_on: Sequence[str]) -> list[Outcome]:
    """Run each session once its processes are free; the output of one that starts beside others is shown at its end."""
    waiting, running, outcomes = list(PARTS[part]), list[_Running](), list[Outcome]()
    with ExitStack() as stack:
        while waiting or running:
            if waiting and sum(each.session.processes for each in running) + waiting[0].processes <= PROCESSES:
                session = waiting.pop(0)
                output = stack.enter_context(tempfile.TemporaryFile()) if running else None
                if output is None:
                    print(f"\n=== tests: {session.name}", flush=True)
                path = DURATIONS / f"{part or 'all'}-{session.name.replace(' ', '-')}.jsonl"
                path.unlink(missing_ok=True)
                process = _start(session, passed_on, path, output)
                running.append(_Running(session, process, output, path, time.perf_counter()))
                continue
            ended = [each for each in running if each.process.poll() is not None]
            for each in ended:
                running.remove(each)
                outcomes.append(_end(each))
            if not ended:
                time.sleep(LOOK_S)
    return outcomes


def _end(ended: _Running) -> Outcome:
    """Show the output of a session that was held back, and how long it took."""
    duration_s = time.perf_counter() - ended.began_s
    if ended.output is not None:
        print(f"\n=== tests: {ended.session.name}", flush=True)
        ended.output.seek(0)
        sys.stdout.write(ended.output.read().decode(errors="replace"))
    print(f"=== tests: {ended.session.name}: {duration_s:.0f} s", flush=True)
    return Outcome(ended.session.name, ended.process.returncode, duration_s, ended.durations)


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
