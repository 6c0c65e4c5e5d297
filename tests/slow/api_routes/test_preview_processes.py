"""What is shown before a job is made, where a process of its own looks at data."""

from __future__ import annotations

import base64

import cv2
import numpy as np
import pytest

from ziggurat.errors import DataError, JobError, SpecError, UsageError
from ziggurat.workspace.new_jobs import JobRequest

_SPEC = {"kind": "train", "version": 1, "network": "mlp", "data": "digits", "batch_size": 4, "epochs": 3}


def levels(found):
    return [(each["name"], each["level"]) for each in found["findings"]]


def sentences(found, name):
    return " ".join(each["sentence"] for each in found["findings"] if each["name"] == name)


def decoded(text):
    return cv2.imdecode(np.frombuffer(base64.b64decode(text), np.uint8), cv2.IMREAD_COLOR)


@pytest.mark.nightly
def test_pictures_are_shown_as_the_network_gets_them(ask, pets):
    spec = {"augmentation": {"flip": "fliplr", "noise": 0.1}, "preprocessing": {"crop": 16}, "batch_size": 4}
    body = {"dataset": pets, "spec": spec, "row": 3, "count": 5, "seed": 7}

    one = ask("POST", "/api/v1/trainings/augmented", json=body)
    same = ask("POST", "/api/v1/trainings/augmented", json=body)
    other = ask("POST", "/api/v1/trainings/augmented", json={**body, "seed": 8})

    assert one.status_code == 200, one.text
    found = one.json()
    (picture,) = found["pictures"]
    assert (found["seed"], picture["row"], len(picture["augmented_png"])) == (7, 3, 5)
    assert picture["label_name"] == ("cat", "dog")[picture["label"]]
    assert decoded(picture["original_png"]).shape == (20, 30, 3)
    assert {decoded(each).shape for each in picture["augmented_png"]} == {(16, 16, 3)}
    assert len(set(picture["augmented_png"])) == 5
    assert same.json() == found
    assert other.json()["pictures"][0]["augmented_png"] != picture["augmented_png"]
    assert "seed 7" in found["sentence"]


def test_several_pictures_come_in_the_order_of_the_first_epoch(studio, pets):
    found = studio.training.augmented(pets, {"batch_size": 64}, count=5)

    assert [len(each["augmented_png"]) for each in found["pictures"]] == [4] * 5
    assert len({each["row"] for each in found["pictures"]}) == 5
    assert found["sentence"] == "Nothing is varied: the network gets each image like this, in every epoch."


def test_pictures_of_validation_are_never_varied(studio, pets):
    found = studio.training.augmented(
        pets, {"augmentation": {"noise": 0.5}, "preprocessing": {"crop": 10, "mean": "pixel"}}, split="val", count=9
    )

    assert [each["row"] for each in found["pictures"]] == [0, 1]
    for each in found["pictures"]:
        middle = decoded(each["original_png"])[5:15, 10:20]
        np.testing.assert_array_equal(decoded(each["augmented_png"][0]), middle)


def test_pictures_of_what_is_not_there_are_refused(ask, studio, pets, train):
    body = {"dataset": pets, "spec": {}}
    assert ask("POST", "/api/v1/trainings/augmented", json={**body, "row": 8}).status_code == 400
    assert ask("POST", "/api/v1/trainings/augmented", json={**body, "dataset": train()["id"]}).status_code == 409
    assert ask("POST", "/api/v1/trainings/augmented", json={**body, "dataset": "nobody"}).status_code == 404
    with pytest.raises(UsageError, match="0 images are asked for; from 1 to 100"):
        studio.training.augmented(pets, {}, count=0)
    with pytest.raises(JobError, match="dataset that is done"):
        studio.training.augmented(train()["id"], {})
    with pytest.raises(SpecError) as wrong:
        studio.training.augmented(pets, {"augmentation": {"noise": 3}})
    assert wrong.value.details["field"] == "augmentation.noise"


def test_findings_before_a_training(studio, pets):
    found = studio.training.preflight(JobRequest(spec=_SPEC, dataset=pets))

    assert (found["steps"], found["steps_per_epoch"], found["parameters"]) == (6, 2, None)
    names = {"memory", "disk", "time", "data", "classes", "loading", "rate", "batch", "device"}
    assert {name for name, _ in levels(found)} == names
    assert "8 samples for training, 2 samples for validation; 2 classes." in sentences(found, "data")
    assert "A step takes 4 of 8 samples, an epoch 2 steps." in sentences(found, "batch")
    assert "A test batch measures it." in sentences(found, "time")
    speed = next(each["records_per_s"] for each in found["findings"] if "records_per_s" in each)
    assert speed > 0


@pytest.mark.nightly
def test_a_source_is_looked_at(ask, studio, tmp_path):
    source = studio.root / "uploads" / "pets"
    for number in range(6):
        path = source / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((9, 9, 3), 40 * number, np.uint8))

    found = ask("POST", "/api/v1/datasets/preview", json={"spec": {"source": str(source)}, "samples": 2})
    assert found.status_code == 200, found.text
    assert found.json()["counts"]["total"] == 6
    assert len(found.json()["samples"]) == 2
    assert [(each["objects"], each["more_objects"], each["mask_png"]) for each in found.json()["samples"]] == [
        (None, 0, None),
        (None, 0, None),
    ]
    assert (found.json()["colours"], found.json()["ignore_class"]) == ([], None)
    wrong = {"source": str(source), "format": "class_folders", "options": {"nothing": 1}}
    answer = ask("POST", "/api/v1/datasets/preview", json={"spec": wrong})
    assert (answer.status_code, answer.json()["details"]["field"]) == (422, "options.nothing")
    assert ask("POST", "/api/v1/datasets/preview", json={"spec": {"source": "/etc"}}).status_code == 400
    with pytest.raises(SpecError) as option:
        studio.datasets.preview(wrong)
    assert option.value.details["field"] == "options.nothing"
    with pytest.raises(SpecError, match="must be at least"):
        studio.datasets.preview({"source": str(source), "splits": {"val_share": -1}})
    with pytest.raises(DataError, match="does not exist"):
        studio.datasets.preview({"source": str(tmp_path / "nothing")})
