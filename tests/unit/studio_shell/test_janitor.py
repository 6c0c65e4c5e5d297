"""The janitor does all of its duties round after round, whatever one of them does."""

import threading

from ziggurat.workspace.studio.bootstrap import Janitor


def test_every_duty_is_done_again_and_again_although_one_fails(caplog):
    before = set(threading.enumerate())
    rounds, enough = [], threading.Event()

    def fail():
        raise OSError("the disk is away")

    def note():
        rounds.append(len(rounds))
        if len(rounds) == 3:
            enough.set()

    with Janitor([fail, note], every_s=0.01) as janitor:
        assert enough.wait(60)
    janitor.close()
    done = len(rounds)
    assert done >= 3
    assert "the disk is away" in caplog.text
    assert not {thread for thread in threading.enumerate() if thread.name == "janitor"} - before
