"""The limit of building a network: a process that had to wait is not called a loop without an end."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("way", "said"),
    [("compute", "Look for a loop without an end there"), ("wait", "The machine is full, or the code waits")],
)
def test_only_what_computed_is_called_a_loop(way, said):
    command = [sys.executable, "-m", "tests.unit.worker.build_limit_program", way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(said), done.stderr
