"""Command-line entry of the worker: locks a job folder, runs one attempt, returns an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ziggurat.atomic import private_files
from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.errors import JobError, ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.worker.attempt import run_attempt
from ziggurat.worker.lock import FolderLock
from ziggurat.worker.parent_watch import ParentWatch
from ziggurat.worker.stopping import StopRequest, StopSignals

__all__ = ["EXIT_DONE", "EXIT_STOPPED", "main"]

_CODES = """
exit codes:
  0   the job is complete
  75  somebody asked it to stop; everything is saved, and it can be resumed
  1   an error that nobody expected
  2   the worker was called wrongly
  3   the spec, a setting or an option is not valid, or a name is unknown
  4   the data cannot be used
  5   the network file failed
  6   the training cannot go on
  7   no checkpoint can be loaded
  8   a package is not installed
  9   a plugin failed
  10  there is no job in the folder, or another worker is at it
  11  the disk is full or not writable
"""


def main(arguments: Sequence[str] | None = None, *, request: StopRequest | None = None) -> int:
    """Execute the job in a folder once, or go on with it; return the exit code.

    0: complete. 75: asked to stop, saved, can be resumed. Others: the codes of the error families (``errors.py``), and
    1 where the error is none of them. Whoever starts a worker removes an old stop request first.

    Args:
        arguments: the words of the command line; those of the process where they are not given.
        request: to stop, where signals are turned into one already.
    """
    parser = argparse.ArgumentParser(
        prog="python -m ziggurat.worker",
        description="Execute the job in a folder, or go on with it.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="job folder with a spec.json")
    parser.add_argument("--end-with", type=int, metavar="PID", help="save and end when this parent process is gone")
    given = parser.parse_args(arguments)
    if request is None:
        request = StopRequest()
        StopSignals(request)
    folder = JobFolder(given.folder)
    try:
        _check(folder)
        with private_files(folder.path), FolderLock(folder.lock):
            parent = None if given.end_with is None else ParentWatch(given.end_with)
            return run_attempt(folder, request, parent=parent)
    except ZigguratError as error:
        sys.stderr.write(f"Error: {error}\n")
        return error.exit_code


def _check(folder: JobFolder) -> None:
    if not folder.spec.is_file():
        raise JobError(
            "A job folder has a spec.json.",
            received=str(folder.path),
            advice="Start a job there with: ziggurat train --out FOLDER.",
        )
