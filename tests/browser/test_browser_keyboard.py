"""Shows that the way from images to a tested model needs no mouse: every step by keys, the focus always seen."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RunningStudio
from tests.browser.keyboard import Keyboard

SOON_MS = 90_000
"""A look at a source, a training and a load of the framework may take so long on a machine that is busy."""


@pytest.fixture
def source(server: RunningStudio, digit_folders: Path) -> Path:
    """Return class folders on the studio's own machine."""
    place = server.workspace / "uploads" / "four digits"
    for name in ("0", "1", "2", "3"):
        shutil.copytree(digit_folders / name, place / name, dirs_exist_ok=True)
    return place


@pytest.mark.nightly
def test_from_pictures_to_a_tested_model(page: Page, server: RunningStudio, source: Path) -> None:
    keys = Keyboard(page)
    page.goto(f"{server.address}/")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    keys.reach("Datasets", tag="a")
    keys.press("Enter")
    page.wait_for_url("**/datasets")
    keys.reach("New dataset", tag="a")
    keys.press("Enter")
    page.wait_for_url("**/datasets/new*")
    _make_data_set(page, keys, source)
    _start_training(page, keys)
    _test_model(page, keys)


def _make_data_set(page: Page, keys: Keyboard, source: Path) -> None:
    """Type the source; what the page finds out meanwhile leaves the focus where it is."""
    field = keys.reach("Folder, file or URL", tag="input")
    page.keyboard.type(str(source))
    expect(page.locator("#class-bars li")).to_have_count(4, timeout=SOON_MS)
    assert keys.held() == field
    keys.reach("Name", tag="input")
    keys.write("four digits")
    keys.reach("Create dataset")
    keys.press("Enter")
    page.wait_for_url(re.compile(r"/datasets/\d"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("four digits")
    expect(page.locator("#dataset-train")).to_be_visible(timeout=SOON_MS)


def _start_training(page: Page, keys: Keyboard) -> None:
    keys.reach("New model", tag="a")
    keys.press("Enter")
    page.wait_for_url("**/models/new*")
    if "dataset=" not in page.url:
        keys.reach("Dataset", tag="select")
        keys.press("ArrowDown")
    expect(page.locator("#dataset-summary .stats")).to_contain_text("Training images")
    keys.reach("Standard.*", tag="input")
    keys.reach("Show .* more", tag="summary")
    keys.press("Enter")
    keys.reach("LeNet.*", tag="input", key="Shift+Tab")
    keys.reach("Linear classifier.*", tag="input", key="ArrowDown", most=40)
    expect(page.get_by_label("Linear classifier")).to_be_checked()
    keys.reach("Epochs.*", tag="input")
    keys.write("1")
    expect(page.locator("#preflight .finding").first).to_be_visible(timeout=SOON_MS)
    assert keys.held().id == "epochs"
    keys.reach("Train", tag="button")
    keys.press("Enter")
    page.wait_for_url(re.compile(r"/models/\d{8}-\d{6}-[0-9a-f]{8}$"))


def _test_model(page: Page, keys: Keyboard) -> None:
    """Wait with the focus at a button of the page of a job, which is swapped again and again."""
    keys.reach("Clone", tag="a")
    expect(page.locator("#job-test")).to_be_visible(timeout=SOON_MS)
    assert keys.held().id == "job-clone"
    keys.reach("Predict", tag="a")
    keys.press("Enter")
    page.wait_for_url("**/test")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Predict with ")
    keys.reach("Predict", tag="button")


def test_the_content_is_skipped_to(page: Page, server: RunningStudio) -> None:
    keys = Keyboard(page)
    page.goto(f"{server.address}/")
    keys.press("Tab")
    assert keys.held().name == "Skip to the content"
    keys.press("Enter")
    found = keys.focus()
    assert found is not None
    assert found.id == "content"
    keys.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)") is True


def test_a_dialog_holds_the_focus_and_gives_it_back(page: Page, server: RunningStudio, tiny_model: str) -> None:
    keys = Keyboard(page)
    page.goto(f"{server.address}/models/{tiny_model}")
    opener = keys.reach("More actions", tag="button")
    keys.press("Enter")
    keys.reach("Delete…", tag="a")
    keys.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert keys.held().in_dialog
    assert all(each.in_dialog for each in keys.round())
    keys.press("Escape")
    expect(page.locator(f"#{opener.id}")).to_be_focused()


def test_what_the_server_sends_as_a_dialog_does_so_too(page: Page, server: RunningStudio, tiny_model: str) -> None:
    keys = Keyboard(page)
    page.goto(f"{server.address}/")
    menu = keys.reach("Actions for tiny", tag="a")
    keys.press("Enter")
    expect(page.locator("#row-menu").get_by_role("link", name="Open")).to_be_focused()
    keys.reach("Notes, tags, project…", tag="a")
    keys.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Change tiny")
    assert keys.held().in_dialog
    assert all(each.in_dialog for each in keys.round())
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator(f"#{menu.id}")).to_be_focused()  # the menu itself is closed


def test_a_table_is_filtered_sorted_and_renamed_in(page: Page, server: RunningStudio, tiny_model: str) -> None:
    keys = Keyboard(page)
    page.goto(f"{server.address}/")
    field = keys.reach("Search or filter", tag="input")
    page.keyboard.type("tin")
    page.wait_for_url("**q=tin*")
    assert keys.held().id == field.id
    link = keys.reach("Learning rate.*", tag="a")
    keys.press("Enter")
    page.wait_for_url("**sort=*")
    assert keys.held().id == link.id
    keys.reach("Actions for tiny", tag="a")
    keys.press("Enter")
    expect(page.locator("#row-menu").get_by_role("link", name="Open")).to_be_focused()
    keys.reach("Rename", tag="a")
    keys.press("Enter")
    expect(page.get_by_label("New name of tiny")).to_be_focused()
    keys.write("tiny one")
    keys.press("Enter")
    expect(page.get_by_role("link", name="tiny one", exact=True)).to_be_visible()
    expect(page.locator(f"#menu-{tiny_model}")).to_be_focused()
    assert server.client.job(tiny_model)["name"] == "tiny one"
    server.client.change(tiny_model, name="tiny")
