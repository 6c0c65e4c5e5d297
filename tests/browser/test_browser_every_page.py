"""Shows that every page fits every screen, is accessible in light and dark, is light itself, and stays on its host.

``python -m tools.screenshots`` runs this file to make the images of the documentation.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import WIDTHS, RunningStudio, finished, take_pictures
from tests.waiting import PROCESS_S, wait_until

PAGE_BYTES = 60_000
NAMESAKES = "as before"
"""Name of two trainings."""

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
    "classes": "/datasets/{dataset}/classes",
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
    "diverged": "/models/{diverged}",
    "namesakes": f"/models/{NAMESAKES}",
    "test": "/models/{model}/test",
    "test-many": "/models/{model}/test?tab=many",
    "test-splits": "/models/{model}/test?tab=splits",
    "evaluation": "/evaluations/{evaluation}",
    "samples": "/evaluations/{evaluation}/samples?only=wrong",
    "compare": "/compare?job={model}&job={other}",
    "take-away": "/models/{model}/take-away",
    "pretrained-weights": "/pretrained",
    "search": "/search?q=digits",
    "settings": "/settings",
    "users": "/settings/users",
    "tokens": "/settings/tokens",
    "audit": "/settings/audit",
    "uploads": "/uploads",
    "trash": "/trash",
    "account": "/account",
    "about": "/about",
    "licences": "/about/licences",
    "operations": "/api/v1/docs",
}
IS_WHOLE = """() => {
  const isNear = (each) => each.checkVisibility() && each.getBoundingClientRect().top < innerHeight + 300;
  const late = [...document.querySelectorAll("[data-island]:not([data-mounted])")].filter(isNear);
  const isHere = [...document.images].every((each) => each.complete || each.loading === "lazy");
  const html = document.documentElement;
  const hasCommands = html.dataset.commands || !document.querySelector("[data-palette]");
  return hasCommands && isHere && !late.length && !document.querySelector(".htmx-request");
}"""
"""Scripts, images and parts of a page that come after it are there."""

IS_WITHIN = """() => new Promise((answer) => requestAnimationFrame(() => requestAnimationFrame(() =>
  answer(document.documentElement.scrollWidth <= document.documentElement.clientWidth))))"""
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .slice(0, 12).map((each) => `${each.tagName}.${each.className}#${each.id}`).join(" ")"""
PICTURES = bool(os.environ.get("DOCS_SCREENSHOTS"))
"""Whether the images of the documentation are made: they show a network that people know."""

LENET = {"kind": "train", "version": 1, "backend": "tensorflow", "network": "lenet", "epochs": 6, "batch_size": 16}
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
def made(server: RunningStudio, digits: str, model: str, tiny_model: str) -> dict[str, str]:
    """Return the ids of what a studio holds after a while: models, failed and diverged ones, an evaluation."""
    broken = {"source": "file", "path": "network.py", "text": BROKEN}
    failed = _train(server, {**LENET, "name": NAMESAKES, "network": broken}, dataset=digits)
    models = _shown_models(server, digits, [model, tiny_model]) if PICTURES else [model, tiny_model]
    evaluation = server.client.evaluations.create(models[0], split="val")["id"]
    map_id = server.client.datasets.create_map(digits, features="own", tsne=False)["id"]
    diverged = _diverged(server)
    for job_id in (evaluation, map_id):
        finished(server, job_id)
    wait_until(lambda: server.client.job(failed)["state"] == "failed", PROCESS_S)
    source = str(server.workspace / "uploads" / "digits")
    known = {"dataset": digits, "model": models[0], "other": models[1], "failed": failed, "diverged": diverged}
    return {**known, "evaluation": evaluation, "source": source}


def _shown_models(server: RunningStudio, digits: str, others: list[str]) -> list[str]:
    """Return the ids of two trainings of a network that people know, which take the place of others."""
    rates = {"LeNet": 0.02, "LeNet, lower rate": 0.002}
    made = [_train(server, {**LENET, "name": name, "learning_rate": rates[name]}, dataset=digits) for name in rates]
    for job_id in others:
        server.client.delete(job_id, force=True)
    return [finished(server, job_id, 300) for job_id in made]


def _diverged(server: RunningStudio) -> str:
    """Return the id of a training that diverged after a rate was set by hand, and is stopped."""
    spec = {"kind": "train", "version": 1, "name": NAMESAKES, "backend": "null", "network": "mlp", "data": "digits"}
    job_id = _train(server, {**spec, "epochs": 100_000, "heartbeat_s": 0.2})
    # A loss that never fell cannot rise: the rate is set once it is well below its first value.
    wait_until(lambda: server.client.job(job_id)["scalars"].get("validation_cost", {}).get("minimum", 9) < 1, PROCESS_S)
    server.client.set_hyperparameter(job_id, "learning_rate", 300, force=True)
    wait_until(lambda: server.client.job(job_id)["divergence"] is not None, PROCESS_S)
    server.client.stop(job_id)
    wait_until(lambda: server.client.job(job_id)["state"] == "stopped", PROCESS_S)
    return job_id


def _train(server: RunningStudio, spec: dict[str, Any], **fields: Any) -> str:
    answer = httpx.post(f"{server.address}/api/v1/trainings", json={"spec": spec, **fields}, timeout=60)
    assert answer.status_code == 201, answer.text
    return answer.json()["jobs"][0]["id"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, page: Page, server: RunningStudio, made: dict[str, str], check_page: Any) -> None:
    answer = page.goto(server.address + PAGES[name].format(**made))
    assert answer is not None
    assert answer.status == (300 if name == "namesakes" else 200)
    _wait_until_whole(page, name, made)
    # Of a choice between several (300), the browser gives no body to a test.
    assert answer.status == 300 or len(answer.body()) < 20 * PAGE_BYTES
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        _check_width(page, width)
    page.set_viewport_size({"width": 1440, "height": 900})
    check_page(page)
    take_pictures(page, name)


def _wait_until_whole(page: Page, name: str, made: dict[str, str]) -> None:
    """Wait for what comes after the page itself."""
    if name == "job":
        expect(page.locator("[data-curve] canvas").first).to_be_visible()
    elif name == "map":
        expect(page.locator("#map")).to_have_attribute("data-drawn", "true")
    elif name == "test":
        page.get_by_label("Choose an image").set_input_files(min(Path(made["source"], "3").iterdir()))
        expect(page.locator("#test-one .said li")).to_have_count(5)
    else:
        page.wait_for_function(IS_WHOLE)


def _check_width(page: Page, width: int) -> None:
    """Charts follow the width of the window in the next frames."""
    try:
        wait_until(lambda: page.evaluate(IS_WITHIN), PROCESS_S)
    except AssertionError:
        raise AssertionError(f"{width} px wide, wider is {page.evaluate(TOO_WIDE)}") from None
