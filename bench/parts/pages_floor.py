"""Baseline server of the page benchmark: a process that serves files as the studio serves its static files."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

__all__ = ["bare", "floor", "main"]

_COMPRESSION = 5


def bare(page: str) -> str:
    """Return a page of the same size that loads nothing: its text without scripts, style sheets and images.

    Args:
        page: HTML of a page of the studio, or of a part of one.
    """
    page = re.sub(r"<script[^>]*></script>", lambda found: f"<!--{'x' * (len(found[0]) - 7)}-->", page)
    page = re.sub(r"<link[^>]*>", lambda found: f"<!--{'x' * (len(found[0]) - 7)}-->", page)
    page = re.sub(r"\ssrc=", " alt=", page)
    return re.sub(r"\s(hx|data)-", " xx-", page)


@contextmanager
def floor() -> Iterator[tuple[str, Path]]:
    """Give the address of the floor, and the folder whose files it serves."""
    with tempfile.TemporaryDirectory(prefix="ziggurat-bench-floor-") as place:
        words = [sys.executable, "-m", "bench.parts.pages_floor", place]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().strip(), Path(place)
            finally:
                process.terminate()


def main() -> None:
    """Serve the folder of the command line on a free port, which is printed first, until the process is ended."""
    app = Starlette()
    app.add_middleware(GZipMiddleware, minimum_size=800, compresslevel=_COMPRESSION)
    app.mount("/", StaticFiles(directory=Path(sys.argv[1])))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # before the address is said: who asks early waits
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[listener])


if __name__ == "__main__":
    sys.exit(main())
