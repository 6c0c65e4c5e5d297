"""Shows in a real browser that a dataset's charts are drawn, and that its samples are looked through and corrected."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import finished
from tests.waiting import PROCESS_S, wait_until


def test_the_overview_draws_its_charts_and_has_their_tables(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}")
    expect(page.locator("#class-bars tbody th")).to_have_count(10)
    page.locator("#size-charts > summary").click()
    chart = page.get_by_role("img", name="Sizes of the files")
    expect(chart.locator("canvas")).to_be_visible()
    assert chart.locator("svg.bars").count() == 0
    page.locator("section", has=chart).get_by_text("Values as a table").click()
    expect(page.locator("section", has=chart).get_by_role("table")).to_be_visible()
    check_page(page)
    page.locator("#class-bars").get_by_role("link", name="7", exact=True).click()
    page.wait_for_url("**/explore?class_name=7")


def test_samples_are_browsed_and_corrected_by_keys(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/explore")
    page.locator('.facet-row[href$="class_name=7"]').click()
    page.wait_for_url("**class_name=7**")
    expect(page.locator("#explorer")).to_have_attribute("data-mounted", "true")
    tiles = page.locator(".tile")
    head = page.locator(".drawer-head")
    expect(tiles.first).to_have_class(re.compile("current"))
    page.keyboard.press("ArrowRight")
    expect(tiles.nth(1).locator("[data-step]")).to_be_focused()
    expect(head).to_have_attribute("data-place", str(tiles.nth(1).get_attribute("data-place")))
    page.keyboard.press("1")  # classes that are digits have their own keys
    expect(tiles.nth(1).locator("[data-shown-label]")).to_have_text("1")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("x")
    expect(page.locator("#changes-count")).to_have_text("1 relabeled, 2 excluded")
    page.keyboard.press("u")
    expect(page.locator("#changes-count")).to_have_text("1 relabeled")
    page.keyboard.press("x")
    check_page(page)
    page.reload()
    expect(page.locator("#changes-count")).to_have_text("1 relabeled, 2 excluded")
    page.locator("#changes-name").fill("digits corrected")
    page.locator("#changes-save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("digits corrected")
    expect(page.locator("#made-of li")).to_have_count(2)
    page.get_by_role("link", name="Compare with the previous version").click()
    expect(page.locator("#dataset-differences")).to_contain_text("Relabeled: 1")
    page.goto(f"{server.address}/datasets/{digits}/explore")
    expect(page.locator("#explorer")).to_have_attribute("data-mounted", "true")
    expect(page.locator("#changes")).to_be_hidden()


def test_a_typed_label_must_mean_one_class(page: Page, server: Any, digit_folders: Path) -> None:
    folder = server.workspace / "uploads" / "animals"
    animals = ("cat", "catfish", "cow", "dog", "eel", "fox", "goat", "hare", "ibis", "jay", "kite")
    for number, name in enumerate(animals):
        (folder / name).mkdir(parents=True)
        for image in sorted((digit_folders / str(number % 10)).iterdir())[2 * (number // 10) :][:2]:
            shutil.copy(image, folder / name)
    body = {"spec": {"kind": "dataset", "version": 1, "name": "animals", "source": str(folder)}}
    made = httpx.post(f"{server.address}/api/v1/datasets", json=body, timeout=60).json()["id"]
    page.goto(f"{server.address}/datasets/{finished(server, made)}/explore?class_name=eel")
    expect(page.locator("#explorer")).to_have_attribute("data-mounted", "true")
    page.keyboard.press("l")
    field = page.locator("#drawer-label")
    expect(field).to_be_focused()
    page.keyboard.type("ca")
    page.keyboard.press("Enter")
    expect(page.locator("#changes")).to_be_hidden()
    assert field.evaluate("(each) => each.validationMessage").startswith('2 classes begin with "ca": cat, catfish')
    page.keyboard.type("t")  # the whole name of one of them
    page.keyboard.press("Enter")
    expect(page.locator("#changes-count")).to_have_text("1 relabeled")
    expect(page.locator(".tile [data-shown-label]").first).to_have_text("cat")


def test_a_refused_correction_is_still_to_be_done(context: BrowserContext, server: Any, digits: str) -> None:
    page = context.new_page()  # its console has the refusal
    page.goto(f"{server.address}/datasets/{digits}/explore?split=val")
    expect(page.locator("#explorer")).to_have_attribute("data-mounted", "true")
    page.keyboard.press("x")
    page.locator("#changes-name").fill(" ")
    page.locator("#changes-save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("#changes-count")).to_have_text("1 excluded")
    page.locator("#changes-discard").click()
    expect(page.locator("#changes")).to_be_hidden()
    assert page.evaluate("document.activeElement !== document.body")


def test_search_and_order_are_reached_by_keys(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/explore")
    expect(page.locator("html")).to_have_attribute("data-commands", "true")
    page.keyboard.press("/")
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("no such name")
    page.keyboard.press("Enter")
    page.wait_for_url("**text=no+such+name**")
    expect(page.locator(".empty")).to_be_visible()
    check_page(page)
    page.go_back()
    page.locator("#order").select_option("name")
    page.wait_for_url("**order=name**")


def test_the_explorer_turns_its_pages_without_a_reload(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/explore?split=train")
    expect(page.locator("#explorer")).to_have_attribute("data-mounted", "true")
    page.locator("#correct > summary").click()
    page.get_by_label("Name of the new version").first.fill("kept")
    page.locator('#tiles input[name="samples"]').first.check()
    expect(page.locator("#chosen-count")).to_have_text("1 selected")
    page.evaluate("window.isSamePage = true")
    page.locator("#page-after").press("Enter")
    page.wait_for_url("**/explore?split=train&offset=48")
    expect(page.locator(".pager")).to_contain_text("49 to 96 of")
    expect(page.locator("#found-title")).to_be_focused()
    expect(page.locator("#chosen-count")).not_to_contain_text("1 selected")
    expect(page.get_by_label("Name of the new version").first).to_have_value("kept")
    assert page.evaluate("window.isSamePage") is True
    assert page.locator('#tiles input[name="samples"]').first.get_attribute("value") == "train/48"
    assert page.locator('#samples-form input[name="offset"]').get_attribute("value") == "48"
    expect(page.locator(".drawer-head")).to_have_attribute("data-place", "train/48")
    check_page(page)
    page.locator("#page-before").click()
    page.wait_for_url("**/explore?split=train")
    expect(page.locator(".pager")).to_contain_text("1 to 48 of")
    page.go_back()
    page.wait_for_url("**/explore?split=train&offset=48")
    expect(page.locator(".pager")).to_contain_text("49 to 96 of")
    page.go_back()
    expect(page.locator(".pager")).to_contain_text("1 to 48 of")
    page.locator('#tiles input[name="samples"]').first.check()
    expect(page.locator("#chosen-count")).to_have_text("1 selected")


def test_one_sample_leads_to_the_next_by_arrow_keys(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/samples/train/3")
    expect(page.locator("#sample")).to_have_attribute("data-mounted", "true")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/samples/train/4?at=4")
    expect(page.locator("#sample-place")).to_have_text("5 of 400")
    expect(page.locator(".large img")).to_have_js_property("naturalWidth", 28)
    check_page(page)
    page.keyboard.press("x")
    expect(page.locator("#changes-count")).to_have_text("1 excluded")
    page.keyboard.press("u")
    expect(page.locator("#changes")).to_be_hidden()


def test_findings_come_when_they_are_there(
    page: Page, server: Any, digits: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/datasets/{digits}/check")
    expect(page.locator("#dataset-findings")).to_contain_text("Errors")
    check_page(page)
    page.get_by_role("button", name="Full check").click()
    expect(page.get_by_role("heading", name="Full check")).to_be_visible()
    expect(page.locator("#dataset-findings .stats")).to_contain_text("400")


def test_every_kind_of_chart_is_drawn_and_a_cell_is_a_link(page: Page, server: Any, digits: str) -> None:
    page.goto(f"{server.address}/datasets/{digits}")
    page.locator("#size-charts > summary").click()
    chart = page.get_by_role("img", name="Sizes of the files")
    expect(chart.locator("canvas")).to_be_visible()
    names = ["cat", "dog"]
    link = f"/datasets/{digits}/explore?class_name={{row}}&split=val"
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
        {"kind": "heat", "rows": ["1"], "columns": ["7"], "values": [[3]], "link": link},
    ):
        before = chart.screenshot()
        chart.evaluate("(element, text) => { element.dataset.chart = text; }", json.dumps(spec))
        wait_until(lambda before=before: chart.screenshot() != before, PROCESS_S)
    chart.click()
    page.wait_for_url("**/explore?class_name=1&split=val")
