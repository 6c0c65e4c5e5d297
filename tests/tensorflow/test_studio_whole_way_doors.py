"""From folders of images to a downloaded model, by each of the four doors of one studio."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import httpx
import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

from studio_doors import EPOCHS, LENET, check_confusion, check_curves, curl, studio_of_digits

from tests.integration.studio.studio_process import call
from tests.waiting import wait_until
from ziggurat.client import Client

SPLITS = {"train": 360, "val": 120, "test": 120}
SHARES = {"method": "share", "val_share": 0.2, "test_share": 0.2}
DATASET = {"size": [28, 28], "channels": 1, "splits": SHARES, "seed": 1, "workers": 0}


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    """Return the address of a studio, and a folder of digits that it may read."""
    with studio_of_digits(tmp_path_factory.mktemp("way")) as (studio, digits):
        yield studio.address.rstrip("/"), digits


def ended(read):
    """Wait until a job has ended, and return it; ``read`` gives what is known of it."""
    job = wait_until(lambda: (now := read())["state"] in ("done", "failed", "stopped") and now, 200)
    assert job["state"] == "done", job["reason"]
    return job


@pytest.mark.timeout(600)
def test_by_rest(door, tmp_path):
    address, digits = door
    with httpx.Client(base_url=f"{address}/api/v1", timeout=200) as http:
        spec = {"kind": "dataset", "version": 1, "source": str(digits), "name": "digits", **DATASET}
        dataset = http.post("/datasets", json={"spec": spec}).raise_for_status().json()["id"]
        asked = {"spec": {"kind": "train", "version": 1, "name": "lenet", **LENET}, "dataset": dataset}
        (job,) = http.post("/trainings", json=asked).raise_for_status().json()["jobs"]
        assert (job["state"], job["depends_on"]) == ("queued", [dataset])
        place = f"/jobs/{job['id']}"
        done = ended(lambda: http.get(place).json())
        assert done["started"] >= http.get(f"/jobs/{dataset}").json()["ended"]  # it waited for its dataset
        assert http.get(f"/datasets/{dataset}").json()["splits"] == SPLITS

        check_curves({each["tag"]: each for each in http.get(f"{place}/curves").json()})
        assert [each["epoch"] for each in http.get(f"{place}/checkpoints").json()] == [*range(1, EPOCHS + 1)]

        picture = sorted((digits / "7").iterdir())[0]
        files = {"files": (picture.name, picture.read_bytes())}
        found = http.post(f"/models/{job['id']}/predict", files=files, data={"checkpoint": "best"}).json()
        assert found["predictions"][0]["classes"][0]["class"] == "7"
        check_confusion(http.post(f"/models/{job['id']}/evaluate", json={"split": "test"}).json(), SPLITS["test"])

        best = http.get(f"{place}/download", params={"checkpoint": "best", "format": "tar.gz"})
        with tarfile.open(fileobj=io.BytesIO(best.raise_for_status().content)) as packed:
            states = [name for name in packed.getnames() if name.endswith("/state.json")]
            assert json.load(packed.extractfile("info.json"))["id"] == job["id"]
        assert len(states) == 1


@pytest.mark.nightly
def test_by_the_client(door, tmp_path):
    address, digits = door
    packed = Path(shutil.make_archive(str(tmp_path / "digits"), "zip", digits))
    with Client(address) as studio:
        source = studio.datasets.upload(packed)
        dataset = studio.datasets.create({"source": source, "name": "sent digits", **DATASET})
        (job,) = studio.train({"name": "lenet of a program", **LENET}, dataset=dataset["id"])
        states = [each["state"] for each in studio.follow(job["id"])]
        assert (states[0], states[-1]) == ("queued", "done"), studio.log(job["id"])
        assert studio.datasets.describe(dataset["id"])["splits"] == SPLITS

        check_curves(studio.curves(job["id"]))
        picture = sorted((digits / "3").iterdir())[0]
        found = studio.models.predict(job["id"], [picture], checkpoint="best", top=1)
        assert [each["class"] for each in found["predictions"][0]["classes"]] == ["3"]
        check_confusion(studio.models.evaluate(job["id"], split="test", checkpoint="best"), SPLITS["test"])

        with zipfile.ZipFile(studio.download(job["id"], tmp_path / "lenet.zip", checkpoint="best")) as archive:
            names = archive.namelist()
        assert sum(name.endswith("/state.json") for name in names) == 1


@pytest.mark.nightly
def test_by_the_shell(door, tmp_path):
    address, digits = door
    elsewhere = tmp_path / "nowhere"

    def ziggurat(*words):
        answer = call(elsewhere, "--server", address, *(str(word) for word in words), "--json")
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return json.loads(answer.stdout)

    shape = ("--size", "28,28", "--channels", 1, "--seed", 1, "--workers", 0)
    shares = ("--set", "splits.method=share", "--set", "splits.val_share=0.2", "--set", "splits.test_share=0.2")
    dataset = ziggurat("job", "dataset", digits, "--name", "digits of the shell", *shape, *shares)
    flags = [
        word
        for name, value in LENET.items()
        if name != "checkpoints"
        for word in (f"--{name}".replace("_", "-"), value)
    ]
    best = ("--set", f"checkpoints={json.dumps(LENET['checkpoints'])}")
    job = ziggurat("job", "train", "--dataset", dataset["id"], *flags, *best, "--name", "lenet of the shell")
    assert (job["state"], job["depends_on"]) == ("queued", [dataset["id"]])
    assert ziggurat("job", "wait", job["id"], "--time-limit", 200)["state"] == "done"

    check_curves(ziggurat("job", "curve", job["id"]))
    picture = sorted((digits / "6").iterdir())[0]
    found = ziggurat("job", "predict", job["id"], picture, "--checkpoint", "best")
    assert found["predictions"][0]["classes"][0]["class"] == "6"
    figures = ziggurat("job", "evaluate", job["id"], "--split", "test", "--checkpoint", "best", "--wait")
    check_confusion({**figures, "samples": figures["count"]}, SPLITS["test"])

    said = ziggurat("job", "download", job["id"], tmp_path / "lenet.tar", "--checkpoint", "best")
    with tarfile.open(said["file"]) as packed:
        assert sum(name.endswith("/state.json") for name in packed.getnames()) == 1
    assert not elsewhere.exists()


@pytest.mark.nightly
def test_86_by_the_routes_of_digits(door, tmp_path):
    address, digits = door
    size = ["-F", "resize_width=28", "-F", "resize_height=28", "-F", "resize_channels=1"]
    shares = ["-F", "folder_pct_val=20", "-F", "folder_pct_test=20"]
    made = curl(
        f"{address}/datasets/images/classification.json",
        *("-F", "dataset_name=digits", "-F", f"folder_train={digits}", *size, *shares),
    )
    dataset = json.loads(made)["id"]
    with httpx.Client(base_url=address, timeout=200) as http:
        form = {"model_name": "lenet", "dataset": dataset, "framework": "tensorflow", "standard_networks": "lenet"}
        form |= {"train_epochs": str(EPOCHS), "batch_size": "32", "solver_type": "ADAM", "learning_rate": "0.002"}
        form |= {"lr_policy": "fixed", "use_mean": "none", "random_seed": "3"}
        model = http.post("/models/images/classification.json", data=form).raise_for_status().json()
        assert (model["dataset_id"], model["status"] in ("Initialized", "Waiting")) == (dataset, True)
        wait_until(lambda: http.get(f"/models/{model['id']}/status").json()["status"] in ("Done", "Error"), 200)
        found = http.get(f"/models/{model['id']}.json").json()
        assert (found["status"], found["snapshots"]) == ("Done", [*range(1, EPOCHS + 1)])
        counts = http.get(f"/datasets/{dataset}.json").json()["ParseFolderTasks"][0]
        assert [counts[f"{split}_count"] for split in SPLITS] == [*SPLITS.values()]
        check_curves({each["tag"]: each for each in http.get(f"/api/v1/jobs/{model['id']}/curves").json()})

        picture = sorted((digits / "4").iterdir())[0]
        one = json.loads(
            curl(
                f"{address}/models/images/classification/classify_one.json",
                *("-F", f"job_id={model['id']}", "-F", f"image_file=@{picture}", "-F", f"snapshot_epoch={EPOCHS}"),
            )
        )
        assert one["predictions"][0][0] == "4"
        assert (
            hand_count(http, model["id"], dataset, digits)
            == http.post(f"/api/v1/models/{model['id']}/evaluate", json={"split": "test"}).json()["confusion"]
        )

        archive = tmp_path / "model.tar.gz"
        curl(f"{address}/models/{model['id']}/download.tar.gz?epoch={EPOCHS}", "--output", str(archive))
        with tarfile.open(archive) as packed:
            assert sum(name.endswith("/state.json") for name in packed.getnames()) == 1
            assert json.load(packed.extractfile("info.json"))["dataset_id"] == dataset


def hand_count(http, model, dataset, digits):
    """Return the confusion matrix of the test split, counted from what ``classify_many`` says of its images."""
    page = http.get(f"/api/v1/datasets/{dataset}/samples", params={"split": "test", "limit": 1000}).json()
    keys = [each["key"] for each in page["samples"]]
    found = http.post(
        "/models/images/classification/classify_many.json",
        data={"job_id": model, "image_folder": str(digits)},
        files={"image_list": "\n".join(keys).encode()},
    ).json()["classifications"]
    assert list(found) == keys
    confusion = np.zeros((10, 10), int)
    for key, best in found.items():
        confusion[int(key.partition("/")[0]), int(best[0][0])] += 1
    return confusion.tolist()
