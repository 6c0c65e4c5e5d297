"""A real server of weights on this machine, and entries of a download list for it."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ziggurat.zoo.public_weights import PublicWeights


class WeightServer(ThreadingHTTPServer):
    """Serves files.

    Attributes:
        files: path → content.
        cut: paths of which less is sent than said.
        slow: as long as it is not set, a file stops in its middle.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), WeightHandler)
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.slow = threading.Event()
        self.slow.set()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class WeightHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, WeightServer)
        content = server.files.get(self.path)
        self.send_response(200 if content is not None else 404)
        content = content or b""
        self.send_header("Content-Length", str(len(content) + (100 if self.path in server.cut else 0)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        self.wfile.flush()
        server.slow.wait(60)
        with suppress(ConnectionError):  # a download that was canceled
            self.wfile.write(content[half:])

    def log_message(self, *_args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[WeightServer]:
    """Give a server that runs."""
    made = WeightServer()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        made.slow.set()
        made.shutdown()
        thread.join()
        made.server_close()


def entry_of(server: WeightServer, content: bytes, **changes: object) -> PublicWeights:
    """Return an entry whose file the server has."""
    server.files["/small.safetensors"] = content
    entry = PublicWeights(
        name="resnet18",
        title="Small",
        network="resnet18",
        url=server.url("/small.safetensors"),
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        license="MIT",
        source="the tests",
        class_count=3,
    )
    return dataclasses.replace(entry, **changes)
