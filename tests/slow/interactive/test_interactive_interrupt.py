"""Ctrl-C in a Python session: a checkpoint is saved, the run says how to go on, and goes on."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import ziggurat as zig
from tests.waiting import wait_until


def test_an_interrupted_run_saves_and_goes_on(home):
    interrupting = threading.Thread(target=interrupt_in_epoch_2)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt, match=r"was stopped at epoch \d+ of 400; a checkpoint is saved\.") as caught:
        zig.train("digits", "mlp", 400, name="long run", progress=False, early_stopping=None, batch_size=64)
    interrupting.join()

    run = zig.load("long run")
    reached = len(run.curves["validation_cost"].steps)
    assert run.state == "stopped"
    assert f"Go on with: ziggurat.load({run.id!r}).resume()" in str(caught.value)

    interrupting = threading.Thread(target=interrupt_in_epoch_2, args=(reached + 2,))
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        run.resume(progress=False)
    interrupting.join()
    assert len(run.curves["validation_cost"].steps) > reached
    steps = run.curves["validation_cost"].steps
    assert list(steps) == sorted(set(steps))


def interrupt_in_epoch_2(points: int = 2) -> None:
    """Press Ctrl-C when the newest run has validated so often."""

    def has_begun() -> bool:
        found = [each for each in zig.runs(1) if each.name == "long run"]
        return any(len(each.curves.get("validation_cost", EMPTY).steps) >= points for each in found)

    wait_until(has_begun)
    os.kill(os.getpid(), signal.SIGINT)


class EMPTY:
    steps = ()
