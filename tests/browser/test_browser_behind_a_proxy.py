"""Shows that the studio works below a prefix behind reverse proxies: pages, forms, live news, the way to the login."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import RunningStudio, note_console
from tests.browser.reverse_proxies import NGINX, nginx, small_proxy
from tests.waiting import PROCESS_S, wait_until
from ziggurat.client import Client

NEEDS_NGINX = pytest.mark.skipif(NGINX is None, reason="needs nginx")
PREFIX = "/ziggurat"
PASSWORD = "correct horse battery"
_PLACES = """() => [...document.querySelectorAll("[href], [src], [action], [formaction], [hx-get], [hx-post]")].flatMap(
    (element) => ["href", "src", "action", "formaction", "hx-get", "hx-post"]
        .map((name) => element.getAttribute(name)).filter((value) => value && !value.startsWith("#")))"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """Return a studio below a prefix, with an account: whoever comes by a proxy must have one."""
    running = RunningStudio(tmp_path_factory.mktemp("studio") / "workspace", "--prefix", PREFIX)
    api = f"{running.address}/api/v1"
    user = {"name": "ann", "password": PASSWORD, "role": "admin"}
    assert httpx.post(f"{api}/users", json=user, timeout=60).status_code == 201
    with httpx.Client(timeout=60) as client:
        client.post(f"{api}/login", json={"name": "ann", "password": PASSWORD})
        made = client.post(f"{api}/tokens", json={"name": "tests", "scope": "admin"})
    running.client.close()
    running.client = Client(running.address, made.json()["secret"])
    yield running
    running.close()


@pytest.fixture(scope="module")
def source(server: RunningStudio, digit_folders: Path) -> str:
    """Return class folders that the studio offers."""
    place = server.workspace / "uploads" / "two digits"
    for name in ("0", "1"):
        shutil.copytree(digit_folders / name, place / name)
    return str(place)


@pytest.fixture(
    params=[
        pytest.param("nginx-keeps", marks=[pytest.mark.nightly, NEEDS_NGINX]),
        pytest.param("nginx-takes", marks=NEEDS_NGINX),
        pytest.param("keeps", marks=pytest.mark.nightly),
        pytest.param("takes", marks=pytest.mark.skipif(NGINX is not None, reason="nginx takes the prefix away, too")),
    ]
)
def proxy(request: pytest.FixtureRequest, server: RunningStudio, tmp_path: Path) -> Iterator[str]:
    """Return the address of the studio behind a proxy that passes its prefix on, or takes it away."""
    kind, _, way = request.param.rpartition("-")
    bare = server.address.removesuffix(PREFIX)
    assert bare != server.address
    opened: AbstractContextManager[str]
    if kind == "nginx":
        opened = nginx(tmp_path, bare, PREFIX, is_kept=way == "keeps")
    else:
        opened = small_proxy(bare, PREFIX, is_kept=way == "keeps")
    with opened as address:
        yield address + PREFIX


@pytest.fixture
def visitor(browser: Browser, proxy: str) -> Iterator[Page]:
    """Return a tab that must ask for nothing beyond the prefix, and whose console must stay empty."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page, said = context.new_page(), []
    page.on("console", lambda message: note_console(f"{message.type}: {message.text}", said))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: _note_outside(request.url, proxy, said))
    yield page
    context.close()
    assert said == []


def _note_outside(url: str, proxy: str, said: list[str]) -> None:
    if not url.startswith((f"{proxy}/", "blob:", "data:")):
        said.append(f"asked outside of the prefix: {url}")


def _check_places(page: Page) -> None:
    """Every address that the page leads to is below the prefix."""
    places = page.evaluate(_PLACES)
    assert len(places) > 10
    assert [place for place in places if not place.startswith((f"{PREFIX}/", "?"))] == []


def test_the_studio_works_below_its_prefix(visitor: Page, proxy: str, server: RunningStudio, source: str) -> None:
    page = visitor
    page.goto(f"{proxy}/models/new?dataset=")
    assert page.url == f"{proxy}/login?next=%2Fziggurat%2Fmodels%2Fnew%3Fdataset%3D"
    page.get_by_label("Name", exact=True).fill("ann")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(f"{proxy}/models/new?dataset=")
    _check_places(page)

    page.get_by_role("link", name="Runs", exact=True).click()
    page.wait_for_url(f"{proxy}/")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    _check_places(page)
    page.get_by_role("link", name="Datasets", exact=True).click()
    page.locator("main").get_by_role("link", name="New dataset").first.click()
    page.wait_for_url(f"{proxy}/datasets/new*")
    page.locator("#source").fill(source)
    expect(page.locator("#preview img").first).to_have_js_property("naturalWidth", 28)
    _check_places(page)
    _watch_a_training(page, proxy, server)
    page.get_by_role("button", name="Account of ann").click()
    page.locator("#account-menu").get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{proxy}/login")


def _watch_a_training(page: Page, proxy: str, server: RunningStudio) -> None:
    """News come by themselves through the proxy, and what a form does is seen below the prefix."""
    spec = {"kind": "train", "version": 1, "name": "far", "backend": "null", "network": "mlp", "data": "digits"}
    (job,) = server.client.train({**spec, "epochs": 100_000, "heartbeat_s": 0.2})
    job_id = job["id"]
    try:
        page.goto(f"{proxy}/models/{job_id}")
        expect(page.locator('[data-curve="cost"] canvas')).to_be_visible()
        step = page.locator("#job-state dd").nth(1)
        before = step.inner_text()
        expect(step).not_to_have_text(before)
        _check_places(page)
        page.locator("#job-rename-open").click()
        page.get_by_label("Name", exact=True).fill("near")
        page.get_by_label("Name", exact=True).press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("near")
        assert page.url.startswith(f"{proxy}/models/{job_id}")
        page.locator("#job-stop").click()
        expect(page.locator("#job-chip")).to_have_text("stopped")
        page.get_by_role("link", name="Help and diagnostics").first.click()
        page.wait_for_url(f"{proxy}/about")
        _check_places(page)
    finally:
        _delete(server, job_id)


def _delete(server: RunningStudio, job_id: str) -> None:
    server.client.delete(job_id, force=True)
    wait_until(lambda: all(job["id"] != job_id for job in server.client.jobs()), PROCESS_S)
