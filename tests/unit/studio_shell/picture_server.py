"""A real server for the tests of images that are fetched; it says what it was asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cv2
import numpy as np

PICTURE = cv2.imencode(".png", np.full((6, 8, 3), 200, np.uint8))[1].tobytes()
FETCHED_BYTES = 21_000_000


class PictureServer(ThreadingHTTPServer):
    """Serves an image, and what goes wrong.

    Attributes:
        asked: path and ``Host`` of each request.
        redirects: path → address it leads to.
        ended: set at the end; a body without an end ends then.
    """

    daemon_threads = False
    block_on_close = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str]] = []
        self.redirects: dict[str, str] = {}
        self.ended = threading.Event()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return an address of it."""
        return f"http://{host}:{self.port}{path}"


class _Handler(BaseHTTPRequestHandler):
    @property
    def _pictures(self) -> PictureServer:
        assert isinstance(self.server, PictureServer)
        return self.server

    def do_GET(self) -> None:
        self._pictures.asked.append((self.path, self.headers["Host"]))
        path = self.path.partition("?")[0]
        with suppress(ConnectionError):
            if path in self._pictures.redirects:
                self._begin(302, Location=self._pictures.redirects[path])
            elif path == "/slow.png":
                self._drip()
            elif path in ("/endless.png", "/large.png"):
                self._much(path)
            else:
                self._whole({"/cat.png": PICTURE, "/page.html": b"<html>a page</html>"}.get(path))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def _begin(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _whole(self, content: bytes | None) -> None:
        self._begin(404 if content is None else 200)
        self.wfile.write(content or b"nothing")

    def _drip(self) -> None:
        self._begin(200)
        while not self._pictures.ended.wait(0.02):
            self.wfile.write(b"x")

    def _much(self, path: str) -> None:
        self._begin(200, **({"Content_Length": str(FETCHED_BYTES)} if path == "/large.png" else {}))
        while not self._pictures.ended.is_set():
            self.wfile.write(bytes(1 << 16))


@contextmanager
def serving_pictures() -> Iterator[PictureServer]:
    """Give a server that runs."""
    with PictureServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()
