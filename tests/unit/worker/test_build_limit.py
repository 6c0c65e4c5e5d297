"""The limit of building a network: a process that had to wait is not called a loop without an end."""

import threading
import time

import pytest

from ziggurat.errors import NetworkCodeError
from ziggurat.worker.build import BuildLimit


def ended(compute: bool) -> NetworkCodeError:
    """Return the error of a limit of a second that computing, or waiting, went beyond."""
    told: list[NetworkCodeError] = []
    over = threading.Event()

    def end(error: NetworkCodeError, _stack: str) -> None:
        told.append(error)
        over.set()

    with BuildLimit(1.0, "network.py", end):
        began = time.monotonic()
        while not over.is_set() and time.monotonic() - began < 30:
            if not compute:
                over.wait(30)
    return told[0]


@pytest.mark.parametrize(
    ("compute", "said"),
    [(True, "Look for a loop without an end there"), (False, "The machine is full, or the code waits")],
)
def test_only_what_computed_is_called_a_loop(compute, said, monkeypatch):
    monkeypatch.setattr("ziggurat.worker.build._BACKSTOP_S", 60.0)  # on a full machine it would end the test process
    assert ended(compute).advice.startswith(said)
