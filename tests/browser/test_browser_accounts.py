"""Shows that accounts hold in a real browser: the first one, roles, sessions that end, the way back from the login."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import RunningStudio
from ziggurat.client import Client

ADMIN = "ann"
PASSWORD = "correct horse battery"
OTHER_PASSWORD = "staple of another kind"


class Studio:
    """A studio with an admin, who asks it from a program as well."""

    def __init__(self, running: RunningStudio, model: str) -> None:
        self.running = running
        self.model = model
        self.address = running.address
        user = {"name": ADMIN, "password": PASSWORD, "role": "admin"}
        made = httpx.post(f"{self.address}/api/v1/users", json=user, timeout=60)
        assert made.status_code == 201, made.text
        self.admin = httpx.Client(base_url=f"{self.address}/api/v1", timeout=60)
        self.admin.post("/login", json={"name": ADMIN, "password": PASSWORD}).raise_for_status()
        token = self.admin.post("/tokens", json={"name": "tests", "scope": "admin"}).raise_for_status().json()
        running.client.close()
        running.client = Client(self.address, token["secret"])

    def add(self, name: str, role: str) -> str:
        """Make a user and return the name."""
        made = self.admin.post("/users", json={"name": name, "password": PASSWORD, "role": role})
        assert made.status_code == 201, made.text
        return name

    def change(self, name: str, **fields: Any) -> None:
        """Change a user; a new password ends all their sessions."""
        self.admin.patch(f"/users/{name}", json=fields).raise_for_status()


@pytest.fixture(scope="module")
def studio(server: RunningStudio, tiny_model: str) -> Iterator[Studio]:
    made = Studio(server, tiny_model)
    yield made
    made.admin.close()


@pytest.fixture
def empty_studio(tmp_path: Path) -> Iterator[RunningStudio]:
    """Return a studio that nobody has an account in."""
    running = RunningStudio(tmp_path / "workspace")
    yield running
    running.close()


def _log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Log in", exact=True).click()


@pytest.mark.nightly
def test_with_the_first_account_everybody_must_log_in(browser: Browser, empty_studio: RunningStudio) -> None:
    context = browser.new_context()
    page, other = context.new_page(), context.new_page()
    other.goto(f"{empty_studio.address}/compare")
    expect(other.locator("body")).to_have_attribute("data-live", "on")
    page.goto(f"{empty_studio.address}/settings/users")
    expect(page.locator("#no-accounts")).to_be_visible()
    page.get_by_label("Name", exact=True).fill(ADMIN)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Create user").click()

    page.wait_for_url("**/login?*")
    other.wait_for_url("**/login?next=%2Fcompare")
    assert httpx.get(f"{empty_studio.address}/api/v1/jobs", timeout=60).status_code == 401
    _log_in(page, ADMIN)
    page.wait_for_url("**/settings/users")
    expect(page.locator(f"#user-{ADMIN}")).to_contain_text("(you)")
    assert [user["role"] for user in _asked(page, f"{empty_studio.address}/api/v1/users")] == ["admin"]
    empty_studio.client.close()
    secret = _asked(page, f"{empty_studio.address}/api/v1/tokens", data={"name": "tests", "scope": "admin"})["secret"]
    empty_studio.client = Client(empty_studio.address, secret)
    context.close()


def test_a_session_that_ends_leads_to_the_login_and_back(
    page: Page, studio: Studio, check_page: Callable[..., None]
) -> None:
    studio.add("tom", "trainer")
    page.expected.append("401 (Unauthorized)")  # type: ignore[attr-defined]
    path = "/?kind=train&text=tiny&sort=-created&project="
    page.goto(studio.address + path)
    _log_in(page, "tom")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    shown = page.url
    studio.change("tom", password=OTHER_PASSWORD)
    page.wait_for_url("**/login?next=*")
    _log_in(page, "tom", OTHER_PASSWORD)
    page.wait_for_url(shown)
    expect(page.locator(f"#row-{studio.model}")).to_be_visible()

    studio.change("tom", disabled=True)
    page.wait_for_url("**/login?next=*")
    _log_in(page, "tom", OTHER_PASSWORD)
    expect(page.get_by_role("alert")).to_be_visible()
    check_page(page)


def test_a_role_acts_at_once(page: Page, studio: Studio, check_page: Callable[..., None]) -> None:
    """A form that was open when the role was taken away is refused, and says so."""
    studio.add("ron", "trainer")
    page.goto(f"{studio.address}/models/{studio.model}")
    _log_in(page, "ron")
    page.locator("#job-rename-open").click()
    studio.change("ron", role="viewer")
    page.expected.append("403 (Forbidden)")  # type: ignore[attr-defined]
    page.get_by_label("Name", exact=True).fill("taken")
    page.get_by_label("Name", exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")
    check_page(page)
    assert studio.running.client.job(studio.model)["name"] == "tiny"


def test_logging_out_in_one_tab_sends_the_other_to_the_login(
    page: Page, context: BrowserContext, studio: Studio
) -> None:
    studio.add("lou", "trainer")
    page.expected.append("401 (Unauthorized)")  # type: ignore[attr-defined]
    page.goto(f"{studio.address}/models/{studio.model}")
    _log_in(page, "lou")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    second = context.new_page()
    second.goto(f"{studio.address}/compare")
    expect(second.locator("body")).to_have_attribute("data-live", "on")
    second.get_by_role("button", name="Account of lou").click()
    second.locator("#account-menu").get_by_role("button", name="Log out").click()
    second.wait_for_url("**/login")
    page.wait_for_url(f"**/login?next=%2Fmodels%2F{studio.model}")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")  # the browser shows no page of the session
    second.close()


def _asked(page: Page, address: str, **options: Any) -> Any:
    """Ask with the cookie of the browser."""
    answer = page.request.post(address, **options) if options else page.request.get(address)
    assert answer.ok, answer.text()
    return answer.json()
