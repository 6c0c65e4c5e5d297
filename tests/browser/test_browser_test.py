"""Trying a model in a browser: an image that is dropped, a split that is measured live, a threshold that moves all."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import finished

_DROP = """([place, content]) => {
  const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "three.png", {type: "image/png"}));
  const drop = new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true});
  document.querySelector(place).dispatchEvent(drop);
}"""


def test_a_picture_that_is_dropped_is_answered(
    server: Any, page: Any, model: str, digit_folders: Path, check_page: Any
) -> None:
    content = sorted((digit_folders / "3").iterdir())[0].read_bytes()
    page.goto(f"{server.address}/models/{model}/test")
    expect(page.locator("#one-form")).to_have_attribute("data-mounted", "true")
    page.evaluate(_DROP, ["#one-form", base64.b64encode(content).decode()])

    expect(page.locator("#test-one .said li")).to_have_count(5)
    expect(page.locator("#test-one figcaption").first).to_have_text("three.png")
    expect(page.locator("#picture-name")).to_have_text("three.png")
    for name, width in (("The original image", 28), ("The network's input image", 112)):
        expect(page.get_by_alt_text(name)).to_have_js_property("naturalWidth", width)
    page.get_by_role("button", name="Show layers and weights").click()
    expect(page.get_by_role("heading", name="Weights:")).to_be_visible()
    expect(page.locator(".layer svg.histogram").first).to_be_visible()
    check_page(page)


def test_a_split_is_measured_and_shown_without_a_reload(server: Any, page: Any, model: str, check_page: Any) -> None:
    page.goto(f"{server.address}/models/{model}/test?tab=splits")
    check_page(page)
    page.get_by_role("button", name="Evaluate on validation").click()
    page.wait_for_url("**/evaluations/2*")

    expect(page.locator("table.confusion tbody tr")).to_have_count(10)
    slider = page.get_by_label("Confidence threshold")
    slider.focus()
    for _ in range(2):  # the best checkpoint is an early one, and its scores are low
        page.keyboard.press("PageUp")
    expect(page).to_have_url(re.compile(r"[?&]threshold=0\.2(&|$)"))
    expect(page.locator("#threshold-shown")).to_have_text("0.20")
    expect(slider).to_be_focused()
    found = server.client.evaluations.at_threshold(page.url.rpartition("/")[2].partition("?")[0], 0.2)
    expect(page.locator("#threshold-figures strong").last).to_have_text(str(80 - found["decided"]))
    page.locator("#sort-recall").focus()
    page.keyboard.press("Enter")
    expect(page.locator('.classes th[aria-sort="ascending"]')).to_contain_text("Recall")
    expect(page.locator("#sort-recall")).to_be_focused()
    page.locator("#class-3").click()
    expect(page.locator(".classes tr.chosen")).to_contain_text("3")
    expect(page).to_have_url(re.compile(r"class=3"))
    page.get_by_role("link", name="ROC").click()
    expect(page.locator(".curve .chance")).to_be_visible()
    check_page(page)

    cell = page.locator("table.confusion td[class^=d] a").first
    count = int(cell.inner_text())
    cell.click()
    expect(page.locator("#show-cell")).to_have_attribute("aria-current", "true")
    expect(page.locator("#samples .tile")).to_have_count(min(count, 10))
    expect(page.locator("#samples .tile img").first).to_have_js_property("complete", True)
    page.locator("#threshold-reset").click()
    expect(page.locator("#threshold-shown")).to_have_text("0.00")
    expect(page.locator("#threshold-figures strong").last).to_have_text("0")
    expect(slider).to_be_focused()
    expect(page.locator("#show-cell")).to_have_attribute("aria-current", "true")
    check_page(page)
    page.locator("#show-all").click()
    expect(page.locator(".lead strong").first).to_contain_text("sample")
    check_page(page)


def test_two_runs_differ_in_words_and_samples(server: Any, page: Any, model: str, check_page: Any) -> None:
    checkpoints = [each["name"] for each in server.client.checkpoints(model)]
    for name in (checkpoints[0], checkpoints[-1]):
        made = server.client.evaluations.create(model, split="val", checkpoint=name)
        finished(server, made["id"])
    page.goto(f"{server.address}/evaluations/{made['id']}")
    expect(page.locator(".metrics .against .changes a")).to_have_count(3)
    page.get_by_label("Compare with").focus()
    page.get_by_label("Compare with").select_option("none")
    expect(page.locator(".metrics .against")).to_have_count(0)
    expect(page.get_by_label("Compare with")).to_be_focused()
    page.locator("#evaluation-checkpoint").click()
    expect(page.locator("#checkpoint-menu").get_by_role("link").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#evaluation-checkpoint")).to_be_focused()
    check_page(page)
