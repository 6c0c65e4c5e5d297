"""TensorBoard process: ``python -m ziggurat.services.tensorboard_process``; it ends with its parent.

TensorBoard itself neither reports its port nor notices that its parent process has ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from ziggurat.entities.parent_watch import ParentWatch

__all__ = [
    "MISSING",
]


MISSING: Final = b"missing"
"""What the line holds in place of a port where TensorBoard is not installed."""

_HOST: Final = "127.0.0.1"
_WATCH_S: Final = 0.5


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve event files on a free port of this machine alone; write the port on a line of standard output once ready.

    It serves until it is killed, or its parent is gone; then it ends its whole group.
    """
    parser = argparse.ArgumentParser(prog="python -m ziggurat.services.tensorboard_process", description=__doc__)
    parser.add_argument("--prefix", required=True, help="path that all addresses begin with")
    parser.add_argument("--end-with", type=int, required=True, metavar="PID", help="end when this parent is gone")
    parser.add_argument("folder", help="folder of the event files; it need not be there yet")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a thread that waits for signals itself may have started this
    answer = os.dup(1)
    os.dup2(2, 1)
    _end_with(given.end_with)
    os.write(answer, _serve(given.folder, given.prefix) + b"\n")
    os.close(answer)
    threading.Event().wait()


def _serve(folder: str, prefix: str) -> bytes:
    try:
        from tensorboard import program
    except ModuleNotFoundError as error:
        if error.name != "tensorboard":
            raise
        return MISSING
    board = program.TensorBoard()
    board.configure(
        argv=[
            "tensorboard",
            *("--logdir", folder, "--host", _HOST, "--port", "0"),
            *("--path_prefix", prefix, "--reload_interval", "2"),
        ]
    )
    return str(urlsplit(board.launch()).port).encode()


def _end_with(parent: int) -> None:
    watched = ParentWatch(parent)

    def watch() -> None:
        while not watched.is_gone():
            time.sleep(_WATCH_S)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


if __name__ == "__main__":
    main()
