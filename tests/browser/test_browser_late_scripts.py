"""Shows that what a person does before the scripts of a page are there is not lost, and that no button is dead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import HeldScripts, RunningStudio
from tests.waiting import PROCESS_S, wait_until

pytestmark = pytest.mark.nightly

Hold = Callable[..., HeldScripts]


@pytest.fixture
def running(server: RunningStudio) -> Iterator[str]:
    """Return the id of a training that runs, with a learning rate that changes."""
    spec = {"kind": "train", "version": 1, "name": "long run", "backend": "null", "network": "mlp", "data": "digits"}
    schedule = {"policy": "exp", "gamma": 0.999}
    (job,) = server.client.train({**spec, "epochs": 100_000, "heartbeat_s": 0.2, "schedule": schedule})
    wait_until(lambda: "learning_rate" in server.client.job(job["id"])["scalars"], PROCESS_S)
    yield job["id"]
    server.client.delete(job["id"], force=True)


@pytest.mark.parametrize("names", ["**/static/vendor/**", "**/vendor/parts/upload-*"])
def test_files_that_were_chosen_are_sent(
    names: str, page: Page, server: RunningStudio, held_scripts: Hold, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(name, encoding="utf-8")
    scripts = held_scripts(names)
    httpx.post(f"{server.address}/datasets/new/reset", timeout=60)  # the draft of another test
    scripts.open(f"{server.address}/datasets/new")
    page.get_by_label("Upload").check()
    page.locator("#files").focus()
    page.locator("#files").set_input_files([tmp_path / "a.txt", tmp_path / "b.txt"])
    scripts.let_go()
    expect(page.locator("#upload")).to_contain_text("2 files sent")
    expect(page.locator("#source")).not_to_have_value("")
    expect(page.get_by_role("button", name="Choose files")).to_be_focused()


def test_a_source_that_was_typed_is_looked_at(
    page: Page, server: RunningStudio, held_scripts: Hold, digits: str
) -> None:
    scripts = held_scripts()
    httpx.post(f"{server.address}/datasets/new/reset", timeout=60)  # the draft of another test
    scripts.open(f"{server.address}/datasets/new")
    field = page.locator("#source")
    field.press_sequentially(str(server.workspace / "uploads" / "digits"))
    scripts.let_go()
    expect(page.locator("#class-bars li")).to_have_count(10)
    expect(field).to_have_value(str(server.workspace / "uploads" / "digits"))
    expect(field).to_be_focused()


def test_what_was_chosen_for_a_model_acts(page: Page, server: RunningStudio, held_scripts: Hold, digits: str) -> None:
    scripts = held_scripts()
    scripts.open(f"{server.address}/models/new?dataset={digits}")
    page.locator("#more-networks summary").click()
    page.get_by_label("Linear classifier").check()
    page.locator("#fold-schedule-line").click()
    page.locator("#schedule").select_option("poly")
    page.locator("#learning_rate").fill("0.1, 0.01")
    scripts.let_go()
    expect(page.locator("#rate-words")).to_contain_text("poly")
    expect(page.locator("#rate polyline")).to_have_count(2)
    expect(page.locator("#start")).to_have_text("Train 2 models")
    expect(page.locator("#schedule")).to_have_value("poly")


def test_a_filter_and_ticks_act(page: Page, server: RunningStudio, held_scripts: Hold, tiny_model: str) -> None:
    scripts = held_scripts()
    scripts.open(f"{server.address}/?q=tiny")
    page.get_by_label("Select all on this page").check()
    scripts.let_go()
    expect(page.locator("#chosen")).to_have_text("1 selected")
    expect(page.locator(f"#pick-{tiny_model}")).to_be_checked()
    expect(page.get_by_label("Select all on this page")).to_be_checked()

    scripts = held_scripts()
    scripts.open(f"{server.address}/")
    page.get_by_label("Search or filter").fill("nobody")
    scripts.let_go()
    expect(page.locator("#clear-empty")).to_be_visible()
    expect(page).to_have_url(f"{server.address}/?q=nobody")
    expect(page.get_by_label("Search or filter")).to_have_value("nobody")


def test_a_name_that_is_being_typed_is_not_written_over(
    page: Page, server: RunningStudio, held_scripts: Hold, tiny_model: str
) -> None:
    scripts = held_scripts()
    scripts.open(f"{server.address}/?rename={tiny_model}")
    field = page.get_by_label("New name of tiny")
    field.press("End")
    page.keyboard.type(" on")
    scripts.let_go()
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    page.keyboard.type("e")
    expect(field).to_have_value("tiny one")


def test_what_happened_meanwhile_is_told(
    page: Page, server: RunningStudio, held_scripts: Hold, tiny_model: str
) -> None:
    """It happened after the page was made and before its event stream was open."""
    scripts = held_scripts()
    scripts.open(f"{server.address}/models/{tiny_model}")
    expect(page.get_by_role("heading", level=1)).to_have_text("tiny")
    server.client.change(tiny_model, name="renamed")
    scripts.let_go()
    expect(page.get_by_role("heading", level=1)).to_have_text("renamed")
    server.client.change(tiny_model, name="tiny")
    expect(page.get_by_role("heading", level=1)).to_have_text("tiny")


def test_a_learning_rate_that_is_typed_stays(
    page: Page, server: RunningStudio, held_scripts: Hold, running: str
) -> None:
    scripts = held_scripts("**/vendor/parts/curves-*")
    scripts.open(f"{server.address}/models/{running}")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    page.locator("#rate-value").fill("0.5")
    page.locator("#content").focus()
    scripts.let_go()
    expect(page.get_by_label("Learning rate, on a logarithmic scale")).to_be_visible()
    now = page.locator("#job-rate-now")
    expect(now).not_to_have_attribute("data-rate", now.get_attribute("data-rate") or "")
    expect(page.locator("#rate-value")).to_have_value("0.5")


def test_who_types_code_goes_on_in_the_editor(page: Page, server: RunningStudio, held_scripts: Hold) -> None:
    scripts = held_scripts("**/vendor/parts/editor-*")
    scripts.open(f"{server.address}/models/new")
    page.locator("#method-custom").check()
    page.locator("#network_text").fill("first line\nsecond")
    page.keyboard.type(" line")
    scripts.let_go()
    code = page.locator(".cm-content")
    expect(code).to_be_focused()
    page.keyboard.type(", third word")
    expect(page.locator("#network_text")).to_have_value("first line\nsecond line, third word")
    expect(page.locator("#network_text")).to_be_hidden()


def test_a_line_is_gone_to_before_the_editor_is_there(page: Page, server: RunningStudio, held_scripts: Hold) -> None:
    scripts = held_scripts("**/vendor/parts/editor-*")
    scripts.open(f"{server.address}/models/new")
    page.locator("#method-custom").check()
    page.locator("#network_text").fill("one\ntwo\nthree")
    button = '<button type="button" data-goto-line="2">Go to line 2</button>'  # as an answer about a network has it
    page.evaluate("(html) => document.querySelector('#network-look').insertAdjacentHTML('beforeend', html)", button)
    page.get_by_role("button", name="Go to line 2").click()
    expect(page.locator("#network_text")).to_be_focused()
    scripts.let_go()
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.type("line ")
    expect(page.locator("#network_text")).to_have_value("one\nline two\nthree")


def test_a_picture_that_was_chosen_is_answered(
    page: Page, server: RunningStudio, held_scripts: Hold, tiny_model: str, digit_folders: Path
) -> None:
    scripts = held_scripts()
    scripts.open(f"{server.address}/models/{tiny_model}/test")
    page.get_by_label("Choose an image").set_input_files(min((digit_folders / "3").iterdir()))
    scripts.let_go()
    expect(page.locator("#test-one .said li")).to_have_count(5)


def test_a_licence_that_was_opened_is_shown(page: Page, server: RunningStudio, held_scripts: Hold) -> None:
    scripts = held_scripts()
    scripts.open(f"{server.address}/about/licences")
    page.locator("#own-1 summary").click()
    scripts.let_go()
    expect(page.locator("#own-1-text")).to_contain_text(re.compile("Apache License"))


def test_no_button_is_dead_and_nothing_is_deleted_unasked(
    browser: Any, page: Page, server: RunningStudio, held_scripts: Hold, tiny_model: str
) -> None:
    scripts = held_scripts()
    scripts.open(f"{server.address}/models/{tiny_model}")
    expect(page.get_by_role("heading", level=1)).to_have_text("tiny")
    scripts.let_go()
    page.get_by_role("button", name="More actions").click()
    page.locator("#job-delete").click()
    expect(page.get_by_role("dialog")).to_be_visible()

    for tab, selector in (("checkpoints", "form[data-confirm] button"), ("system", "[data-copy]")):
        scripts = held_scripts()
        scripts.open(f"{server.address}/models/{tiny_model}?tab={tab}")
        expect(page.locator(selector).first).to_be_hidden()
        scripts.let_go()
        expect(page.locator(selector).first).to_be_visible()

    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(f"{server.address}/models/{tiny_model}?tab=checkpoints")
    expect(plain.locator("form[data-confirm] button").first).to_be_visible()
    plain.get_by_role("button", name="More actions").click()
    plain.get_by_role("link", name="Delete…").click()
    expect(plain.get_by_role("button", name="Delete it")).to_be_visible()
    context.close()


def test_the_palette_opens_though_its_script_comes_later(page: Page, server: RunningStudio, held_scripts: Hold) -> None:
    scripts = held_scripts("**/vendor/parts/commands-*")
    scripts.open(f"{server.address}/datasets")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    page.keyboard.press("Control+k")
    page.keyboard.type("go to modelx")  # a single key of the page is among these letters
    page.keyboard.press("Backspace")
    scripts.let_go()
    expect(page.locator("#palette-text")).to_be_focused()
    expect(page.locator("#palette-text")).to_have_value("go to model")
    page.keyboard.press("Enter")
    page.wait_for_url("**/models")


def test_a_single_key_acts_though_its_script_comes_later(page: Page, server: RunningStudio, held_scripts: Hold) -> None:
    scripts = held_scripts("**/vendor/parts/commands-*")
    scripts.open(f"{server.address}/datasets")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    page.keyboard.press("/")
    page.keyboard.type("dig")
    scripts.let_go()
    field = page.locator("[data-search]").first
    expect(field).to_be_focused()
    expect(field).to_have_value("dig")


def test_lines_are_added_before_the_editor_is_there(page: Page, server: RunningStudio, held_scripts: Hold) -> None:
    scripts = held_scripts("**/vendor/parts/editor-*")
    scripts.open(f"{server.address}/models/new")
    page.locator("#method-custom").check()
    page.locator("#network_text").fill("one\n")
    button = '<button type="button" data-add-code="two">Add these lines</button>'  # as an answer about a network has it
    page.evaluate("(html) => document.querySelector('#network-look').insertAdjacentHTML('beforeend', html)", button)
    page.get_by_role("button", name="Add these lines").click()
    expect(page.locator("#network_text")).to_have_value("one\n\n\ntwo\n")
    scripts.let_go()
    expect(page.locator(".cm-content")).to_contain_text("two")
