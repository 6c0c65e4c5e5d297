"""The client listens through breaks: it goes on where it was, and knows that it may have missed something."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ziggurat.client.connection import Connection, Notice, notices
from ziggurat.errors import UsageError

_EVENTS = (
    'retry: 2000\nid: 4\nevent: hello\ndata: {"server":"a"}\n\n: still here\n\n'
    'id: 5\nevent: state\ndata: {"topic":"jobs","kind":"state","id":"one","offset":0}\n\n'
)
_MORE = (
    'retry: 2000\nevent: hello\ndata: {"server":"a"}\n\n'
    'id: 6\nevent: added\ndata: {"topic":"jobs","kind":"added","id":"two","offset":0}\n\n'
)


class _Studio(BaseHTTPRequestHandler):
    """Answers with events, and breaks off after them."""

    asked: list[str | None] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers["Last-Event-ID"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write((_EVENTS if len(self.asked) == 1 else _MORE).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Be silent."""


@pytest.fixture
def breaking_studio():
    _Studio.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Studio) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_break_is_bridged(breaking_studio):
    connection, waits = Connection(breaking_studio, "", 5.0), []
    heard = notices(connection, ["jobs"], sleep=waits.append)

    assert [next(heard) for _ in range(4)] == [
        Notice(kind="reload", topic="", id=""),
        Notice(kind="state", topic="jobs", id="one"),
        Notice(kind="reload", topic="", id=""),
        Notice(kind="added", topic="jobs", id="two"),
    ]
    assert _Studio.asked == [None, "5"]
    assert waits == [1.0]
    connection.close()


def test_a_studio_that_stays_away_is_given_up():
    connection, waits = Connection("http://127.0.0.1:9", "", 5.0), []

    with pytest.raises(UsageError, match="ziggurat up"):
        next(notices(connection, ["jobs"], tries=3, sleep=waits.append))
    assert waits == [1.0, 2.0, 4.0]
    connection.close()
