"""Machine load and sample predictions in a browser: cursor, slider, and what stays when the page gets news."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.waiting import PROCESS_S, wait_until


@pytest.fixture
def running(server: Any) -> Any:
    """Return the id of a training with several validations; it is stopped at the end."""
    spec = {"kind": "train", "version": 1, "name": "watched", "backend": "null", "network": "mlp", "data": "digits"}
    spec |= {"epochs": 100_000, "heartbeat_s": 0.2, "machine_load_s": 0.2}
    made = httpx.post(f"{server.address}/api/v1/trainings", json={"spec": spec}, timeout=60)
    assert made.status_code == 201, made.text
    job_id = made.json()["jobs"][0]["id"]
    wait_until(lambda: len(server.client.sample_predictions(job_id)["records"]) > 3, PROCESS_S)
    wait_until(lambda: len(server.client.machine_load(job_id)["times"]) > 3, PROCESS_S)
    yield job_id
    server.client.stop(job_id)
    wait_until(lambda: server.client.job(job_id)["state"] in ("stopped", "done"), PROCESS_S)


def test_arrow_keys_read_all_charts_at_one_moment(server: Any, page: Any, running: str) -> None:
    page.goto(f"{server.address}/models/{running}")
    section = page.locator("#job-machine-load[data-mounted]")
    chart = section.locator("#load-memory .load-chart")
    chart.focus()
    page.keyboard.press("Home")
    for name in ("memory", "cpu", "throughput"):
        expect(section.locator(f"#load-{name} .load-at")).not_to_be_empty()
        expect(section.locator(f"#load-{name} .load-cursor")).not_to_have_attribute("hidden", "")
    expect(section.locator("#load-cpu .load-now")).to_have_text("–")  # a share needs two samples
    page.keyboard.press("Escape")
    expect(section.locator("#load-memory .load-at")).to_be_empty()
    expect(chart).to_be_focused()


def test_the_slider_shows_an_earlier_epoch_and_stays(server: Any, page: Any, running: str) -> None:
    page.goto(f"{server.address}/models/{running}")
    section = page.locator("#job-sample-predictions[data-mounted]")
    slider = section.locator("#sample-epoch")
    slider.focus()
    page.keyboard.press("Home")
    expect(section.locator(".preds-epoch")).to_have_text("0")
    first = server.client.sample_predictions(running)
    names, predicted = first["class_names"], first["records"][0]["predictions"]
    for number in (0, 8):
        expect(section.locator(f"#pred-{number} .pred-name")).to_have_text(names[predicted[number]["class"]])

    records = section.get_attribute("data-records")
    expect(section).not_to_have_attribute("data-records", records or "", timeout=30_000)
    expect(section.locator(".preds-epoch")).to_have_text("0")
    expect(slider).to_be_focused()
