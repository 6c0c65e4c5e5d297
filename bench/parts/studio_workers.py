"""Stand-in for workers: one process that writes the heartbeat into the folders of all running jobs."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from pathlib import Path

from ziggurat.entities import write_heartbeat
from ziggurat.entities.heartbeat import Heartbeat
from ziggurat.layout import JobFolder

__all__ = ["main"]


def main() -> None:
    """Write the heartbeat of each folder of the command line every second, until the standard input ends."""
    folders = [JobFolder(Path(word)) for word in sys.argv[1:]]
    is_told = False
    while True:
        now = time.time()
        for folder in folders:
            pulse = Heartbeat(pid=os.getpid(), host=socket.gethostname(), time=now, phase="training", step_began=now)
            write_heartbeat(folder.heartbeat, pulse)
        if not is_told:
            print("ready", flush=True)
            is_told = True
        if select.select([sys.stdin], [], [], 1.0)[0]:
            return


if __name__ == "__main__":
    main()
