"""A box that is missing is drawn in the browser, the version is trained on anew, and both detectors are compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import finished
from tests.shapes import write_shapes

LONG_MS = 240_000
LEFT, TOP, WIDTH, HEIGHT = range(4)


def without_the_largest_box(folder: Path) -> tuple[int, list[int]]:
    """Take the largest box of the validation images away from the labels; return its image and its sides in px."""
    file = folder / "instances_val.json"
    content = json.loads(file.read_text())
    largest = max(content["annotations"], key=lambda each: each["area"])
    content["annotations"].remove(largest)
    file.write_text(json.dumps(content))
    left, top, width, height = largest["bbox"]
    return largest["image_id"], [left, top, left + width, top + height]


@pytest.fixture(scope="module")
def detector(server: Any) -> tuple[str, str, int, list[int]]:
    """Return a dataset, the evaluation of a detector on it, and the place and sides of the box that is missing."""
    folder = server.workspace / "uploads" / "shapes"
    write_shapes(folder, 48, 12)
    row, box = without_the_largest_box(folder)
    body = {"spec": {"kind": "dataset", "version": 1, "name": "shapes", "source": str(folder)}}
    made = httpx.post(f"{server.address}/api/v1/datasets", json=body, timeout=60)
    dataset = finished(server, made.json()["id"])
    spec = {
        "name": "on shapes",
        "backend": "torch",
        "network": "detector_nano",
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 0.002,
        "preprocessing": {"size": [64, 64]},
    }
    (job,) = server.client.train(spec, dataset=dataset)
    model = finished(server, job["id"], 240)
    return dataset, finished(server, server.client.evaluations.create(model, split="val")["id"]), row, box


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_box_is_drawn_and_both_detectors_compared(
    page: Page, server: Any, detector: tuple[str, str, int, list[int]], check_page: Callable[[Page], None]
) -> None:
    dataset, evaluation, row, box = detector
    page.goto(f"{server.address}/datasets/{dataset}/boxes/val/{row}")
    expect(page.locator("#boxes")).to_have_attribute("data-mounted", "true")
    boxes = page.locator("#boxes-list li")
    known = boxes.count()
    page.locator("#tool-new").click()
    place = page.locator("#boxes-svg").evaluate(
        "(svg, sides) => [0, 2].map((each) => {"
        " const at = new DOMPoint(sides[each], sides[each + 1]).matrixTransform(svg.getScreenCTM());"
        " return [at.x, at.y]; })",
        box,
    )
    page.mouse.move(*place[0])
    page.mouse.down()
    page.mouse.move(*place[1], steps=3)
    page.mouse.up()
    expect(boxes).to_have_count(known + 1)
    expect(page.locator("#boxes-state")).to_have_attribute("data-state", "saved")

    page.locator("#boxes-done").click()
    page.locator("#pending-name").fill("shapes, all boxes")
    page.locator("#pending-save").click()
    expect(page.locator("#made-of li")).to_contain_text("Corrected the boxes of 1 sample of val: 1 added.")
    expect(page.locator("#retrain-hint")).to_contain_text("on shapes")
    check_page(page)
    page.locator("#retrain").click()
    page.wait_for_url(f"**/evaluations/{evaluation}/differences?other=2*")

    # It fills itself when the jobs are done, without a reload by hand.
    expect(page.locator("#labels-changed")).to_have_text("1", timeout=LONG_MS)
    check_page(page)
    other = page.url.rpartition("=")[2]
    counted = [server.client.evaluations.summary(each)["metrics"]["counts"]["objects"] for each in (evaluation, other)]
    assert counted[1] == counted[0] + 1
    version = server.client.evaluations.summary(other)["dataset"]
    found = httpx.get(f"{server.address}/api/v1/datasets/{version}/samples?split=val&limit=100").json()["samples"]
    drawn = found[row]["label"][-1]["box"]
    assert drawn == pytest.approx(box, abs=1)
