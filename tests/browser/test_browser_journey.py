"""Shows the whole way in a real browser, with the real server and workers: from images to a model taken away."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

LONG_MS = 180_000
"""How long a job may take on a machine that is busy."""

EPOCHS = 12
SHOWN = 10


@pytest.mark.timeout(900)
def test_from_pictures_to_a_model(page: Page, server: Any, digit_folders: Path, tmp_path: Path) -> None:
    page.set_default_timeout(60_000)
    _make_data_set(page, server, digit_folders)
    model = _train_in_the_editor(page)
    _watch_the_curves(page)
    _classify_one_picture(page, digit_folders)
    _follow_a_cell_to_its_samples(page, server, model)
    clone = _clone_with_another_rate(page, server, model)
    _compare(page, server, model, clone)
    _take_away(page, server, model, tmp_path)


def _make_data_set(page: Page, server: Any, folders: Path) -> None:
    page.goto(server.address + "/datasets")
    page.locator("main").get_by_role("link", name="New dataset").first.click()
    page.locator("#folder").set_input_files(folders)
    expect(page.locator("#upload")).to_contain_text("400 files sent")
    expect(page.locator("#class-bars li")).to_have_count(10, timeout=60_000)
    page.get_by_label("Test share", exact=True).fill("0.25")
    page.get_by_label("Name", exact=True).fill("Journey")
    page.get_by_role("button", name="Create dataset").click()
    page.wait_for_url("**/datasets/2*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Journey")
    expect(page.locator("#samples-title")).to_be_visible(timeout=LONG_MS)


def _train_in_the_editor(page: Page) -> str:
    page.locator("main").get_by_role("link", name="New model").click()
    expect(page.get_by_label("Dataset", exact=True)).to_contain_text("Journey")
    page.get_by_role("button", name="Customize the code").click()
    expect(page.locator("#method-custom")).to_be_checked()
    expect(page.locator(".cm-content")).to_contain_text("class UserModel(Tower)")
    page.get_by_label("Epochs", exact=True).fill(str(EPOCHS))
    page.get_by_label("Batch size", exact=True).fill("16")
    page.get_by_label("Learning rate", exact=True).fill("0.02")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_url("**/models/2*")
    return page.url.rpartition("/")[2]


def _watch_the_curves(page: Page) -> None:
    """The curves grow while the training runs, without a reload of the page."""
    page.evaluate("window.wasHere = true")
    expect(page.locator("#job-chip").locator(".is-running, .is-done").first).to_be_visible(timeout=LONG_MS)
    expect(page.locator("[data-island=curves] canvas").first).to_be_visible(timeout=LONG_MS)
    page.get_by_role("button", name="Loss as a table").click()
    loss = page.get_by_role("region", name="Values of Loss").get_by_role("table")
    expect(loss.locator("tbody tr").nth(1)).to_be_visible(timeout=LONG_MS)
    expect(page.locator("#job-chip .is-done")).to_be_visible(timeout=LONG_MS)
    expect(loss.locator("tbody tr").nth(EPOCHS - 1)).to_be_attached()
    assert page.evaluate("window.wasHere")
    expect(page.locator("main").get_by_text("best", exact=True).first).to_be_visible()


def _classify_one_picture(page: Page, folders: Path) -> None:
    page.locator("#job-test").click()
    picture = sorted((folders / "7").iterdir())[0]
    page.locator("#picture").set_input_files(picture)
    best = page.locator("#test-one").locator("table tbody tr, ol li").first
    expect(best).to_contain_text("7", timeout=LONG_MS)
    expect(page.locator("#test-one img").first).to_be_visible()


def _follow_a_cell_to_its_samples(page: Page, server: Any, model: str) -> None:
    page.goto(f"{server.address}/models/{model}/test?tab=splits")
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("#evaluate-test").click()
    page.wait_for_url("**/evaluations/2*")
    matrix = page.locator("table.confusion")
    expect(matrix).to_be_visible(timeout=LONG_MS)
    cell = matrix.locator("#cell-0-0")
    count = int(cell.inner_text())
    cell.click()
    expect(page.locator("#samples-title")).to_have_text("Samples of the cell")
    pictures = page.locator("#samples img")
    expect(pictures).to_have_count(min(count, SHOWN))
    expect(pictures.first).to_have_js_property("complete", True)
    assert pictures.first.evaluate("each => each.naturalWidth") > 0


def _clone_with_another_rate(page: Page, server: Any, model: str) -> str:
    page.goto(f"{server.address}/models/{model}")
    page.get_by_role("link", name="Clone", exact=True).click()
    page.get_by_label("Learning rate", exact=True).fill("0.001")
    page.get_by_label("Name", exact=True).fill("Slower")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_url(lambda url: "/models/2" in url and model not in url)
    expect(page.locator("#job-chip .is-done")).to_be_visible(timeout=LONG_MS)
    return page.url.rpartition("/")[2]


def _compare(page: Page, server: Any, model: str, clone: str) -> None:
    page.goto(f"{server.address}/compare?job={model}&job={clone}")
    differences = page.locator("main").get_by_role("row").filter(has_text="learning_rate")
    expect(differences.filter(has_text="0.02").filter(has_text="0.001").first).to_be_visible()
    expect(page.locator("[data-island=curves] canvas").first).to_be_visible()


def _take_away(page: Page, server: Any, model: str, folder: Path) -> None:
    page.goto(f"{server.address}/models/{model}/take-away")
    page.get_by_label("ONNX").check()
    page.locator("#export-go").click()
    link = page.locator("#take-exports").get_by_role("link", name="(zip)")
    expect(link).to_be_visible(timeout=LONG_MS)
    with page.expect_download() as downloading:
        link.click()
    archive = folder / "model.zip"
    downloading.value.save_as(archive)
    names = {name.rpartition("/")[2] for name in zipfile.ZipFile(archive).namelist()}
    assert {"predict.py", "MODEL_CARD.md", "info.json"} <= names
    assert any(name.endswith(".onnx") for name in names)
