"""Helper of tests: cancel what runs in another thread as soon as it has begun."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ziggurat.errors import MissingEntryError

__all__ = ["run_and_cancel"]


def run_and_cancel(run: Callable[[], object], cancel: Callable[[], object]) -> None:
    """Call ``run`` in a thread, ``cancel`` until it no longer raises ``MissingEntryError``, and wait for the end."""
    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        try:
            cancel()
            break
        except MissingEntryError:  # it has not begun
            thread.join(0.01)
    thread.join()
