"""Receivers for the tests of notifications: a web server, and a mail server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Received", "WebReceiver", "web_receiver"]


@dataclass(frozen=True)
class Received:
    """One request: its path, headers and body."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class WebReceiver:
    """What the server does and got.

    Args:
        port: of the server.
        answers: statuses of the next answers; 204 when they are used up.
        location: header of each answer.
        may_answer: unset, the server takes requests and answers none.
        got: requests.
        came: released once for each request.
    """

    port: int
    answers: list[int] = field(default_factory=list)
    location: str = ""
    may_answer: threading.Event = field(default_factory=threading.Event)
    got: list[Received] = field(default_factory=list)
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=in-the-url"


@contextmanager
def web_receiver() -> Iterator[WebReceiver]:
    """Run a web server that takes messages."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(Received(self.path, dict(self.headers), body))
            receiver.came.release()
            receiver.may_answer.wait()
            self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = WebReceiver(server.server_address[1])
    receiver.may_answer.set()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()
