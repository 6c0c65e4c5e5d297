"""Runs side by side, a model that is taken away, and uploads in the trash, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import finished


@pytest.fixture(scope="module")
def runs(server: Any) -> list[str]:
    """Return the ids of three trainings that are done; two have the same name."""
    found = []
    for name, rate in (("slow", 0.001), ("twin", 0.05), ("twin", 0.1)):
        spec = {"kind": "train", "version": 1, "name": name, "backend": "null", "network": "mlp", "data": "digits"}
        body = {"spec": {**spec, "epochs": 2, "heartbeat_s": 0.2, "learning_rate": rate}}
        made = httpx.post(f"{server.address}/api/v1/trainings", json=body, timeout=60)
        assert made.status_code == 201, made.text
        found.append(made.json()["jobs"][0]["id"])
    return [finished(server, each) for each in found]


@pytest.mark.nightly
def test_runs_are_found_and_put_side_by_side(server: Any, page: Any, runs: list[str], check_page: Any) -> None:
    page.goto(f"{server.address}/compare")
    page.get_by_label("Find trainings").fill("twin")
    expect(page.locator("#compare-found tbody tr")).to_have_count(2)
    for box in page.locator('#compare-found input[name="job"]').all():
        box.check()
    page.get_by_label("Find trainings").fill("slow")
    expect(page.get_by_role("checkbox", name="slow")).to_be_visible()
    page.get_by_role("checkbox", name="slow").check()
    page.get_by_role("button", name="Compare", exact=True).click()

    chart = page.locator('[data-curve="apart:validation_cost"]')
    expect(chart.locator(".curve-keys li")).to_have_count(3)
    expect(chart.locator(".curve-keys")).to_contain_text(f"twin ({runs[1][-4:]})")
    expect(page.get_by_role("region", name="Settings that differ")).to_contain_text("learning_rate")
    expect(page.locator(".compare-parallel canvas")).to_be_visible()
    check_page(page)
    page.get_by_role("link", name="Leave out slow").click()
    expect(page.locator(".curve-keys").first.locator("li")).to_have_count(2)


def test_a_model_is_published_and_offered(server: Any, page: Any, tiny_model: str, check_page: Any) -> None:
    page.goto(f"{server.address}/models/{tiny_model}/take-away")
    page.get_by_label("Name").fill("Digits at <1>")
    page.get_by_role("button", name="Publish").click()
    expect(page.locator(".take-published")).to_contain_text("Digits at <1>")
    with page.expect_download() as got:
        page.get_by_role("button", name="Download archive").click()
    assert got.value.suggested_filename == "tiny.tar.gz"
    check_page(page)

    page.goto(f"{server.address}/models/new")
    page.locator("#method-pretrained").check()
    page.get_by_label("Published model").select_option("Digits at <1>")


def test_an_upload_is_deleted_restored_and_removed(server: Any, page: Page, check_page: Any, tmp_path: Path) -> None:
    (tmp_path / "pets.txt").write_text("cat.png 0")
    server.client.datasets.upload(tmp_path / "pets.txt")
    page.goto(f"{server.address}/uploads")
    check_page(page)
    page.get_by_role("button", name="Delete pets.txt").click()
    page.locator("#undo-delete").click()
    expect(page.get_by_text("pets.txt is back.")).to_be_visible()
    page.goto(f"{server.address}/uploads")
    page.get_by_role("button", name="Delete pets.txt").click()
    page.get_by_role("link", name="Trash").click()
    check_page(page)
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("button", name="Restore pets.txt").click()
    expect(page.get_by_text("pets.txt is back.")).to_be_visible()
    page.goto(f"{server.address}/uploads")
    page.get_by_role("button", name="Delete pets.txt").click()
    page.get_by_role("link", name="Trash").click()
    page.get_by_role("button", name="Remove for good: pets.txt").click()
    expect(page.get_by_text("Removed for good.")).to_be_visible()
    assert server.client.trash() == []
