"""Pretrained weights in a browser: a file is added, a training is started from it, and the list stays accessible."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RunningStudio, settle
from tests.unit.weights.weight_samples import weights_file
from tests.waiting import PROCESS_S, wait_until

PICTURES = os.environ.get("DOCS_SCREENSHOTS", "")


def fits(page: Page, name: str) -> None:
    """Check that nothing is wider than any screen."""
    for width in (400, 768, 1024, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        if PICTURES:
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                settle(page)
                page.screenshot(path=Path(PICTURES) / f"{name}-{scheme}-{width}.png", full_page=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.nightly
def test_weights_are_added_and_a_training_starts_from_them(
    server: RunningStudio, page: Page, check_page: Any, tmp_path: Path
) -> None:
    page.expected.append("400 (Bad Request)")  # type: ignore[attr-defined]  # a name that is refused
    page.goto(f"{server.address}/models")
    check_page(page)
    fits(page, "models")
    page.click("#model-tabs >> text=Pretrained weights")
    expect(page.locator("h1")).to_have_text("Pretrained weights")
    expect(page.locator("#public-resnet18")).to_contain_text("BSD-3-Clause")
    check_page(page)
    fits(page, "pretrained-empty")

    page.set_input_files("#file", weights_file(tmp_path, "bad name.safetensors", classes=10))
    page.fill("#name", "../up")
    page.keyboard.press("Enter")
    expect(page.locator("#name-problem")).to_contain_text("letters, digits")
    expect(page.locator("#problems")).to_be_visible()
    check_page(page)
    page.set_input_files("#file", weights_file(tmp_path, "tiny.safetensors", classes=10))
    page.fill("#name", "tiny")
    page.fill("#title", "Tiny network on digits")
    page.fill("#license", "CC0-1.0")
    page.fill("#source", "https://example.org/weights/tiny.safetensors")
    page.click("#more > summary")
    page.fill("#classes", "\n".join(f"digit {number}" for number in range(10)))
    page.fill("#mean", "0.5, 0.5, 0.5")
    page.click("#add-go")
    expect(page.locator("#home-said")).to_contain_text("Tiny network on digits was added")
    row = page.locator("#weights-tiny")
    for text in ("weights:tiny", "CC0-1.0", "10 classes", "mean 0.5, 0.5, 0.5", "no run"):
        expect(row).to_contain_text(text)
    page.locator("#weights-tiny .digits summary").press("Enter")
    expect(row.locator(".whole")).to_be_visible()
    check_page(page)

    page.click("#train-tiny")
    expect(page.locator("#pretrained_weights")).to_have_value("tiny")
    expect(page.locator("#pretrained_weights")).to_be_visible()
    check_page(page)
    fits(page, "new-model-pretrained")
    spec = {"network": "mlp", "backend": "null", "data": "digits", "epochs": 1, "pretrained": "weights:tiny"}
    server.client.train({**spec, "name": "from tiny"})
    page.goto(f"{server.address}/pretrained")
    expect(row).to_contain_text("from tiny")
    (user,) = server.client.weights.get("tiny")["users"]
    wait_until(lambda: server.client.job(user["id"])["state"] not in ("queued", "running", "stopping"), PROCESS_S)
    fits(page, "pretrained")


def test_weights_of_a_program_come_and_go_while_the_page_is_open(
    server: RunningStudio, page: Page, check_page: Any, tmp_path: Path
) -> None:
    page.goto(f"{server.address}/pretrained")
    page.fill("#license", "typed meanwhile")
    made = server.client.weights.add(
        weights_file(tmp_path, "other.safetensors"), license="MIT", classes=["a", "b", "c"]
    )
    assert made["reference"] == "weights:other"
    expect(page.locator("#weights-other")).to_contain_text("MIT")
    expect(page.locator("#license")).to_have_value("typed meanwhile")
    page.click("#delete-other")
    expect(page.locator("#weights-other")).to_have_count(0)
    assert "other" not in [each["name"] for each in server.client.weights.all()]


def test_a_download_without_a_network_says_so(server: RunningStudio, page: Page, check_page: Any) -> None:
    page.goto(f"{server.address}/pretrained")
    page.locator("#download-resnet18").press("Enter")
    failed = page.locator("#failed-resnet18")
    expect(failed).to_contain_text("There is no connection to download.pytorch.org")
    expect(failed).to_contain_text("on another machine")
    check_page(page)
    fits(page, "pretrained-failed")
    page.click("#dismiss-resnet18")
    expect(failed).to_have_count(0)
    expect(page.locator("#download-resnet18")).to_be_visible()


@pytest.mark.nightly
def test_weights_that_come_with_ziggurat_take_one_click(server: RunningStudio, page: Page, check_page: Any) -> None:
    page.goto(f"{server.address}/pretrained")
    row = page.locator("#public-convnet-fashion")
    expect(row).to_contain_text("comes with Ziggurat, no download needed")
    fits(page, "pretrained-packaged")
    page.click("#download-convnet-fashion")
    added = page.locator("#weights-convnet-fashion")
    expect(added).to_contain_text("10 classes")
    expect(row.locator(".chip")).to_have_text("Added")
    added.locator("summary", has_text="10 classes").press("Enter")
    expect(added).to_contain_text("T-shirt/top, Trouser")
    check_page(page)
    fits(page, "pretrained-packaged-added")
    page.click("#train-convnet-fashion")
    expect(page.locator("#pretrained_weights")).to_have_value("convnet-fashion")
