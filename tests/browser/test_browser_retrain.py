"""Twenty wrong labels are corrected from a cell of the confusion matrix, and a new training shows what changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import finished

WRONG = 20
LONG_MS = 180_000


class Clicks:
    """Clicks that are counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, place: Locator) -> None:
        place.click()
        self.count += 1


@pytest.fixture(scope="module")
def evaluated(server: Any, tmp_path_factory: pytest.TempPathFactory, digit_folders: Path) -> str:
    """Return the evaluation of a model on zeros and ones, of which 20 zeros have the label 1."""
    folder = server.workspace / "uploads" / "bits"
    for name in ("0", "1"):
        shutil.copytree(digit_folders / name, folder / name)
    zeros = sorted((folder / "0").iterdir())
    for image in zeros:  # more of them, so that most zeros are labeled correctly
        for copy in range(2):
            (folder / "0" / f"{image.stem}-{copy}.png").write_bytes(image.read_bytes() + bytes([copy]))
    for image in zeros[:WRONG]:
        image.rename(folder / "1" / f"zero-{image.name}")
    body = {
        "spec": {"kind": "dataset", "version": 1, "name": "bits", "source": str(folder), "splits": {"val_share": 0}}
    }
    made = httpx.post(f"{server.address}/api/v1/datasets", json=body, timeout=60)
    dataset = finished(server, made.json()["id"])
    spec = {"name": "on bits", "backend": "null", "network": "mlp", "epochs": 4, "batch_size": 16}
    (job,) = server.client.train({**spec, "learning_rate": 0.05}, dataset=dataset)
    model = finished(server, job["id"])
    return finished(server, server.client.evaluations.create(model, split="train")["id"])


@pytest.mark.nightly
def test_from_a_cell_to_what_changed_in_four_clicks(
    page: Page, server: Any, evaluated: str, check_page: Callable[[Page], None]
) -> None:
    page.goto(f"{server.address}/evaluations/{evaluated}")
    cell = page.locator("#cell-1-0")
    expect(cell).to_have_text(str(WRONG))
    click = Clicks()

    click(cell)
    expect(page.locator("#samples-title")).to_have_text("Samples of the cell")
    expect(page.locator("#relabel-to")).to_have_value("0")
    expect(page.locator("#relabel-all")).to_have_text(f"Relabel all {WRONG}")
    check_page(page)
    click(page.locator("#relabel-all"))
    page.wait_for_url("**/datasets/2*")
    expect(page.locator("#made-of li")).to_have_count(1)
    expect(page.locator("#retrain-hint")).to_contain_text("on bits")
    check_page(page)
    click(page.locator("#retrain"))
    page.wait_for_url(f"**/evaluations/{evaluated}/differences?other=2*")

    # It fills itself when the jobs are done, without a reload by hand.
    expect(page.locator("#labels-changed")).to_have_text(str(WRONG), timeout=LONG_MS)
    assert click.count == 3
    other = page.url.rpartition("=")[2]
    found = server.client.evaluations.differences(evaluated, other)
    expect(page.locator("#changes-fixed")).to_have_text(f"Fixed: {found['counts']['fixed']}")
    assert found["counts"]["fixed"] >= WRONG - 2
    assert found["accuracy"]["interval"][0] > 0
    expect(page.locator("#accuracy-change")).to_have_class("better")
    check_page(page)
    page.locator("#changes-label-changed").click()
    expect(page.locator(".tile .relabeled")).to_have_count(WRONG)
    expect(page.locator(".tile .relabeled").first).to_have_text("label 1 → 0")
    trainings = [job for job in server.client.jobs(kind=["train"]) if job["parent"]]
    assert len(trainings) == 1


@pytest.mark.nightly
def test_what_is_still_to_be_done_is_shown(
    page: Page, server: Any, evaluated: str, check_page: Callable[[Page], None]
) -> None:
    dataset = server.client.evaluations.summary(evaluated)["dataset"]
    version = server.client.datasets.relabel(dataset, ["train/0"], "1", name="bits again")
    model = server.client.evaluations.summary(evaluated)["model"]
    found = server.client.evaluations.retrain(model, version["id"], evaluation=evaluated)
    server.client.stop(found["model"]["id"])

    page.goto(f"{server.address}/evaluations/{evaluated}/differences?other={found['evaluation']['id']}")

    expect(page.locator("#comparison-waiting .steps li")).to_have_count(2)
    check_page(page)
