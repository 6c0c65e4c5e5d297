"""Shows that pages of one person keep step with each other, and that many open pages do not stop one more."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import RunningStudio, note_console

STREAMS = 100


@contextmanager
def _stream(address: str) -> Iterator[socket.socket]:
    """Give an open stream of events, after its first one."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=60) as connection:
        connection.sendall(f"GET /api/v1/events?topics=jobs HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        got = b""
        while b"event: hello" not in got:
            part = connection.recv(65536)
            assert part, got
            got += part
        yield connection


@pytest.fixture
def second(context: BrowserContext) -> Iterator[Page]:
    """Return another tab of the same person."""
    opened, said = context.new_page(), []
    opened.on("console", lambda message: note_console(f"{message.type}: {message.text}", said))
    opened.on("pageerror", lambda error: said.append(str(error)))
    yield opened
    opened.close()
    assert said == []


def _is_live(page: Page) -> None:
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    page.evaluate("document.body.dataset.kept = 'yes'")


def _is_same(page: Page) -> None:
    """The page was never loaded again."""
    assert page.locator("body").get_attribute("data-kept") == "yes"


@pytest.mark.nightly
def test_a_new_name_is_seen_on_other_pages(page: Page, second: Page, server: Any, tiny_model: str) -> None:
    page.goto(f"{server.address}/")
    second.goto(f"{server.address}/models/{tiny_model}")
    _is_live(page)
    _is_live(second)
    page.locator(f"#menu-{tiny_model}").click()
    page.locator(f"#rename-{tiny_model}").click()
    page.get_by_label("New name of tiny").fill("of the first page")
    page.get_by_label("New name of tiny").press("Enter")
    expect(second.get_by_role("heading", level=1)).to_have_text("of the first page")
    _is_same(second)

    second.locator("#job-rename-open").click()
    second.get_by_label("Name", exact=True).fill("tiny")
    second.get_by_label("Name", exact=True).press("Enter")
    expect(page.get_by_role("link", name="tiny", exact=True)).to_be_visible()
    _is_same(page)
    assert server.client.job(tiny_model)["name"] == "tiny"


def test_what_is_deleted_elsewhere_goes(page: Page, second: Page, server: Any, tiny_model: str, model: str) -> None:
    page.goto(f"{server.address}/")
    second.goto(f"{server.address}/")
    _is_live(page)
    expect(page.locator(f"#row-{model}")).to_be_visible()
    second.locator(f"#menu-{model}").click()
    second.locator(f"#act-delete-{model}").click()
    second.get_by_role("dialog").get_by_role("button", name="Delete it").click()
    expect(page.locator(f"#row-{model}")).to_have_count(0)
    expect(page.locator(f"#row-{tiny_model}")).to_be_visible()
    _is_same(page)


def test_a_hundred_open_pages_do_not_stop_one_more(page: Page, server: RunningStudio, tiny_model: str) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(_stream(server.address)) for _ in range(STREAMS)]
        page.goto(f"{server.address}/")
        _is_live(page)
        answer = httpx.patch(f"{server.address}/api/v1/jobs/{tiny_model}", json={"notes": "seen by all"}, timeout=60)
        assert answer.status_code == 200, answer.text
        expect(page.locator(f"#row-{tiny_model} .open")).to_have_attribute("title", "tiny: seen by all")
        for stream in streams:
            assert _next_change(stream) == "changed"
        page.get_by_role("link", name="tiny", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("tiny")
        _is_live(page)


def _next_change(stream: socket.socket) -> str:
    """Return the kind of the next event that came."""
    got = b""
    while True:
        for line in got.split(b"\n")[:-1]:
            if line.startswith(b"event: "):
                return line.removeprefix(b"event: ").decode()
        part = stream.recv(65536)
        assert part, got
        got += part
