"""Process that joins others and is killed on its way if it is the second, for tests."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from typing import Any

from torch import distributed

from ziggurat.torch import processes


def _killed(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(killed_in: str) -> None:
    processes._JOINING = timedelta(seconds=1)
    if os.environ["RANK"] == "1":
        setattr(distributed, killed_in, _killed)
    processes.join_processes("cpu")


if __name__ == "__main__":
    main(sys.argv[1])
