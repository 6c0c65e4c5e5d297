"""Command line of the worker: ``python -m ziggurat.worker FOLDER``."""

import sys

from ziggurat.worker.stopping import StopRequest, StopSignals

if __name__ == "__main__":
    # Before the imports that take a second: a signal that comes meanwhile must end the worker in order.
    request = StopRequest()
    StopSignals(request)

    from ziggurat.worker.main import main

    sys.exit(main(request=request))
