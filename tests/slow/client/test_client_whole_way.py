"""The whole way from a program: upload, dataset, training, following, predicting, evaluating, taking away."""

from __future__ import annotations

import json
import math
import zipfile

import pytest

from ziggurat.client import Client
from ziggurat.errors import CheckpointError, JobError, SpecError, UnknownNameError, UsageError


def test_digits_52_53_a_training_waits_for_its_data_set(client, done):
    dataset, job = done

    assert client.wait(job)["state"] == "done"
    assert client.job(job)["depends_on"] == [dataset]
    assert client.datasets.describe(dataset)["splits"]["train"] == 9
    assert [each["epoch"] for each in client.checkpoints(job)] == [1, 2]
    assert [each["outcome"] for each in client.attempts(job)] == ["done"]
    assert {each["level"] for each in client.messages(job)} <= {"info", "warning", "error"}
    assert [each["id"] for each in client.queue()] == []


def test_curves_hold_one_point_a_step(client, done):
    curves = client.curves(done[1])

    assert curves
    for curve in curves.values():
        assert len(curve["steps"]) == len(curve["values"]) == curve["total"]
        assert not any(math.isnan(value) for value in curve["values"])


def test_digits_83_85_pictures_are_sent_or_named(client, done, pets):
    _dataset, job = done
    pictures = sorted(pets.rglob("*.png"))[:3]

    sent = client.models.predict(job, pictures, top=2)

    assert [each["file"] for each in sent["predictions"]] == [str(each) for each in pictures]
    assert all(len(each["classes"]) == 2 for each in sent["predictions"])
    assert sent["failures"] == []


def test_a_picture_that_is_none_is_among_the_failures(client, done, pets, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")

    found = client.models.predict(done[1], [bad, next(pets.rglob("*.png"))])

    assert [each["file"] for each in found["failures"]] == [str(bad)]
    assert len(found["predictions"]) == 1


def test_digits_86_evaluation_counts_every_sample(client, done):
    found = client.models.evaluate(done[1], split="val")

    assert found["samples"] == 3
    assert sum(sum(row) for row in found["confusion"]) == 3


def test_digits_92_archives_of_one_checkpoint_or_of_all(client, done, tmp_path):
    first, last = client.checkpoints(done[1])

    whole = client.download(done[1], tmp_path / "whole.zip")
    one = client.download(done[1], tmp_path / "one.zip", checkpoint=first["name"])

    with zipfile.ZipFile(whole) as packed, zipfile.ZipFile(one) as part:
        assert json.loads(packed.read("info.json"))["name"] == "on pets"
        assert {f"checkpoints/{each['name']}/state.json" for each in (first, last)} <= set(packed.namelist())
        assert f"checkpoints/{first['name']}/state.json" in part.namelist()
        assert f"checkpoints/{last['name']}/state.json" not in part.namelist()


def test_digits_91_activations_of_one_picture(client, done, pets):
    found = client.models.activations(done[1], next(pets.rglob("*.png")))

    assert found["activations"]
    for layer in found["activations"]:
        assert {"name", "shape", "mean", "deviation", "histogram", "png"} <= set(layer)


def test_a_checkpoint_with_a_name_is_kept_and_others_go(client):
    (job,) = client.train({"network": "mlp", "data": "digits", "epochs": 2, "steps_per_epoch": 2})
    client.wait(job["id"], every_s=0.2)
    first, last = client.checkpoints(job["id"])

    client.remove_checkpoint(job["id"], first["name"])

    assert [each["name"] for each in client.checkpoints(job["id"])] == [last["name"]]


def test_the_queue_is_reordered_and_paths_are_suggested(client):
    first, second = (client.train({"network": "mlp", "data": "digits", "devices": ["gpu:7"]})[0] for _ in range(2))

    assert [each["id"] for each in client.reorder(second["id"], first["id"])] == [second["id"], first["id"]]
    assert any(path.endswith("/uploads/") for path in client.paths())
    client.act("delete", ids=[first["id"], second["id"]])
    assert client.queue() == []


def test_a_file_is_never_overwritten_by_a_download(client, done, tmp_path):
    (tmp_path / "there.zip").touch()

    with pytest.raises(Exception, match="nothing is ever overwritten"):
        client.download(done[1], tmp_path / "there.zip")


def test_a_checkpoint_is_not_invented(client, done, tmp_path):
    with pytest.raises(CheckpointError):
        client.download(done[1], tmp_path / "none.zip", checkpoint="step-00009999")
    assert not list(tmp_path.iterdir())


def test_pictures_and_exports_of_a_data_set(client, done, tmp_path):
    assert client.datasets.picture(done[0], "val", 0).startswith(b"\x89PNG")
    with zipfile.ZipFile(client.datasets.export(done[0], "class_folders", tmp_path / "pets.zip")) as packed:
        assert sum(name.endswith(".png") for name in packed.namelist()) == 12


def test_errors_are_those_of_ziggurat(client):
    with pytest.raises(SpecError, match="batch_size"):
        client.train({"network": "mlp", "data": "digits", "batch_size": 0})
    with pytest.raises(UnknownNameError) as unknown:
        client.models.network_text("lenett")
    assert unknown.value.details["nearest"][0] == "lenet"
    with pytest.raises(JobError) as missing:
        client.job("20200101-000000-abcd")
    assert missing.value.details["status"] == 404


def test_waiting_for_a_job_that_was_stopped_says_so(client):
    (job,) = client.train({"network": "mlp", "data": "digits", "devices": ["gpu:0"]})
    client.stop(job["id"])

    with pytest.raises(JobError, match="stopped"):
        client.wait(job["id"])


def test_waiting_ends_in_time(client):
    (job,) = client.train({"network": "mlp", "data": "digits", "devices": ["gpu:0"]})

    with pytest.raises(JobError, match=r"still queued after 0\.1 s"):
        client.wait(job["id"], timeout_s=0.1, every_s=0.05)
    client.delete(job["id"])


def test_jobs_come_page_by_page(client, done):
    names = {each["name"] for each in client.jobs(kind=["train", "dataset"], limit=1)}

    assert {"pets", "on pets"} <= names


def test_a_studio_that_is_not_there_is_said():
    with Client("http://127.0.0.1:9") as client, pytest.raises(UsageError, match="ziggurat up"):
        client.version()


def test_an_address_that_is_none_is_said():
    for address in ("http://[", "localhost:5000", "ftp://studio"):
        with pytest.raises(UsageError, match="URL"):
            Client(address)
