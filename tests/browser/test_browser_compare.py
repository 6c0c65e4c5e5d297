"""The pages to compare, to take away, of settings and of this installation, in a browser."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

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


def test_a_model_is_published_and_offered(server: Any, page: Any, runs: list[str], check_page: Any) -> None:
    page.goto(f"{server.address}/models/{runs[0]}/take-away")
    page.get_by_label("Name").fill("Digits at <1>")
    page.get_by_role("button", name="Publish").click()
    expect(page.locator(".take-published")).to_contain_text("Digits at <1>")
    with page.expect_download() as got:
        page.get_by_role("button", name="Download archive").click()
    assert got.value.suggested_filename == "slow.tar.gz"
    check_page(page)

    page.goto(f"{server.address}/models/new")
    page.locator("#method-pretrained").check()
    page.get_by_label("Published model").select_option("Digits at <1>")


def test_settings_and_about_are_open_to_everybody(server: Any, page: Any, tiny_model: str, check_page: Any) -> None:
    page.goto(f"{server.address}/settings")
    page.get_by_label("Dataset jobs at a time").fill("2")
    page.get_by_role("button", name="Save limits").click()
    expect(page.locator("#settings-saved")).to_be_visible()
    check_page(page)
    for path in ("/settings/users", "/settings/tokens", "/settings/audit", "/account", "/about/licences"):
        page.goto(f"{server.address}{path}")
        check_page(page)
    page.locator("#own-1 summary").click()
    expect(page.locator("#own-1-text")).to_contain_text(re.compile("Apache License"))
    page.goto(f"{server.address}/about")
    expect(page.get_by_role("region", name="Disk use")).to_contain_text("Trainings and evaluations")
    check_page(page)
