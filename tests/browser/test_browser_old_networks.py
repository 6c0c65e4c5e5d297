"""Networks of other tools in a browser: pasted as text, converted, trained, tested and exported."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import finished
from tests.caffe_files import LENET
from tests.torch7_files import LENET as LUA

TEXT = LENET.strip()
LONG_MS = 180_000
"""How long a job may take on a machine that is busy."""


def paste(page: Page, tab: str, text: str) -> None:
    """Put a text into the editor of a tab."""
    page.locator(f".of-{tab} .cm-content").first.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


CAFFE = (
    "caffe", "Caffe", TEXT, TEXT.replace("kernel_size: 5", "kernel_size: five", 1),
    "Line 17: kernel_size is 'five', not a whole number.",
)  # fmt: skip
TORCH = (
    "torch7", "Torch (Lua)", LUA, LUA.replace("lib.ReLU", "lib.Rellu"),
    "Line 20: Rellu is not a function or module that an import knows.",
)  # fmt: skip


@pytest.mark.parametrize(
    ("tab", "title", "text", "wrong", "error"),
    [CAFFE, pytest.param(*TORCH, marks=pytest.mark.nightly)],
    ids=["caffe", "lua"],
)
def test_a_pasted_network_is_converted(
    page: Page, server: Any, digits: str, check_page: Any, tab: str, title: str, text: str, wrong: str, error: str
) -> None:
    if tab == "torch7":
        pytest.importorskip("lupa")
    page.goto(f"{server.address}/models/new?dataset={digits}")
    page.get_by_text(title, exact=True).click()
    page.expected.append("status of 422")  # type: ignore[attr-defined]
    paste(page, tab, wrong)
    page.locator(f"#convert-{tab}").click()
    expect(page.locator(f"#{tab}_text-wrong")).to_contain_text(error)
    expect(page.locator(f".of-{tab} .cm-lint-marker-error").first).to_be_attached()
    check_page(page)
    convert(page, tab, text)
    check_page(page)


@pytest.mark.nightly
@pytest.mark.parametrize(("tab", "title", "text"), [CAFFE[:3], TORCH[:3]], ids=["caffe", "lua"])
def test_a_converted_network_becomes_a_tested_model(
    page: Page, server: Any, digits: str, digit_folders: Path, tmp_path: Path, tab: str, title: str, text: str
) -> None:
    if tab == "torch7":
        pytest.importorskip("lupa")
    page.goto(f"{server.address}/models/new?dataset={digits}")
    page.get_by_text(title, exact=True).click()
    convert(page, tab, text)
    page.get_by_label("Epochs", exact=True).fill("1")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_url("**/models/2*")
    model = finished(server, page.url.rpartition("/")[2])
    predict_and_export(page, server, model, digit_folders, tmp_path)


def convert(page: Page, tab: str, text: str) -> None:
    """Put a network into the editor of a tab, and convert it."""
    paste(page, tab, text)
    page.locator(f"#convert-{tab}").click()
    expect(page.locator(f"#{tab}-report")).to_contain_text("passed", timeout=LONG_MS)
    expect(page.locator(f".of-{tab} .cm-content").nth(1)).to_contain_text("class UserModel")


def predict_and_export(page: Page, server: Any, model: str, digit_folders: Path, folder: Path) -> None:
    """Predict an image with a model, and take it away as ONNX."""
    page.goto(f"{server.address}/models/{model}/test")
    page.locator("#picture").set_input_files(sorted((digit_folders / "7").iterdir())[0])
    expect(page.locator("#test-one img").first).to_be_visible(timeout=LONG_MS)
    page.goto(f"{server.address}/models/{model}/take-away")
    page.get_by_label("ONNX").check()
    page.locator("#export-go").click()
    link = page.locator("#take-exports").get_by_role("link", name="(zip)")
    expect(link).to_be_visible(timeout=LONG_MS)
    with page.expect_download() as downloading:
        link.click()
    downloading.value.save_as(folder / "model.zip")
    assert any(name.endswith(".onnx") for name in zipfile.ZipFile(folder / "model.zip").namelist())
