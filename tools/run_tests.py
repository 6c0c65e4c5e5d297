"""Test sessions: one without a framework, one for each framework, one in a real browser.

A process holds one framework, never two, so TensorFlow's and PyTorch's tests never share one. The first argument may
name a part: ``quick`` is what ``make test`` runs, ``rest`` what the build server runs after it, and ``nightly`` what
``make test-all`` alone adds. Other arguments are passed on to every session: ``tools.run_tests quick -k resume``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["PARTS", "SESSIONS", "main"]

SESSIONS = {"no framework": "", "TensorFlow": "tensorflow", "PyTorch": "torch", "browser": "browser"}
"""Name of a session → the folder of its tests; the first has all other folders.

A test that needs both frameworks, or one of them in a process that it starts, stands in those other folders.
"""

PARTS = {"quick": "not slow", "rest": "slow and not nightly", "nightly": "nightly"}
"""Name of a part → which marks its tests have; together they are all tests, and no test is in two."""

MATRIX = "matrix"
"""Folder of the combinations that ``make test-matrix`` runs, and no session."""

TESTS = Path("tests")
NO_TESTS = 5


def main(arguments: Sequence[str]) -> int:
    """Run every session, whatever the others gave; return 1 where one failed."""
    # A script starts what it puts into the background with Ctrl-C ignored, and processes of the tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    part = arguments[0] if arguments and arguments[0] in PARTS else ""
    cost = ["-m", PARTS[part]] if part else []
    passed_on = arguments[1:] if part else arguments
    codes: dict[str, int] = {}
    for name, folder in SESSIONS.items():
        if not (TESTS / folder).is_dir():
            continue
        began = time.perf_counter()
        print(f"\n=== tests: {name}", flush=True)
        # Tests of a browser share the studio of their file; the others are spread one by one.
        spread = "loadfile" if name == "browser" else "worksteal"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", spread, "--durations=5", *cost]
        # Deselected too: a folder that is named in the arguments is not ignored.
        command += [f"--{leave}={other}" for other in _others(folder) for leave in ("ignore", "deselect")]
        # PyTorch's threads spin while they wait, and would take the processor from the tests beside them.
        variables = {"OMP_NUM_THREADS": "1", **os.environ} if name == "PyTorch" else None
        done = subprocess.run([*command, *passed_on], stdin=subprocess.DEVNULL, env=variables, check=False)
        codes[name] = done.returncode
        print(f"=== tests: {name}: {time.perf_counter() - began:.0f} s", flush=True)
    failed = [name for name, code in codes.items() if code not in (0, NO_TESTS)]
    if failed or all(code == NO_TESTS for code in codes.values()):
        print(f"Not every test passed: {', '.join(failed) or 'none was found'}.")
        return 1
    print("Every test passed.")
    return 0


def _others(folder: str) -> list[Path]:
    """Return the folders that a session leaves to others."""
    if not folder:
        return [TESTS / other for other in (*filter(None, SESSIONS.values()), MATRIX)]
    return sorted(path for path in TESTS.iterdir() if path.is_dir() and path.name != folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
