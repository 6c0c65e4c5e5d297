"""Shows in a real browser that a dataset's charts are drawn, and that its samples are looked through and corrected."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, expect

from tests.integration.studio.studio_process import wait_for


def test_the_overview_draws_its_charts_and_has_their_tables(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}")
    chart = page.get_by_role("img", name="Samples per class and split")
    expect(chart.locator("canvas")).to_be_visible()
    assert chart.locator("svg.bars").count() == 0
    card = page.locator("section", has=chart)
    card.get_by_text("Values as a table").click()
    expect(card.get_by_role("link", name="7", exact=True)).to_be_visible()
    check_page(page)


def test_samples_are_browsed_by_keyboard_and_corrected(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/explore")
    page.get_by_label("Class").select_option("7")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**class_name=7**")
    steps = page.locator("[data-step]")
    expect(page.locator("#samples-form")).to_have_attribute("data-mounted", "true")
    steps.first.focus()
    page.keyboard.press("x")
    page.keyboard.press("ArrowRight")
    expect(steps.nth(1)).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("#chosen-count")).to_have_text("2 chosen")
    check_page(page)
    page.get_by_label("Name of the new version").fill("digits mended")
    page.get_by_label("Label").select_option("1")
    page.get_by_role("button", name="Set label").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("digits mended")
    expect(page.locator("#made-of li")).to_contain_text("1")
    page.get_by_role("link", name="Compare with the version before").click()
    expect(page.locator("#dataset-differences")).to_contain_text("With another label: 2")


def test_the_explorer_turns_its_pages_without_a_reload(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/explore?split=train")
    expect(page.locator("#samples-form")).to_have_attribute("data-mounted", "true")
    page.get_by_label("Name of the new version").fill("kept")
    page.locator('input[name="samples"]').first.check()
    expect(page.locator("#chosen-count")).to_have_text("1 chosen")
    page.evaluate("window.isSamePage = true")
    page.get_by_role("link", name="Next").press("Enter")
    page.wait_for_url("**/explore?split=train&offset=48")
    expect(page.locator(".pager")).to_contain_text("49 to 96 of")
    expect(page.locator("#found-title")).to_be_focused()
    expect(page.locator("#chosen-count")).to_have_text("none is chosen")
    expect(page.get_by_label("Name of the new version")).to_have_value("kept")
    assert page.evaluate("window.isSamePage") is True
    assert page.locator('input[name="samples"]').first.get_attribute("value") == "train/48"
    assert page.locator('#samples-form input[name="offset"]').get_attribute("value") == "48"
    check_page(page)
    page.locator("[data-step]").first.focus()
    page.keyboard.press("x")
    expect(page.locator("#chosen-count")).to_have_text("1 chosen")
    page.get_by_role("link", name="Previous").click()
    page.wait_for_url("**/explore?split=train")
    expect(page.locator(".pager")).to_contain_text("1 to 48 of")
    page.go_back()
    page.wait_for_url("**/explore?split=train&offset=48")
    expect(page.locator(".pager")).to_contain_text("49 to 96 of")
    page.go_back()
    expect(page.locator(".pager")).to_contain_text("1 to 48 of")
    page.locator('input[name="samples"]').first.check()
    expect(page.locator("#chosen-count")).to_have_text("1 chosen")


def test_one_sample_leads_to_the_next_by_arrow_keys(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/samples/train/3")
    expect(page.locator("#sample")).to_have_attribute("data-mounted", "true")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/samples/train/4?at=4")
    expect(page.get_by_text("5 of 400")).to_be_visible()
    expect(page.locator(".large img")).to_have_js_property("naturalWidth", 28)
    check_page(page)


def test_findings_come_when_they_are_there(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/check")
    expect(page.locator("#dataset-findings")).to_contain_text("Errors")
    check_page(page)
    page.get_by_role("button", name="Read every record as well").click()
    expect(page.get_by_role("heading", name="Thorough check")).to_be_visible()
    expect(page.locator("#dataset-findings .stats")).to_contain_text("400")


def test_the_page_of_a_new_data_set_becomes_its_overview(page: Page, server: Any, digit_folders: Path) -> None:
    folder = server.workspace / "uploads" / "in the making"
    shutil.copytree(digit_folders, folder)
    body = {"spec": {"kind": "dataset", "version": 1, "name": "in the making", "source": str(folder)}}
    made = httpx.post(f"{server.address}/api/v1/datasets", json=body, timeout=60)
    page.goto(f"{server.address}/datasets/{made.json()['id']}")
    expect(page.get_by_role("link", name="Explore the samples")).to_be_visible()


def test_every_kind_of_chart_is_drawn(page: Page, server: Any, digits: str) -> None:
    page.goto(f"{server.address}/datasets/{digits}")
    chart = page.get_by_role("img", name="Samples per class and split")
    expect(chart.locator("canvas")).to_be_visible()
    names = ["cat", "dog"]
    axes = [{"name": "rate", "log": True}, {"name": "network", "categories": ["a", "b"]}, {"name": "accuracy"}]
    lines = [{"name": "one", "values": [0.1, "a", 0.7]}, {"name": "two", "values": [0.01, "b", None]}]
    for spec in (
        {
            "kind": "heat",
            "rows": names,
            "columns": names,
            "values": [[3, None], [0, 4]],
            "x": "Predicted",
            "y": "Label",
        },
        {"kind": "scatter", "x": "a", "y": "b", "groups": [{"name": "g", "points": [[1, 2, "p"], [3, 4]]}]},
        {"kind": "parallel", "axes": axes, "lines": lines},
    ):
        before = chart.screenshot()
        chart.evaluate("(element, text) => { element.dataset.chart = text; }", json.dumps(spec))
        wait_for(lambda before=before: chart.screenshot() != before)


def test_a_cell_of_a_heat_map_leads_to_its_samples(page: Page, server: Any, digits: str) -> None:
    page.goto(f"{server.address}/datasets/{digits}")
    chart = page.get_by_role("img", name="Samples per class and split")
    expect(chart.locator("canvas")).to_be_visible()
    link = f"/datasets/{digits}/explore?class_name={{row}}&split=val"
    spec = {"kind": "heat", "rows": ["1"], "columns": ["7"], "values": [[3]], "link": link}
    before = chart.screenshot()
    chart.evaluate("(element, text) => { element.dataset.chart = text; }", json.dumps(spec))
    wait_for(lambda: chart.screenshot() != before)
    chart.click()
    page.wait_for_url("**/explore?class_name=1&split=val")
