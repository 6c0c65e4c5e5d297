"""Behaviors 61 and 62 of DIGITS: a network or a rate that cannot work ends in an error that says why."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

import httpx
from studio_doors import studio_of_digits

from tests.waiting import wait_until

BROKEN = """
class UserModel(Tower):
    @model_property
    def inference(self):
        return no_such_layer(self.x)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Return what trains a model of DIGITS's fields, and says how it ended: its id and the status."""
    with (
        studio_of_digits(tmp_path_factory.mktemp("way")) as (studio, digits),
        httpx.Client(base_url=studio.address.rstrip("/"), timeout=100) as http,
    ):
        form = {"dataset_name": "digits", "folder_train": str(digits), "resize_width": "28", "resize_height": "28"}
        dataset = http.post("/datasets/images/classification.json", data={**form, "resize_channels": "1"}).json()["id"]

        def make(**fields):
            usual = {"model_name": "m", "dataset": dataset, "framework": "tensorflow", "train_epochs": "2"}
            made = http.post("/models/images/classification.json", data={**usual, **fields}).raise_for_status().json()
            place = f"/models/{made['id']}/status"
            status = lambda: http.get(place).json()  # noqa: E731 - it is asked again
            wait_until(lambda: status()["status"] in ("Done", "Error", "Aborted"), 200)
            return status(), http.get(f"/api/v1/jobs/{made['id']}").json()

        yield make


@pytest.mark.nightly
def test_61_a_name_that_is_not_defined_is_an_error_that_shows_it(train):
    status, job = train(method="custom", custom_network=BROKEN)
    assert status["status"] == "Error"
    assert "no_such_layer" in status["error"]
    assert (job["state"], job["error"]["error"]) == ("failed", "network_code")


@pytest.mark.timeout(600)
def test_62_a_learning_rate_far_too_high_is_an_error(train):
    status, job = train(standard_networks="lenet", learning_rate="1e15", solver_type="SGD")
    assert status["status"] == "Error"
    assert "decreasing the learning rate" in status["error"]
    assert job["state"] == "failed"
