"""Command line of inference processes: ``python -m ziggurat.worker.inference FOLDER``."""

import os
import sys

from ziggurat.worker.inference.process import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of the user's file must not keep an idle process alive
