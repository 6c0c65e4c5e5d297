"""One-shot tasks leave no process behind, and their answers have a limit."""

import sys

import pytest

from ziggurat.entities.processes import began_at
from ziggurat.errors import NetworkCodeError
from ziggurat.workspace.tasks import run_task

ESCAPE = """
import json, os, signal
there, ready = os.pipe()
if not os.fork():
    os.setsid()
    if not os.fork():
        os.write(ready, str(os.getpid()).encode())
        signal.pause()
    os._exit(0)
os.wait()
print(json.dumps({"escaped": int(os.read(there, 20))}), flush=True)
"""
MUCH = """
import os, signal
for _ in range(65):
    os.write(1, bytes(1 << 20))
"""


def command(code):
    return [sys.executable, "-S", "-c", code]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to the parent above")
def test_task_ends_processes_of_other_sessions():
    escaped = run_task("describe", {}, command=command(ESCAPE))["escaped"]
    assert began_at(escaped) is None


@pytest.mark.parametrize("then", ["signal.pause()", "os._exit(0)"])
def test_task_refuses_an_answer_beyond_64_mib(then):
    with pytest.raises(NetworkCodeError, match=r"The answer of the task `describe` has .*; at most 6"):
        run_task("describe", {}, command=command(MUCH + then))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while True: pass", "Look for a loop without an end"),
        ("import signal; signal.pause()", "The machine is full, or"),
    ],
)
def test_only_a_task_that_computed_is_called_a_loop(code, said):
    with pytest.raises(NetworkCodeError, match="it ran longer than 1") as caught:
        run_task("describe", {}, command=command(code), time_limit_s=1.5)
    assert caught.value.advice.startswith(said)
