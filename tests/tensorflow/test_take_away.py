"""Exports that nobody waits for, with TensorFlow: formats are those of the backend, and a real model is proven."""

from __future__ import annotations

import json
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.studio.studio_process import StudioProcess
from tests.waiting import wait_until
from ziggurat.backends.tensorflow.export.formats import FORMATS
from ziggurat.client import Client
from ziggurat.entities import Job
from ziggurat.errors import JobError
from ziggurat.workspace.studio.exports import export_formats

pytestmark = pytest.mark.tensorflow


@pytest.mark.timeout(600)
def test_the_studio_offers_what_the_backend_writes():
    job = Job(id="1", kind="train", name="", state="done", folder="", spec={}, framework="tensorflow")

    assert {each.name for each in export_formats(job)} == set(FORMATS)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Return the client of a studio in a process of its own."""
    process = StudioProcess(tmp_path / "workspace")
    try:
        with Client(process.address.rstrip("/")) as opened:
            yield opened
    finally:
        process.end(signal.SIGTERM)


@pytest.mark.nightly
def test_a_model_is_exported_proven_and_saved(client: Client, tmp_path: Path):
    spec = {"name": "lenet", "backend": "tensorflow", "network": "lenet", "data": "digits", "epochs": 1}
    job_id = client.train(spec)[0]["id"]
    client.wait(job_id, timeout_s=300)

    asked = client.models.start_export(job_id, "pb")
    wait_until(lambda: client.models.exports(job_id)[0]["state"] in ("done", "failed"), 300)
    (made,) = client.models.exports(job_id)
    client.models.save_export(job_id, asked["name"], tmp_path / "model.zip")
    client.models.publish(job_id, "LeNet on digits?")

    assert asked["state"] == "waiting"
    assert made["error"] is None
    assert made["result"]["parity"]["holds"]
    assert made["result"]["parity"]["samples"] == 100
    with zipfile.ZipFile(tmp_path / "model.zip") as packed:
        assert {"info.json", "model.pb", "predict.py", "MODEL_CARD.md", "parity.json"} <= set(packed.namelist())
        assert json.loads(packed.read("info.json"))["parity"]["holds"]
    assert [each["name"] for each in client.models.pretrained()] == ["LeNet on digits?"]
    with pytest.raises(JobError, match="published as LeNet on digits"):
        client.delete(job_id)
    client.models.withdraw("LeNet on digits?")
    client.delete(job_id)
