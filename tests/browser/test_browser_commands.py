"""What every page can do in a browser: command palette, single keys, and notifications of jobs that end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RunningStudio, finished
from tests.browser.keyboard import Keyboard


@pytest.fixture
def home(page: Page, server: RunningStudio, tiny_model: str) -> Page:
    """Return a page whose commands are loaded."""
    page.goto(f"{server.address}/about")
    expect(page.locator("html")).to_have_attribute("data-commands", "true")
    return page


def test_palette_opens_a_run_by_its_name(home: Page, tiny_model: str, check_page: Callable[[Page], None]) -> None:
    keys = Keyboard(home)
    keys.press("Control+k")
    dialog = home.get_by_role("dialog", name="Command palette")
    field = dialog.get_by_role("combobox")
    expect(field).to_be_focused()
    check_page(home)
    home.keyboard.type("tiny")
    expect(dialog.get_by_role("option")).to_have_count(1)
    expect(dialog.get_by_role("option", selected=True)).to_contain_text("tiny")
    keys.press("Enter")
    home.wait_for_url(f"**/models/{tiny_model}")


def test_palette_opens_what_is_typed_before_it_came(home: Page) -> None:
    home.keyboard.press("Control+k")
    home.keyboard.type("tokens")
    home.keyboard.press("Enter")
    home.wait_for_url("**/settings/tokens")


def test_palette_shows_the_newest_runs_when_it_is_opened_again(home: Page, server: RunningStudio) -> None:
    home.keyboard.press("Control+k")
    expect(home.get_by_role("combobox")).to_be_focused()
    home.keyboard.press("Escape")
    spec = {"kind": "train", "version": 1, "name": "newest", "backend": "null", "network": "mlp", "data": "digits"}
    (job,) = server.client.train({**spec, "epochs": 1})
    home.keyboard.press("Control+k")
    expect(home.get_by_role("option").first).to_contain_text("newest")
    finished(server, job["id"])  # before another test waits for news of a run


def test_palette_is_walked_by_arrows_and_closed(home: Page) -> None:
    keys = Keyboard(home)
    opener = keys.reach("Search or run a command.*", tag="a")
    keys.press("Enter")
    dialog = home.locator("dialog#palette")
    expect(dialog).to_be_visible()
    field = dialog.get_by_role("combobox")
    active = field.get_attribute("aria-activedescendant")
    keys.press("ArrowDown")
    expect(field).not_to_have_attribute("aria-activedescendant", active or "")
    keys.press("ArrowUp", "ArrowUp")
    last = dialog.get_by_role("option").last
    expect(last).to_have_attribute("aria-selected", "true")
    assert all(each.in_dialog for each in keys.round())
    keys.press("Escape")
    expect(dialog).to_be_hidden()
    expect(home.locator(f"#{opener.id}")).to_be_focused()


def test_enter_waits_for_the_results_of_what_was_typed(home: Page, server: RunningStudio) -> None:
    home.keyboard.press("Control+k")
    expect(home.get_by_role("option", selected=True)).to_be_visible()  # the newest run
    home.keyboard.type("go to datasets")
    home.keyboard.press("Enter")  # what is selected yet belongs to no text
    home.wait_for_url(f"{server.address}/datasets")


def test_a_palette_that_does_not_come_is_told(home: Page) -> None:
    home.expected.append("net::ERR_FAILED")  # type: ignore[attr-defined]
    home.route("**/parts/palette?*", lambda route: route.abort())
    home.keyboard.press("Control+k")
    expect(home.locator("#sayings")).to_contain_text("The studio did not answer.")
    home.unroute("**/parts/palette?*")
    home.keyboard.press("Control+k")
    expect(home.get_by_role("dialog", name="Command palette")).to_be_visible()


def test_palette_switches_the_theme(home: Page) -> None:
    home.keyboard.press("Control+k")
    home.get_by_role("combobox").fill("switch theme")
    expect(home.get_by_role("option")).to_have_count(1)
    home.keyboard.press("Enter")
    expect(home.locator("html")).to_have_attribute("data-theme", "light")


def test_search_works_without_scripts(server: RunningStudio, browser: object, tiny_model: str) -> None:
    context = browser.new_context(java_script_enabled=False)  # type: ignore[attr-defined]
    page = context.new_page()
    page.goto(f"{server.address}/about")
    page.locator("#palette-open").click()
    page.locator("#search-text").fill("tin")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("link", name="tiny", exact=True).click()
    page.wait_for_url(f"**/models/{tiny_model}")
    context.close()


def test_keys_are_listed_and_act_on_the_page(
    home: Page, server: RunningStudio, tiny_model: str, check_page: Callable[[Page], None]
) -> None:
    keys = Keyboard(home)
    keys.press("?")
    dialog = home.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog.locator("kbd").first).to_be_visible()
    check_page(home)
    keys.press("Escape")
    expect(dialog).to_be_hidden()

    home.goto(f"{server.address}/search?q=tin")
    expect(home.locator("html")).to_have_attribute("data-commands", "true")
    keys.press("j")
    expect(home.get_by_role("link", name="tiny", exact=True)).to_be_focused()
    keys.press("/")
    field = home.locator("#search-text")
    expect(field).to_be_focused()
    home.keyboard.type("j?/k")
    expect(field).to_have_value("j?/k")
    expect(home.locator("dialog[open]")).to_have_count(0)


def test_single_keys_can_be_switched_off(home: Page, server: RunningStudio) -> None:
    home.goto(f"{server.address}/account")
    expect(home.locator("html")).to_have_attribute("data-commands", "true")
    home.get_by_label("Single-key shortcuts").uncheck()
    home.locator("#keyboard-save").click()
    expect(home.get_by_label("Single-key shortcuts")).not_to_be_checked()
    expect(home.locator("html")).to_have_attribute("data-commands", "true")
    home.keyboard.press("?")
    home.keyboard.press("Control+k")
    expect(home.locator("dialog[open]")).to_have_attribute("id", "palette")


def test_a_run_that_ends_is_told(home: Page, server: RunningStudio, check_page: Callable[[Page], None]) -> None:
    expect(home.locator("body")).to_have_attribute("data-live", "on")
    spec = {"kind": "train", "version": 1, "name": "soon over", "backend": "null", "network": "mlp", "data": "digits"}
    (job,) = server.client.train({**spec, "epochs": 1})
    toast = home.locator("#sayings .toast")
    expect(toast).to_contain_text("soon over")
    expect(toast.get_by_role("link", name="Predict")).to_have_attribute("href", f"/models/{job['id']}/test")
    check_page(home)
    home.get_by_role("button", name="Notifications, 1 new").click()
    panel = home.locator("#notifications")
    expect(panel.locator("li")).to_have_count(1)
    expect(home.get_by_role("button", name="Notifications", exact=True)).to_be_visible()
    check_page(home, "#notifications")
    home.reload()
    expect(home.locator("html")).to_have_attribute("data-commands", "true")
    home.get_by_role("button", name="Notifications", exact=True).click()
    expect(panel.get_by_role("link", name="Predict")).to_be_visible()
