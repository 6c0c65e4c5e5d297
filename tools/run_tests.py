"""Test sessions of ``make test``: one without a framework, one for each framework, one in a real browser.

A process holds one framework, never two, so TensorFlow's and PyTorch's tests never share one. Arguments are passed on
to every session: ``python -m tools.run_tests -k resume``.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence

__all__ = ["SESSIONS", "main"]

SESSIONS = {
    "no framework": ("not tensorflow and not torch", "tests/tensorflow", "tests/torch", "tests/browser"),
    "TensorFlow": ("tensorflow and not torch", "tests/torch", "tests/browser"),
    "PyTorch": ("torch and not tensorflow", "tests/tensorflow", "tests/browser"),
    "browser": ("browser", "tests/unit", "tests/integration", "tests/tensorflow", "tests/torch"),
}
"""Name of a session → which marks its tests have, and folders whose modules would import another framework.

A test that needs both starts processes and has neither mark.
"""

NO_TESTS = 5


def main(arguments: Sequence[str]) -> int:
    """Run every session, whatever the others gave; return 1 where one failed."""
    # A script starts what it puts into the background with Ctrl-C ignored, and processes of the tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    codes: dict[str, int] = {}
    for name, (marks, *others) in SESSIONS.items():
        began = time.perf_counter()
        print(f"\n=== tests: {name}", flush=True)
        # Tests of a browser share the studio of their file; the others are spread one by one.
        spread = "loadfile" if name == "browser" else "worksteal"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", spread, "--durations=5", "-m", marks]
        command += [f"--ignore={folder}" for folder in others]
        codes[name] = subprocess.run([*command, *arguments], stdin=subprocess.DEVNULL, check=False).returncode
        print(f"=== tests: {name}: {time.perf_counter() - began:.0f} s", flush=True)
    failed = [name for name, code in codes.items() if code not in (0, NO_TESTS)]
    if failed or all(code == NO_TESTS for code in codes.values()):
        print(f"Not every test passed: {', '.join(failed) or 'none was found'}.")
        return 1
    print("Every test passed.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
