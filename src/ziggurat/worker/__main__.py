"""Owns the command line of the worker: ``python -m ziggurat.worker FOLDER``."""

import sys

from ziggurat.worker.main import main

if __name__ == "__main__":
    sys.exit(main())
