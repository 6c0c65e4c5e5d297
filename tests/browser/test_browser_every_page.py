"""Shows that every page fits every screen, is accessible in light and dark, is light itself, and stays on its host.

``python -m tools.screenshots`` runs this file to make the images of the documentation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import WIDTHS, RunningStudio, finished, take_pictures
from tests.waiting import PROCESS_S, wait_until

PAGE_BYTES = 60_000
PAGES = {
    "home": "/",
    "data-sets": "/datasets",
    "models": "/models",
    "evaluations": "/evaluations",
    "new-data-set": "/datasets/new?source={source}",
    "data-set": "/datasets/{dataset}",
    "explore": "/datasets/{dataset}/explore",
    "map": "/datasets/{dataset}/explore?view=map",
    "new-map": "/datasets/{dataset}/maps/new",
    "sample": "/datasets/{dataset}/samples/train/0",
    "check": "/datasets/{dataset}/check",
    "versions": "/datasets/{dataset}/versions",
    "new-model": "/models/new?dataset={dataset}",
    "clone": "/models/new?clone={model}",
    "new-program": "/programs/new",
    "job": "/models/{model}",
    "job-predictions": "/models/{model}?tab=predictions",
    "job-checkpoints": "/models/{model}?tab=checkpoints",
    "job-log": "/models/{model}?tab=log",
    "job-configuration": "/models/{model}?tab=configuration",
    "job-system": "/models/{model}?tab=system",
    "failed": "/models/{failed}",
    "test": "/models/{model}/test",
    "test-many": "/models/{model}/test?tab=many",
    "test-splits": "/models/{model}/test?tab=splits",
    "evaluation": "/evaluations/{evaluation}",
    "samples": "/evaluations/{evaluation}/samples?only=wrong",
    "compare": "/compare?job={model}&job={clone}",
    "take-away": "/models/{model}/take-away",
    "pretrained-weights": "/pretrained",
    "search": "/search?q=lenet",
    "settings": "/settings",
    "users": "/settings/users",
    "tokens": "/settings/tokens",
    "audit": "/settings/audit",
    "about": "/about",
    "licences": "/about/licences",
    "operations": "/api/v1/docs",
}
IS_WITHIN = """() => new Promise((answer) => requestAnimationFrame(() => requestAnimationFrame(() =>
  answer(document.documentElement.scrollWidth <= document.documentElement.clientWidth))))"""
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .slice(0, 12).map((each) => `${each.tagName}.${each.className}#${each.id}`).join(" ")"""
BROKEN = """class UserModel(Tower):
    @model_property
    def inference(self):
        net = slim.flatten(self.x)
        return slim.fully_conected(net, self.nclasses)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


@pytest.fixture(scope="module")
def made(server: RunningStudio, digits: str) -> dict[str, str]:
    """Return the ids of what a studio holds after a while: a model, its clone, one that failed, an evaluation."""
    lenet = {"kind": "train", "version": 1, "backend": "tensorflow", "network": "lenet", "epochs": 6, "batch_size": 16}
    model = _train(server, {**lenet, "name": "LeNet", "learning_rate": 0.02}, dataset=digits)
    broken = {"source": "file", "path": "network.py", "text": BROKEN}
    failed = _train(server, {**lenet, "name": "misspelt", "network": broken}, dataset=digits)
    clone = _train(server, {**lenet, "name": "LeNet, lower rate", "learning_rate": 0.002}, dataset=digits, parent=model)
    for job_id in (model, clone):
        finished(server, job_id, 300)
    evaluation = server.client.evaluations.create(model, split="val")["id"]
    finished(server, evaluation)
    finished(server, server.client.datasets.create_map(digits, features="own", tsne=False)["id"])
    source = str(server.workspace / "uploads" / "digits")
    known = {"dataset": digits, "model": model, "clone": clone, "failed": failed, "evaluation": evaluation}
    return {**known, "source": source}


def _train(server: RunningStudio, spec: dict[str, Any], **fields: Any) -> str:
    answer = httpx.post(f"{server.address}/api/v1/trainings", json={"spec": spec, **fields}, timeout=60)
    assert answer.status_code == 201, answer.text
    return answer.json()["jobs"][0]["id"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, page: Page, server: RunningStudio, made: dict[str, str], check_page: Any) -> None:
    answer = page.goto(server.address + PAGES[name].format(**made))
    assert answer is not None
    assert answer.status == 200
    _wait_until_whole(page, name, made)
    assert len(answer.body()) < 20 * PAGE_BYTES
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        _check_width(page, width)
    page.set_viewport_size({"width": 1440, "height": 900})
    check_page(page)
    take_pictures(page, name)


def _wait_until_whole(page: Page, name: str, made: dict[str, str]) -> None:
    """Wait for what comes after the page itself; the page of a job is never idle, for it listens."""
    if name == "job":
        expect(page.locator("[data-curve] canvas").first).to_be_visible()
    elif name == "map":
        expect(page.locator("#map")).to_have_attribute("data-drawn", "true")
    elif name == "test":
        page.get_by_label("Choose an image").set_input_files(min(Path(made["source"], "3").iterdir()))
        expect(page.locator("#test-one .said li")).to_have_count(5)
    else:
        page.wait_for_load_state("networkidle")


def _check_width(page: Page, width: int) -> None:
    """Charts follow the width of the window in the next frames."""
    try:
        wait_until(lambda: page.evaluate(IS_WITHIN), PROCESS_S)
    except AssertionError:
        raise AssertionError(f"{width} px wide, wider is {page.evaluate(TOO_WIDE)}") from None
