"""Trying a model in a browser: an image that is dropped, a split that is measured live, a threshold that moves all."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import finished

_DROP = """([place, content]) => {
  const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "three.png", {type: "image/png"}));
  const drop = new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true});
  document.querySelector(place).dispatchEvent(drop);
}"""


@pytest.fixture(scope="module")
def model(server: Any, digits: str) -> str:
    """Return the id of a training on the dataset that is done."""
    spec = {"kind": "train", "version": 1, "name": "on digits", "backend": "null", "network": "mlp", "epochs": 10}
    made = httpx.post(f"{server.address}/api/v1/trainings", json={"spec": spec, "dataset": digits}, timeout=60)
    assert made.status_code == 201, made.text
    return finished(server, made.json()["jobs"][0]["id"])


def test_a_picture_that_is_dropped_is_answered(
    server: Any, page: Any, model: str, digit_folders: Path, check_page: Any
) -> None:
    content = sorted((digit_folders / "3").iterdir())[0].read_bytes()
    page.goto(f"{server.address}/models/{model}/test")
    expect(page.locator("#one-form")).to_have_attribute("data-mounted", "true")
    page.evaluate(_DROP, ["#one-form", base64.b64encode(content).decode()])

    expect(page.locator("#test-one .said li")).to_have_count(5)
    expect(page.locator("#test-one")).to_contain_text("three.png")
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

    expect(page.locator("#evaluation")).to_contain_text("Confusion matrix")
    expect(page.locator("table.confusion tbody tr")).to_have_count(10)
    slider = page.get_by_label("Only predictions with at least this score")
    slider.focus()
    for _ in range(2):  # the best checkpoint is an early one, and its scores are low
        page.keyboard.press("PageUp")
    expect(page).to_have_url(re.compile(r"[?&]threshold=0\.2&"))
    expect(page.locator("#threshold-shown")).to_have_text("0.20")
    expect(slider).to_be_focused()
    found = server.client.evaluations.at_threshold(page.url.rpartition("/")[2].partition("?")[0], 0.2)
    expect(page.locator("#evaluation-results .stats dd").first).to_have_text(f"{found['decided']} of 80")
    page.locator("#sort-f1").click()
    expect(page.locator('th[aria-sort="descending"]')).to_have_text("F1 ▼")
    page.get_by_label("Show the class").select_option("3")
    expect(page.get_by_role("heading", name="Class 3")).to_be_visible()
    expect(page).to_have_url(re.compile(r"class=3&threshold=0\.2&sort=f1"))
    check_page(page)

    cell = page.locator("table.confusion td.right a").first
    count = cell.inner_text()
    cell.click()
    expect(page.locator(".lead")).to_contain_text(f"{count} sample")
    expect(page.locator(".sample img").first).to_have_js_property("complete", True)
    check_page(page)
