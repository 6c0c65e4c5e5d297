"""Command line of the worker: ``python -m ziggurat.worker FOLDER``."""

import atexit
import os
import sys
import threading
from contextlib import suppress

from ziggurat.worker.stopping import StopRequest, StopSignals


def _end(code: int) -> None:
    """End the process without the clean-up of modules, which takes a second with TensorFlow.

    Args:
        code: exit code.
    """
    # Not a join of each thread: idle threads of pools would wait for work forever; this ends them first.
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader may be gone
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    # Before the imports that take a second: a signal that comes meanwhile must end the worker in order.
    request = StopRequest()
    StopSignals(request)

    from ziggurat.worker.main import main

    _end(main(request=request))
