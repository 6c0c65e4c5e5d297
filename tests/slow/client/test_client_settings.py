"""A client finds its studio and its token in the settings, and sends the token to no other studio."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ziggurat.client import Client
from ziggurat.errors import UsageError


class _Studio(BaseHTTPRequestHandler):
    """Says its version, and keeps with what it was asked."""

    asked: list[str | None] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers["Authorization"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"ziggurat": "1", "python": "3"}')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Be silent."""


@pytest.fixture
def listening(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    _Studio.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Studio) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_variables_name_studio_and_token(listening, monkeypatch):
    monkeypatch.setenv("ZIGGURAT_SERVER", listening)
    monkeypatch.setenv("ZIGGURAT_TOKEN", "zig_variable")
    with Client() as client:
        assert client.version()["ziggurat"] == "1"
    with Client(listening + "/") as client:
        client.version()
    with Client(token="zig_given") as client:
        client.version()
    with Client(token="") as client:
        client.version()
    assert _Studio.asked == ["Bearer zig_variable", "Bearer zig_variable", "Bearer zig_given", None]


def test_the_settings_file_does_too(listening, tmp_path):
    file = tmp_path / ".config/ziggurat/settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'server = "{listening}"\ntoken = "zig_file"\n')
    with Client() as client:
        client.version()
    assert _Studio.asked == ["Bearer zig_file"]


def test_a_token_of_another_studio_stays_here(listening, monkeypatch):
    monkeypatch.setenv("ZIGGURAT_SERVER", "https://studio.example.org")
    monkeypatch.setenv("ZIGGURAT_TOKEN", "zig_elsewhere")
    with Client(listening) as client:
        client.version()
    assert _Studio.asked == [None]


def test_a_token_without_a_studio_is_for_the_one_that_is_asked(listening, monkeypatch):
    monkeypatch.setenv("ZIGGURAT_TOKEN", "zig_any")
    with Client(listening) as client:
        client.version()
    assert _Studio.asked == ["Bearer zig_any"]


@pytest.mark.parametrize("token", ["zig_secret\n", "zig secret", "zig_sécret", "zig_\0secret"])
def test_a_token_that_is_none_is_not_shown(token):
    with pytest.raises(
        UsageError, match="The token has spaces or other signs than plain letters, digits and signs"
    ) as caught:
        Client("http://127.0.0.1:9", token)
    assert "cret" not in str(caught.value)
