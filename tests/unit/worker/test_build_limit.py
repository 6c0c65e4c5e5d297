"""The limit of building a network: a process that had to wait is not called a loop without an end."""

import gc
import subprocess
import sys
import threading

import pytest

from ziggurat.worker.build import BuildLimit


@pytest.mark.parametrize(
    ("way", "said"),
    [("compute", "Look for a loop without an end there"), ("wait", "The machine is full, or the code waits")],
)
def test_only_what_computed_is_called_a_loop(way, said):
    command = [sys.executable, "-m", "tests.unit.worker.build_limit_program", way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(said), done.stderr


def test_nothing_is_collected_while_frames_are_listed(monkeypatch):
    over, collects = threading.Event(), []
    listed = sys._current_frames

    def frames():
        collects.append(gc.isenabled())
        return listed()

    monkeypatch.setattr(sys, "_current_frames", frames)
    with BuildLimit(0.01, "network.py", lambda _error, _stack: over.set()):
        assert over.wait(60)
    assert collects == [False]
    assert gc.isenabled()
