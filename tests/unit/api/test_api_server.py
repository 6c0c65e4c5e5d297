"""The app behind a real server: what only sockets show."""

import contextlib
import socket
import threading

import httpx
import pytest
import uvicorn

from tests.waiting import wait_until
from ziggurat.api import StudioServer


@pytest.fixture
def served(site):
    """Serves the app at a free port; gives its address and what ends it."""
    app = site.app(
        routers=["ziggurat.api.accounts:router", "ziggurat.server.event_stream:router", "api_planted_routes:good"]
    )
    listener = socket.create_server(("127.0.0.1", 0))
    server = StudioServer(uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=30, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started)

    def end():
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()

    yield listener.getsockname()[1], end
    end()


def raw(port, text):
    """Send bytes as they are, and return all that comes until the server hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(text)
        received = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                received += part
        return received


def test_streams_end_when_the_server_ends(site, served):
    port, end = served
    with httpx.stream("GET", f"http://127.0.0.1:{port}/api/v1/events?topics=jobs", timeout=30) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 2000"
        site.notices.publish("jobs", "added", "1-a")
        while '"id":"1-a"' not in next(lines):
            pass
        end()
        assert list(lines) == [""]


def test_a_chunked_upload_that_never_ends_is_cut_off(served):
    port, _ = served
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    head = b"PUT /planted/upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert raw(port, head + chunk * 5).startswith(b"HTTP/1.1 413 ")


def test_a_huge_upload_is_refused_before_it_is_sent(served):
    port, _ = served
    head = b"PUT /planted/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
    answer = raw(port, head)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /planted/page HTTP/1.1\r\nHost: localhost\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n",
        b"GET /planted/page HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /planted/page HTTP/1.1\r\nHost: localhost\r\nX-A: b\rSet-Cookie: c\r\nConnection: close\r\n\r\n",
        b"GET /planted/page\r\nX HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /planted/page HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n",
    ],
    ids=["two hosts", "no host", "a line in a header", "a line in the path", "another host"],
)
def test_heads_that_mean_two_things(served, head):
    port, _ = served
    assert raw(port, head).startswith(b"HTTP/1.1 400 ")


def test_a_stranger_gets_only_what_a_proxy_passes_on(served):
    port, _ = served
    head = b"GET /planted/page HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close\r\n\r\n"
    assert raw(port, head).startswith(b"HTTP/1.1 401 ")
