"""Command line of the one-shot processes: ``python -m ziggurat.worker.commands NAME < request.json``."""

import os
import sys

from ziggurat.worker.commands.process import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of the user's file must not keep a process whose answer is written
