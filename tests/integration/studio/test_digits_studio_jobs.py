"""Behaviors 12 to 23, 53, 88, 90, 93 and 94 of DIGITS, asked of a real server by DIGITS's own routes."""

from __future__ import annotations

import io
import signal
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

import httpx
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from studio_process import StudioProcess, call

from tests.waiting import PROCESS_S, wait_until

FOR_EVER = "100000"
ENDED = ("Done", "Error", "Aborted")


class Digits:
    """A script that was written for DIGITS, with a folder of 40 images of 4 classes.

    Args:
        http: asks the studio.
        folder: of the images.
    """

    def __init__(self, http, folder):
        self.http = http
        self.folder = folder

    def dataset(self, **fields):
        """Make a dataset, and return its id."""
        form = {"dataset_name": "small", "folder_train": str(self.folder), "folder_pct_val": "20"}
        form |= {"resize_width": "8", "resize_height": "8", "resize_channels": "1", **fields}
        return self._made("/datasets/images/classification.json", form)

    def model(self, dataset, **fields):
        """Make a model, and return its id."""
        form = {"model_name": "m", "dataset": dataset, "framework": "null", "standard_networks": "mlp"}
        return self._made("/models/images/classification.json", form | {"batch_size": "4", **fields})

    def status(self, job):
        """Return the status of a job; empty where there is none."""
        answer = self.http.get(f"/jobs/{job}/status")
        return answer.json()["status"] if answer.is_success else ""

    def until(self, job, *statuses):
        """Wait until a job has one of the statuses, and return what it is."""
        return wait_until(
            lambda: (now := self.http.get(f"/jobs/{job}.json").json())["status"] in statuses and now, PROCESS_S
        )

    def at_work(self, model):
        """Wait until a model has made steps."""
        wait_until(lambda: self.http.get(f"/api/v1/jobs/{model}").json()["global_step"] > 0, PROCESS_S)

    def snapshots(self, model, at_least=1):
        """Wait until a model has so many snapshots, and return their epochs."""
        shown = lambda: self.http.get(f"/models/{model}.json").json()["snapshots"]  # noqa: E731 - it is asked again
        return wait_until(lambda: len(found := shown()) >= at_least and found, PROCESS_S)

    def classify(self, model, **fields):
        """Return what a model says of the first image, best first."""
        picture = sorted(self.folder.rglob("*.png"))[0]
        place = "/models/images/classification/classify_one.json"
        answer = self.http.post(place, data={"job_id": model, "image_path": str(picture), **fields})
        return answer.raise_for_status().json()["predictions"]

    def _made(self, place, form):
        answer = self.http.post(place, data=form)
        assert answer.is_success, answer.text
        return answer.json()["id"]


def pictures(folder):
    """Write forty handwritten digits of 0, 1, 2 and 3, one folder for each."""
    digits = load_digits(n_class=4)
    for label in range(4):
        (folder / str(label)).mkdir(parents=True)
        for number, row in enumerate(np.flatnonzero(digits.target == label)[:10]):
            Image.fromarray(np.uint8(digits.images[row] * 15)).save(folder / str(label) / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    place = tmp_path_factory.mktemp("digits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        folder = pictures(place / "pictures")
        studio = StudioProcess(place / "workspace")
    with httpx.Client(base_url=studio.address.rstrip("/"), timeout=60) as http:
        yield Digits(http, folder)
    studio.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def dataset(digits):
    """Return the id of a dataset that is done."""
    made = digits.dataset()
    assert digits.until(made, *ENDED)["status"] == "Done"
    return made


@pytest.mark.nightly
def test_12_20_a_job_is_found_until_it_is_deleted(digits, dataset):
    at_once = digits.model(dataset, train_epochs=FOR_EVER)
    assert any(each["id"] == at_once for each in digits.http.get("/index.json").json()["models"])
    digits.http.post(f"/models/{at_once}/abort")
    digits.until(at_once, "Aborted")
    waited_for = digits.model(dataset, train_epochs="1")
    digits.until(waited_for, "Done")
    for job in (at_once, waited_for):
        assert digits.http.delete(f"/models/{job}").status_code == 200
        assert digits.http.get(f"/models/{job}.json").status_code == 404
        assert digits.status(job) == ""
    assert digits.http.get("/index.json").json()["models"] == []


def test_20_a_job_is_deleted_as_soon_as_it_is_made(digits, dataset):
    blocking = digits.model(dataset, train_epochs=FOR_EVER)
    waiting = digits.model(dataset)
    assert digits.http.delete(f"/models/{waiting}").status_code == 200
    assert digits.http.get(f"/models/{waiting}.json").status_code == 404
    digits.http.post(f"/models/{blocking}/abort")
    digits.until(blocking, "Aborted")
    assert digits.http.delete(f"/models/{blocking}").status_code == 200


def test_13_a_job_that_goes_on_has_an_attempt_more_and_one_state(digits, dataset):
    model = digits.model(dataset, train_epochs=FOR_EVER, snapshot_interval="1000")
    digits.at_work(model)
    assert digits.http.post(f"/models/{model}/abort").is_success
    digits.http.post(f"/models/{model}/abort")  # twice is once
    digits.until(model, "Aborted")
    digits.http.post(f"/api/v1/jobs/{model}/resume")
    wait_until(lambda: len(digits.http.get(f"/api/v1/jobs/{model}/attempts").json()) == 2, PROCESS_S)
    digits.http.post(f"/models/{model}/abort")
    digits.until(model, "Aborted")
    attempts = digits.http.get(f"/api/v1/jobs/{model}/attempts").json()
    assert [(each["number"], each["outcome"]) for each in attempts] == [(1, "stopped"), (2, "stopped")]
    digits.http.delete(f"/models/{model}")


def test_16_18_19_a_model_waits_for_its_data_set_and_keeps_it(digits):
    dataset = digits.dataset(dataset_name="kept")
    model = digits.model(dataset, train_epochs=FOR_EVER, snapshot_interval="1000")
    assert digits.status(model) in ("Initialized", "Waiting", "Running")
    digits.until(model, "Running")
    assert digits.status(dataset) == "Done"
    assert digits.http.delete(f"/datasets/{dataset}").status_code == 403  # while the model runs
    digits.http.post(f"/models/{model}/abort")
    digits.until(model, "Aborted")
    assert digits.http.delete(f"/datasets/{dataset}").status_code == 403  # and when it has ended
    assert digits.status(dataset) == "Done"
    assert digits.http.delete(f"/models/{model}").status_code == 200
    assert digits.http.delete(f"/datasets/{dataset}").status_code == 200


def test_21_88_snapshots_of_running_and_aborted_models_work(digits, dataset):
    model = digits.model(dataset, train_epochs=FOR_EVER, snapshot_interval="20")
    epoch = digits.snapshots(model)[0]
    assert len(digits.classify(model, snapshot_epoch=str(epoch))) == 4
    assert digits.status(model) == "Running"  # asking did not disturb it
    later = digits.snapshots(model, 2)
    digits.http.post(f"/models/{model}/abort")
    found = digits.until(model, "Aborted")
    assert set(later) <= set(found["snapshots"])
    assert digits.classify(model, snapshot_epoch=str(epoch)) == digits.classify(model, snapshot_epoch=str(epoch))
    archive = digits.http.get(f"/models/{model}/download.zip", params={"epoch": epoch})
    with zipfile.ZipFile(io.BytesIO(archive.content)) as packed:
        assert sum(name.endswith("/state.json") for name in packed.namelist()) == 1
    digits.http.delete(f"/models/{model}")


@pytest.mark.nightly
def test_88_asking_a_model_keeps_no_training_from_its_end(digits, dataset):
    model = digits.model(dataset, train_epochs="600", snapshot_interval="50")
    epoch = digits.snapshots(model)[0]
    shares = [share for _, share in digits.classify(model, snapshot_epoch=str(epoch))]
    assert shares == sorted(shares, reverse=True)
    assert digits.until(model, *ENDED)["status"] == "Done"
    digits.http.delete(f"/models/{model}")


def test_23_a_clone_of_a_data_set_is_the_same_but_for_its_id(digits, dataset):
    request = digits.http.get(f"/api/v1/jobs/{dataset}/request").json()
    body = {name: request[name] for name in ("spec", "project", "tags", "notes", "priority", "parent") if request[name]}
    copy = digits.http.post("/api/v1/datasets", json=body).raise_for_status().json()["id"]
    old, new = (digits.until(each, *ENDED) for each in (dataset, copy))
    own = ("id", "job id", "directory")
    assert {name: value for name, value in new.items() if name not in own} == {
        name: value for name, value in old.items() if name not in own
    }
    specs = [digits.http.get(f"/api/v1/jobs/{each}").json()["spec"] for each in (dataset, copy)]
    assert specs[0] == specs[1]
    assert digits.http.get(f"/api/v1/jobs/{copy}").json()["parent"] == dataset
    digits.http.delete(f"/datasets/{copy}")


@pytest.mark.parametrize(("epochs", "every", "count"), [("4", "2", 2), ("1", "0.5", 2), ("3", "1", 3)])
def test_53_a_snapshot_at_every_so_many_epochs(digits, dataset, epochs, every, count):
    model = digits.model(dataset, train_epochs=epochs, snapshot_interval=every)
    found = digits.until(model, *ENDED)
    assert (found["status"], len(found["snapshots"])) == ("Done", count)
    digits.http.delete(f"/models/{model}")


def test_90_an_evaluation_has_as_many_samples_as_the_data_set(digits, dataset):
    model = digits.model(dataset, train_epochs="2")
    digits.until(model, "Done")
    entries = {
        each["name"]: each["entries"] for each in digits.http.get(f"/datasets/{dataset}.json").json()["CreateDbTasks"]
    }
    assert entries == {"Create DB (train)": 32, "Create DB (val)": 8}
    for split in ("train", "val"):
        found = digits.http.post(f"/api/v1/models/{model}/evaluate", json={"split": split}).json()
        assert found["samples"] == entries[f"Create DB ({split})"]
    digits.http.delete(f"/models/{model}")


@pytest.mark.nightly
def test_93_a_model_taken_away_is_used_and_trained_elsewhere(digits, dataset, tmp_path, monkeypatch):
    model = digits.model(dataset, train_epochs="30", snapshot_interval="10", group_name="travels")
    digits.until(model, "Done")
    said = digits.classify(model, snapshot_epoch="30")
    archive = digits.http.get(f"/models/{model}/download.tar").raise_for_status().content
    there = tmp_path / "workspace"
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(there / "jobs" / model, filter="data")
    monkeypatch.setenv("HOME", str(digits.folder.parent))
    assert call(there, "reindex").returncode == 0
    studio = StudioProcess(there)
    try:
        with httpx.Client(base_url=studio.address.rstrip("/"), timeout=60) as http:
            other = Digits(http, digits.folder)
            assert other.http.get(f"/models/{model}.json").json()["snapshots"] == [10, 20, 30]
            assert other.classify(model, snapshot_epoch="30") == said
            fields = {"method": "previous", "previous_networks": model, f"{model}-snapshot": "30"}
            onward = other.model(other.dataset(), train_epochs="1", **fields)
            spec = other.http.get(f"/api/v1/jobs/{onward}").json()["spec"]
            assert Path(spec["pretrained"]).parents[1] == there / "jobs" / model
    finally:
        studio.end(signal.SIGTERM)
    digits.http.delete(f"/models/{model}")


def test_94_an_archive_whose_names_lead_out_of_it_is_refused(digits):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name in ("cat/1.png", "dog/1.png", "../../out.png"):
            packed.writestr(name, sorted(digits.folder.rglob("*.png"))[0].read_bytes())
    sent = digits.http.post("/api/v1/uploads", params={"name": "pets.zip"}, content=content.getvalue()).json()
    spec = {"kind": "dataset", "version": 1, "source": sent["source"], "name": "pets"}
    answer = digits.http.post("/api/v1/datasets", json={"spec": spec})
    if answer.is_success:
        job = answer.json()["id"]
        assert digits.until(job, *ENDED)["status"] == "Error"
        assert "../../out.png" in digits.http.get(f"/jobs/{job}/status").json()["error"]
    else:
        assert "../../out.png" in answer.text
    assert not list(Path(digits.folder.parent).rglob("out.png"))
