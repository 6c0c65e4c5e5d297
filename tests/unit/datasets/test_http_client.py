"""GET requests of sources: redirects, other schemes, sizes and connections that break, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.datasets.folder_sets import picture, put
from tests.unit.datasets.web_folders import serving
from ziggurat.net.http_client import AddressRefusedError, ConnectionBrokenError, HTTPClient, StatusError
from ziggurat.net.ssrf import AllowedAddresses


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Any, str]]:
    put(tmp_path / "web", "set/a.png")
    with serving(tmp_path / "web") as served:
        yield served


@pytest.fixture
def client() -> HTTPClient:
    return HTTPClient(10)


def test_client_returns_body_and_what_the_server_says(web: tuple[Any, str], client: HTTPClient) -> None:
    with client.get(f"{web[1]}/set/a.png") as response:
        assert (response.status, response.media_type, response.length) == (200, "image/png", len(picture(0)))
        assert response.content(response.length) == picture(0)
    with client.get(f"{web[1]}/set") as response:
        assert (response.url, response.media_type, response.charset) == (f"{web[1]}/set/", "text/html", "utf-8")


def test_client_gives_up_after_ten_redirects(web: tuple[Any, str], client: HTTPClient) -> None:
    web[0].away = f"{web[1]}/away/"
    with pytest.raises(StatusError, match="HTTP status 302"):
        client.get(f"{web[1]}/away/a.png")
    assert web[0].asked == ["/away/a.png"] * 11


@pytest.mark.parametrize("target", ["file:///etc/", "ftp://127.0.0.1/"])
def test_client_follows_no_redirect_out_of_the_web(web: tuple[Any, str], client: HTTPClient, target: str) -> None:
    web[0].away = target
    with pytest.raises(StatusError) as refused:
        client.get(f"{web[1]}/away/passwd")
    assert refused.value.status == 302


def test_client_checks_where_a_redirect_leads(web: tuple[Any, str], client: HTTPClient) -> None:
    web[0].away = "http://169.254.169.254/"
    named = AllowedAddresses.of("source_hosts", f"127.0.0.1:{web[0].server_port}")
    with pytest.raises(AddressRefusedError) as refused:
        client.get(f"{web[1]}/away/latest", allowed=named)
    assert (refused.value.host, refused.value.port) == ("169.254.169.254", 80)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http:///x", "http://a:b/"])
def test_client_refuses_what_is_no_web_address(client: HTTPClient, url: str) -> None:
    with pytest.raises(OSError, match=r"begins with http|nvalid"):
        client.get(url)


def test_client_keeps_authorization_on_its_host(web: tuple[Any, str], client: HTTPClient) -> None:
    web[0].password, web[0].away = "Basic x", f"{web[1]}/set/"
    with client.get(f"{web[1]}/away/a.png", authorization="Basic x") as response:
        assert response.content(1 << 20) == picture(0)


def test_client_reads_no_more_than_was_asked_for(web: tuple[Any, str], client: HTTPClient) -> None:
    with client.get(f"{web[1]}/set/a.png") as response, pytest.raises(OSError, match="more than 10 bytes"):
        response.content(10)


def test_client_says_that_a_connection_broke(web: tuple[Any, str], client: HTTPClient) -> None:
    web[0].broken.append("/set/a.png")
    with client.get(f"{web[1]}/set/a.png") as response, pytest.raises(ConnectionBrokenError, match="broke"):
        response.content(1 << 20)
