"""Goes beyond a limit of a second by computing, or by waiting, and prints the advice of its error.

In a process of its own: the backstop of the limit ends the whole process.
"""

import sys
import threading
import time

from ziggurat.errors import NetworkCodeError
from ziggurat.worker.build import BuildLimit


def main(way: str) -> None:
    """Print the advice; ``way`` is ``compute`` or ``wait``."""
    told: list[NetworkCodeError] = []
    over = threading.Event()

    def end(error: NetworkCodeError, _stack: str) -> None:
        told.append(error)
        over.set()

    with BuildLimit(1.0, "network.py", end):
        began = time.monotonic()
        while not over.is_set() and time.monotonic() - began < 10:
            if way == "wait":
                over.wait(10)
    print(told[0].advice)


if __name__ == "__main__":
    main(sys.argv[1])
