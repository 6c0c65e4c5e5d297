"""Warm process that forks workers, so that tests do not repeat the same imports.

It reads one JSON object a line and answers with one. A fork does what ``python -m ziggurat.worker`` does: signals
first, then ``main``. It is a process of its own, in a process group of its own, that ends as Python ends. Where a
``saver_seed`` is given, it saves checkpoints instead.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from worker_saver import save_for_ever

from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest, StopSignals


def serve() -> None:
    """Answer until standard input ends. In a fork, this ends by ``SystemExit``."""
    for line in sys.stdin:
        asked = json.loads(line)
        answer = {"pid": _forked(asked)} if "arguments" in asked else {"code": _code(asked["poll"])}
        print(json.dumps(answer), flush=True)


def _forked(asked: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.setpgid(0, 0)
    os.environ.update(asked["environment"])
    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
        os.dup2(source, number)
    if asked["largest_file_bytes"]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["largest_file_bytes"],) * 2)
    if "saver_seed" in asked:
        save_for_ever(Path(asked["arguments"][0]), asked["saver_seed"])
    request = StopRequest()
    StopSignals(request)
    sys.exit(main(asked["arguments"], request=request))


def _code(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


if __name__ == "__main__":
    serve()
