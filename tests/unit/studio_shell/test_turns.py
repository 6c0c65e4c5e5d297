"""Shows that only so many look at a time, and that a turn comes back whatever happened in it."""

import threading

import pytest

from ziggurat.workspace.passwords import TooBusyError
from ziggurat.workspace.studio.turns import Turns


def test_a_third_one_is_told_to_come_back():
    turns = Turns(2, wait_s=0.0)
    with turns.turn(), turns.turn(), pytest.raises(TooBusyError, match="At most 2 networks"), turns.turn():
        pass
    with turns.turn(), turns.turn():
        pass


def test_one_that_waits_gets_the_turn_of_one_that_failed():
    turns, got = Turns(1, wait_s=30.0), threading.Event()

    def second():
        with turns.turn():
            got.set()

    thread = threading.Thread(target=second)
    with pytest.raises(ValueError), turns.turn():
        thread.start()
        raise ValueError
    thread.join(30)
    assert got.is_set()
