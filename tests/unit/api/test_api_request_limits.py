"""Heads and trailers of requests have limits, bodies have none here."""

import asyncio
import socket
import threading

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse

from ziggurat.net.http_protocol import RequestDeadlines

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
LINES = b"X-A: b\r\n" * 50
LONG = b"x" * 30_000


@pytest.fixture(scope="module")
def address():
    application = FastAPI()

    @application.api_route("/", methods=["GET", "POST"])
    async def sizes(request: Request):
        return PlainTextResponse(f"{len(await request.body())} bytes, {len(request.headers)} headers")

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, http=RequestDeadlines, log_config=None))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join(30)


def answer(address, *parts, until=b""):
    """Send parts, and read until the server closes the connection or has sent a text."""
    with socket.create_connection(address, timeout=30) as connection:
        for part in parts:
            connection.sendall(part)
        text = b""
        while (not until or until not in text) and (block := connection.recv(4096)):
            text += block
        return text


@pytest.mark.parametrize(
    "parts",
    [
        (GET, *[LINES] * 5),
        (b"GET / HTTP/1.0\r\n", *[LINES] * 5),
        (GET, b"X-Long: ", LONG, LONG, LONG),
        (b"GET /", LONG, LONG, LONG),
        (GET, *[b"X-Long: " + LONG + b"\r\n"] * 3),
        (b"\r\n" * 10_000, *[b"\r\n" * 10_000] * 4),
        (CHUNKED, *[LINES] * 5),
        (CHUNKED, b"X-Long: ", LONG, LONG, LONG),
        (CHUNKED.removesuffix(b"0\r\n"), b"1;", LONG, LONG, LONG),
    ],
    ids=["lines", "http-1.0", "header", "url", "headers", "blank", "trailer-lines", "trailer", "chunk-extension"],
)
def test_serving_answers_431_to_a_head_without_end(address, parts):
    text = answer(address, *parts)
    assert text.startswith(b"HTTP/1.1 431 ")
    assert text.endswith(b"The head of the request is too large: at most 64 kB in 200 lines.\n")


def test_serving_limits_each_request_of_a_connection(address):
    text = answer(address, (GET + LINES + b"\r\n") * 5, until=b"HTTP/1.1 200 OK")
    assert text.startswith(b"HTTP/1.1 200 OK")
    with socket.create_connection(address, timeout=30) as connection:
        for _ in range(5):
            connection.sendall(GET + LINES + b"X-Long: " + LONG + b"\r\n\r\n")
            text = b""
            while b"0 bytes" not in text:
                text += connection.recv(4096)
        connection.sendall(GET + LINES * 5)
        assert connection.recv(4096).startswith(b"HTTP/1.1 431 ")


def test_serving_limits_the_requests_that_wait(address):
    text = answer(address, (GET + b"\r\n") * 1000)
    assert text.count(b"HTTP/1.1 200") < 100


@pytest.mark.parametrize("size", [5000, 50])
def test_serving_takes_bodies_of_any_length(address, size):
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (5 << 20)
    body = b"\n" * (5 << 20)
    assert b"5242880 bytes" in answer(address, head, body, until=b"headers")
    chunk = b"%x\r\n" % size + b"\n" * size + b"\r\n"
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    text = answer(address, head, chunk * 2000, b"0\r\nX-Sum: 1\r\n\r\n", until=b"headers")
    assert b"%d bytes" % (size * 2000) in text


def test_serving_takes_a_head_just_below_the_limit(address):
    text = answer(address, GET, b"X-A: b\r\n" * 199, b"\r\n", until=b"headers")
    assert b"0 bytes" in text
    text = answer(address, GET, b"X-Long: ", LONG, LONG, b"\r\n\r\n", until=b"headers")
    assert b"0 bytes" in text
