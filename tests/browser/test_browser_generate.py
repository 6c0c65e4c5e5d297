"""A network that generates, in a browser: samples of a seed, and sliders for its noise."""

from __future__ import annotations

import os
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import finished

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


@pytest.fixture(scope="module")
def generator(server: Any, digits: str) -> str:
    """Return the id of a training of a GAN on images of digits that is done."""
    spec = {"kind": "train", "version": 1, "name": "gan on digits", "backend": "tensorflow", "network": "gan"}
    spec |= {"epochs": int(os.environ.get("TESTS_GAN_EPOCHS", "1")), "optimizer": {"name": "adam", "beta_1": 0.5}}
    spec |= {"learning_rate": 0.0005, "batch_size": 40}
    made = httpx.post(f"{server.address}/api/v1/trainings", json={"spec": spec, "dataset": digits}, timeout=60)
    assert made.status_code == 201, made.text
    return finished(server, made.json()["jobs"][0]["id"], 400)


@pytest.mark.nightly
def test_samples_follow_seed_and_sliders(server: Any, page: Any, generator: str, check_page: Any) -> None:
    page.goto(f"{server.address}/models/{generator}/test")
    check_page(page)
    page.get_by_role("button", name="Generate").click()
    samples = page.locator(".made img")
    expect(samples).to_have_count(16)
    expect(samples.first).to_have_js_property("naturalWidth", 28)
    first = content(page, 0)

    page.get_by_role("button", name="New seed").click()
    expect(samples.first).not_to_have_attribute("alt", "Sample 1 of seed 0")
    assert content(page, 0) != first
    page.get_by_label("Seed").fill("0")
    page.get_by_label("Seed").press("Tab")
    expect(samples.first).to_have_attribute("alt", "Sample 1 of seed 0")
    assert content(page, 0) == first

    expect(page.locator("#sliders-0")).to_be_hidden()
    page.get_by_label("Set the first numbers by hand").check()
    slider = page.get_by_label("noise, number 1")
    expect(slider).to_be_visible()
    before = samples.first.get_attribute("src")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#sliders-0 output").first).to_have_text("3.0")
    expect(samples.first).not_to_have_attribute("src", before)
    expect(slider).to_be_focused()
    assert content(page, 0) != first
    check_page(page)
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    check_page(page)


@pytest.mark.nightly
def test_the_form_works_without_scripts(server: Any, browser: Any, generator: str) -> None:
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{server.address}/models/{generator}/test")
    plain.locator("#count").fill("2")
    plain.get_by_role("button", name="Generate").click()
    expect(plain.locator(".made img")).to_have_count(2)
    plain.get_by_label("Set the first numbers by hand").check()
    expect(plain.get_by_label("noise, number 8")).to_be_visible()
    plain.context.close()


def content(page: Any, number: int) -> bytes:
    """Return a sample as it came."""
    return page.request.get(
        page.url.partition("/models/")[0] + page.locator(".made img").nth(number).get_attribute("src")
    ).body()
