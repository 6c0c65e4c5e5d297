"""Reverse proxies for the tests: nginx as the guide configures it, and a minimal one."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.waiting import PROCESS_S, wait_until

__all__ = ["NGINX", "nginx", "small_proxy"]

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
_GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "behind-nginx.md"
_OF_ONE_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "x-forwarded-for"}


@contextmanager
def nginx(folder: Path, studio: str, prefix: str, *, is_kept: bool) -> Iterator[str]:
    """Give the address of an nginx before a studio, with the lines of the guide, without TLS.

    Args:
        folder: for its files.
        studio: address of the studio, without its prefix.
        prefix: of the studio.
        is_kept: whether nginx passes the prefix on, or takes it away.
    """
    assert NGINX is not None
    port = _free_port()
    (folder / "nginx.conf").write_text(_configuration(folder, port, studio, prefix, is_kept))
    words = [NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    with (folder / "out.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None, PROCESS_S)
        assert process.poll() is None, (folder / "out.log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def small_proxy(studio: str, prefix: str, *, is_kept: bool) -> Iterator[str]:
    """Give the address of a proxy in this process; arguments as of ``nginx``."""
    handler = type("Handler", (_Handler,), {"studio": studio, "taken": "" if is_kept else prefix})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _configuration(folder: Path, port: int, studio: str, prefix: str, is_kept: bool) -> str:
    lines = _lines_of_the_guide().replace("http://127.0.0.1:5000", studio + ("" if is_kept else "/"))
    places = "\n".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.getuid() == 0 else ""
    return f"""
        {user} daemon off; pid {folder}/pid; worker_processes 1; events {{}}
        http {{ access_log off; {places}
        server {{ listen 127.0.0.1:{port}; client_max_body_size 0; proxy_request_buffering off;
        location {prefix}/ {{ {lines} }} }} }}
    """


def _lines_of_the_guide() -> str:
    """Return what the guide puts into `location`."""
    found = re.search(r"location / \{\n(.*?)\n\s*\}", _GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    assert "proxy_pass http://127.0.0.1:5000;" in found[1]
    return found[1]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a stream of events ends with the browser, or with the studio

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that goes away in the middle of an answer is no fault."""


class _Handler(BaseHTTPRequestHandler):
    """Passes a request on and its answer back, as it comes."""

    studio: ClassVar[str]
    taken: ClassVar[str]

    def do_GET(self) -> None:
        """Pass it on."""
        self._pass_on()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class has it
        """Say nothing."""

    def _pass_on(self) -> None:
        path = self.path.removeprefix(self.taken) or "/"
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_HOP}
        headers |= {"Host": self.headers["Host"], "X-Forwarded-For": self.client_address[0], "Connection": "close"}
        place = urlsplit(self.studio)
        with contextlib.closing(
            http.client.HTTPConnection(place.hostname or "", place.port, timeout=120)
        ) as connection:
            connection.request(self.command, path, body or None, headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_ONE_HOP | {"date", "server"}:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while part := answer.read1(65536):
                self.wfile.write(part)
                self.wfile.flush()
