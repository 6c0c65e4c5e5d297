"""The page for a new model in a browser: editor, graph, errors at their line, live parts, and a start."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from tests.integration.studio.studio_process import wait_for

NETWORK_MS = 120_000
"""The framework is loaded for each look at a network."""


def test_a_late_answer_changes_nothing_typed_since(server: Any, page: Any, digits: str) -> None:
    page.goto(f"{server.address}/models/new?dataset={digits}")
    held: list[Any] = []
    page.route("**/models/new/network", lambda route: held.append(route))
    with page.expect_request("**/models/new/network"):
        page.get_by_label("Linear classifier").check()
    page.locator("#learning_rate").fill("0.1, 0.03")
    page.locator("#learning_rate").press("Tab")
    expect(page.locator("#rate polyline")).to_have_count(2)
    with page.expect_response("**/models/new/rate"), page.expect_response("**/models/new/quick"):
        held[0].continue_()
    expect(page.locator("#learning_rate")).to_have_value("0.1, 0.03")
    expect(page.locator("#rate-words")).to_contain_text("0.1, 0.03")
    expect(page.locator("#start")).to_have_text("Start 2 trainings")


def test_a_training_is_put_together_and_started(server: Any, page: Any, digits: str, check_page: Any) -> None:
    page.goto(f"{server.address}/models/new?dataset={digits}")
    expect(page.locator("#dataset-summary")).to_contain_text("train")
    page.get_by_label("Linear classifier").check()
    page.locator("#learning_rate").fill("0.1, 0.01")
    expect(page.locator("#rate polyline")).to_have_count(2)
    page.locator("#schedule").select_option("poly")
    expect(page.locator("#schedule-poly-power")).to_be_visible()
    expect(page.locator("#schedule-step-gamma")).to_be_hidden()
    expect(page.locator("#rate-words")).to_contain_text("poly")
    expect(page.locator("#start")).to_have_text("Start 2 trainings")
    expect(page.locator("#learning_rate")).to_have_value("0.1, 0.01")
    page.locator("#epochs").fill("0")
    page.locator("#epochs").press("Tab")
    expect(page.locator("#preflight")).to_contain_text("`epochs` must be at least 1")
    page.locator("#epochs").fill("1")
    page.locator("#epochs").press("Tab")
    expect(page.locator("#preflight .finding").first).to_be_visible()
    check_page(page)
    page.locator("#learning_rate").fill("0.1")
    page.locator("#learning_rate").press("Tab")
    expect(page.locator("#start")).to_have_text("Start the training")
    page.locator("#start").click()
    page.wait_for_url(re.compile(r"/models/\d{8}-\d{6}-[0-9a-f]{8}$"))
    job = server.client.job(page.url.rpartition("/")[2])
    assert job["spec"]["learning_rate"] == 0.1
    assert job["spec"]["network"] == {"source": "zoo", "name": "linear"}
    assert job["depends_on"] == [digits]


def test_the_preview_is_seen(server: Any, page: Any, digits: str) -> None:
    page.goto(f"{server.address}/models/new?dataset={digits}")
    page.locator("#augmentation-rotation_deg").fill("20")
    page.get_by_role("button", name="Show the network's input").click()
    first = page.locator(".preview-pictures img").first
    expect(first).to_be_visible(timeout=NETWORK_MS)
    expect(page.locator(".preview-pictures img")).to_have_count(30)
    expect(first).to_have_js_property("naturalWidth", 28)


def test_an_error_is_marked_and_the_graph_shown_once_mended(server: Any, page: Any, check_page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    page.get_by_role("button", name="Customize LeNet-5 (1998)").click()
    code = page.locator(".cm-content")
    expect(code).to_contain_text("class UserModel(Tower):")
    page.locator(".cm-line", has_text="return slim.fully_connected").click()
    page.keyboard.press("End")
    for _ in range(len(', activation_fn=None, scope="fc2")')):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    expect(page.locator("#network_text")).to_have_value(re.compile(r"self\.nclasse,"))
    page.get_by_role("button", name="Visualize").click()
    problem = page.locator("#network-problem")
    expect(problem).to_contain_text("Line 21", timeout=NETWORK_MS)
    expect(problem).to_contain_text("Did you mean `self.nclasses`?")
    expect(page.locator(".editor")).to_have_attribute("data-problem-line", "21")
    expect(page.locator(".cm-lintRange-error")).to_have_count(1)
    check_page(page)
    page.get_by_role("button", name="Go to line 21").click()
    expect(code).to_be_focused()
    page.keyboard.press("Control+z")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(code).not_to_be_focused()
    expect(page.locator("#network_text")).to_have_value(re.compile(r"self\.nclasses,"))
    page.get_by_role("button", name="Visualize").click()
    graph = page.locator(".graph")
    expect(graph).to_have_attribute("data-drawn", re.compile(r"\d+"), timeout=NETWORK_MS)
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)
    expect(page.locator("#network-fine")).to_contain_text("431\u202f080")
    before = int(graph.get_attribute("data-drawn"))
    page.locator('[data-scope="conv1"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator('[data-scope="conv1"]')).to_have_attribute("aria-expanded", "true")
    assert int(graph.get_attribute("data-drawn")) > before
    check_page(page)


def test_completion_knows_the_contract(server: Any, page: Any) -> None:
    page.goto(f"{server.address}/models/new")
    page.locator("#method-custom").check()
    page.locator(".cm-line").last.click()
    page.keyboard.type("self.ncl")
    offered = page.locator(".cm-tooltip-autocomplete li").first
    expect(offered).to_contain_text("nclasses")
    offered.click()  # the key Enter takes it too, but not at once, lest it be pressed by mistake
    expect(page.locator("#network_text")).to_have_value(re.compile(r"self\.nclasses$"))


def test_the_page_fits_a_small_screen(server: Any, page: Any, digits: str) -> None:
    for width in (400, 1024):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{server.address}/models/new?dataset={digits}")
        expect(page.locator("#rate polyline")).to_have_count(1)
        wait_for(lambda width=width: page.evaluate("document.documentElement.scrollWidth") <= width)
