"""Shows that an empty studio leads to a first model in a real browser: files that are dropped, and one click."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import take_pictures
from tests.waiting import PROCESS_S


def test_files_that_are_chosen_lead_to_their_preview(page: Page, server, tmp_path: Path, check_page) -> None:
    table = tmp_path / "fruit.csv"
    table.write_text(
        "color,size,kind\n" + "".join(f"red,{number},apple\ngreen,{number},pear\n" for number in range(20))
    )
    page.goto(server.address + "/")
    expect(page.locator("body")).to_have_attribute("data-live", "on")
    expect(page.locator("#first-digits")).to_be_visible()
    check_page(page)
    take_pictures(page, "first-screen")

    page.locator("#files").set_input_files(table)

    expect(page).to_have_url(re.compile(r"/datasets/new\?"))
    expect(page.locator("#preview-stats")).to_contain_text("40")
    page.go_back()
    page.locator("#table-source").fill(str(table))
    page.locator("#start-table-go").click()
    expect(page.locator("#source")).to_have_value(str(table))


@pytest.mark.nightly
@pytest.mark.timeout(180)
def test_one_click_leads_to_the_first_point_of_a_curve(page: Page, server, check_page) -> None:
    if find_spec("torch") is None and find_spec("tensorflow") is None:
        pytest.skip("needs PyTorch or TensorFlow, which a worker loads")
    page.goto(server.address + "/")

    page.locator("#first-digits").click()

    expect(page).to_have_url(re.compile(r"/models/\d{8}-"))
    expect(page.locator("#job-best-value")).to_contain_text("%", timeout=PROCESS_S * 1000)
    expect(page.locator("#curves canvas").first).to_be_visible()
    expect(page.locator("#next-action")).to_be_visible(timeout=PROCESS_S * 1000)
    expect(page.locator("main .primary:visible")).to_have_count(1)
    check_page(page)
