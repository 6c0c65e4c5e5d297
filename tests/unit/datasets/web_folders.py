"""A real server of folders for the tests of sources that are fetched, and fetching from it."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ziggurat.datasets.sources import SourceLimits, open_source

QUICK = SourceLimits(wait_s=0, timeout_s=10)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Python's own server, which counts requests, breaks some, and may ask for a password."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append(unquote(self.path))
        if server.password and self.headers.get("Authorization") != server.password:
            self.send_error(401)
        elif server.broken and unquote(self.path) in server.broken:
            self.broken()
        elif self.path.startswith("/away/"):
            self.send_response(302)
            self.send_header("Location", server.away + self.path.removeprefix("/away/"))
            self.end_headers()
        else:
            super().do_GET()

    def broken(self) -> None:
        server: Any = self.server
        server.broken.remove(unquote(self.path))
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"half")

    def log_message(self, *_args: object) -> None:
        pass


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[Any, str]]:
    """Give a server of a folder that runs, and its address."""
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked, server.broken, server.password, server.away = [], [], "", ""
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def fetched(tmp_path: Path, url: str, limits: SourceLimits = QUICK) -> Path:
    """Return the folder or file that a URL was copied to."""
    return open_source(url, tmp_path / "cache", limits=limits)
