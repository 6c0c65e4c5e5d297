"""A stand-in for a studio, which remembers what it was asked: for commands that only ask and print."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["studio_stand_in"]

Asked = list[tuple[str, str, Any]]


@contextmanager
def studio_stand_in(answer: Callable[[str, str], tuple[int, Any]]) -> Iterator[tuple[str, Asked]]:
    """Give the address of the stand-in, and method, path and body of each request.

    Args:
        answer: returns status and content for a method and a path below ``/api/v1``.
    """
    asked: Asked = []

    class Answers(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.removeprefix("/api/v1")
            asked.append((self.command, path, json.loads(body or "null")))
            status, content = answer(self.command, path)
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - name of http.server
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()
