"""Shows that only so many look at a time, and that a turn comes back whatever happened in it."""

import threading

import pytest

from ziggurat.workspace.passwords import TooBusyError
from ziggurat.workspace.studio.networks import NETWORKS_AT_ONCE, turn


def test_a_third_one_is_told_to_come_back():
    free = threading.BoundedSemaphore(NETWORKS_AT_ONCE)
    with turn(free, 0), turn(free, 0), pytest.raises(TooBusyError, match="At most 2 networks"), turn(free, 0):
        pass
    with turn(free, 0), turn(free, 0):
        pass


def test_one_that_waits_gets_the_turn_of_one_that_failed():
    free, got = threading.BoundedSemaphore(1), threading.Event()

    def second():
        with turn(free, wait_s=30):
            got.set()

    thread = threading.Thread(target=second)
    with pytest.raises(ValueError), turn(free, wait_s=30):
        thread.start()
        raise ValueError
    thread.join(30)
    assert got.is_set()
