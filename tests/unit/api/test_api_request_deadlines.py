"""A request that does not arrive in time loses its connection; one that is slow but moves on does not."""

import asyncio
import queue
import socket
import threading

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from starlette.requests import ClientDisconnect

from ziggurat.net.http_protocol import RequestDeadlines

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\n"


@pytest.fixture
def serve():
    """Serve an application that returns the body it got; return the address of the server and what was cut off."""
    started, stopping = [], []
    cut_off = queue.Queue()

    def start(headers_s, body_s):
        application = FastAPI()

        @application.post("/")
        async def echo(request: Request):
            try:
                return PlainTextResponse(await request.body())
            except ClientDisconnect:
                cut_off.put(request.url.path)
                raise

        listener = socket.create_server(("127.0.0.1", 0))
        protocol = type("Impatient", (RequestDeadlines,), {"headers_s": headers_s, "body_s": body_s})
        server = uvicorn.Server(uvicorn.Config(application, http=protocol, log_config=None))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
        thread.start()
        started.append(thread)
        stopping.append(server)
        return listener.getsockname(), cut_off

    yield start
    for server, thread in zip(stopping, started):
        server.should_exit = True
        thread.join(30)


def sent(address, *parts):
    connection = socket.create_connection(address, timeout=60)
    for part in parts:
        connection.sendall(part)
    return connection


def answer_of(connection):
    """Read until the server closes the connection; a test that hangs here found a connection that stays open."""
    with connection:
        text = b""
        while block := connection.recv(4096):
            text += block
        return text


@pytest.mark.parametrize("part", [b"", b"GET / HTTP/1.1\r\nHost: loc", HEAD[:-2]])
def test_a_request_without_a_whole_head_is_closed(serve, part):
    address, _ = serve(headers_s=0.3, body_s=60)
    assert answer_of(sent(address, part)).startswith(b"HTTP/1.1 408 Request Timeout")


def test_a_body_that_stops_arriving_is_closed(serve):
    address, cut_off = serve(headers_s=60, body_s=0.3)
    assert answer_of(sent(address, HEAD, b"abc")) == b""
    assert cut_off.get(timeout=60) == "/"  # the application learns of it a moment later


def test_a_further_request_on_a_connection_has_a_deadline(serve):
    address, _ = serve(headers_s=0.3, body_s=60)
    whole = sent(address, HEAD, b"abcdef", b"GET /further HT")
    assert b"abcdef" in (text := answer_of(whole))
    assert b"408 Request Timeout" in text


def test_a_whole_request_meets_no_deadline(serve):
    address, _ = serve(headers_s=60, body_s=60)
    connection = sent(address, HEAD, b"abc", b"def")
    connection.settimeout(60)
    text = b""
    while b"abcdef" not in text:
        text += connection.recv(4096)
    assert text.startswith(b"HTTP/1.1 200 OK")
    connection.close()
