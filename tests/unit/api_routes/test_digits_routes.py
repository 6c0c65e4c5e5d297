"""DIGITS's routes in DIGITS's shapes; the numbers are those of its checkable behaviors."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from ziggurat.compat.digits import inference


@pytest.fixture
def pictures(studio):
    """Return a folder, which may be named, with ten images of three classes; one class has a single image."""
    root = studio.root / "uploads" / "pictures"
    for number, name in enumerate(["cat"] * 5 + ["dog"] * 4 + ["old_owl"]):
        path = root / name / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((9, 9, 3), 20 * number, np.uint8))
    return root


@pytest.fixture
def model(ask, pets):
    """Return what makes a model of DIGITS's fields."""

    def make(**fields):
        usual = {"model_name": "m", "dataset": pets, "standard_networks": "mlp", "framework": "null", "batch_size": "4"}
        return ask("POST", "/models/images/classification.json", data={**usual, **fields})

    return make


def test_3_the_index_lists_every_data_set_and_model(ask, pets, model):
    job = model(model_name="lenet").json()

    index = ask("GET", "/index.json").json()

    assert index["datasets"] == [{"id": pets, "name": "pets", "status": "Done"}]
    assert index["models"] == [{"id": job["id"], "name": "lenet", "status": "Initialized", "dataset_id": pets}]
    assert {"version", "jobs_dir", "server_name"} <= set(index)


def test_4_what_is_not_there_is_404(ask, pets):
    for path in ("/datasets/nobody.json", "/models/nobody.json", f"/models/{pets}.json", "/jobs/nobody/status"):
        assert ask("GET", path).status_code == 404, path


def test_2_paths_are_suggested(ask, pictures):
    found = ask("GET", "/autocomplete/path", params={"query": f"{pictures}/ca"}).json()

    assert found == {"suggestions": [f"{pictures}/cat/"]}


def test_a_data_set_is_described_with_width_and_height_right(ask, pets):
    found = ask("GET", f"/datasets/{pets}.json").json()

    (parse,) = found["ParseFolderTasks"]
    assert (parse["label_count"], parse["train_count"], parse["val_count"], parse["test_count"]) == (2, 8, 2, 0)
    assert [each["entries"] for each in found["CreateDbTasks"]] == [8, 2]


def test_a_data_set_of_folders_is_made(ask, pictures, studio):
    form = {
        "dataset_name": "pets",
        "folder_train": str(pictures),
        "folder_pct_val": "20",
        "folder_pct_test": "10",
        "resize_width": "32",
        "resize_height": "16",
        "resize_channels": "1",
        "encoding": "jpg",
        "group_name": "zoo",
    }

    answer = ask("POST", "/datasets/images/classification.json", data=form)

    assert (answer.status_code, answer.json()["status"], answer.json()["name"]) == (200, "Initialized", "pets")
    job = studio.jobs.get(answer.json()["id"])
    assert job.project == "zoo"
    assert job.spec["size"] == [16, 32]
    assert (job.spec["channels"], job.spec["encoding"], job.spec["resize_mode"]) == (1, "jpeg", "squash")
    assert (job.spec["splits"]["val_share"], job.spec["splits"]["test_share"]) == (0.2, 0.1)
    assert job.spec["splits"]["min_per_class"] == 2


def test_28_30_wrong_fields_are_all_named_and_no_job_is_left(ask):
    form = {"folder_train": "/not/there", "folder_pct_val": "80", "folder_pct_test": "30", "resize_width": "x"}

    answer = ask("POST", "/datasets/images/classification.json", data=form)

    assert answer.status_code == 400
    errors = answer.json()["errors"]
    assert set(errors) == {"dataset_name", "folder_train", "folder_pct_test", "resize_width"}
    assert errors["dataset_name"] == ["This field is required."]
    assert ask("GET", "/index.json").json()["datasets"] == []


@pytest.mark.parametrize("rate", ["0,01", "0"])
def test_digits_form_refuses_a_rate_that_is_none(model, ask, rate):
    answer = model(learning_rate=rate)

    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["learning_rate"]
    assert ask("GET", "/index.json").json()["models"] == []


def test_34_a_data_set_of_lists_is_made_of_uploads(ask, pictures, studio):
    lines = "".join(f"{path} {number % 2}\n" for number, path in enumerate(sorted(pictures.rglob("*.png"))))
    files = {
        "textfile_train_images": ("train.txt", lines.encode()),
        "textfile_val_images": ("val.txt", lines.encode()),
        "textfile_labels_file": ("labels.txt", b"cat\ndog\n"),
    }

    answer = ask(
        "POST", "/datasets/images/classification.json", data={"dataset_name": "l", "method": "textfile"}, files=files
    )

    assert answer.status_code == 200, answer.text
    spec = studio.jobs.get(answer.json()["id"]).spec
    assert spec["format"] == "text_list"
    assert Path(spec["options"]["labels"]).read_text(encoding="utf-8") == "cat\ndog\n"


def test_52_a_model_has_the_solver_of_its_fields(ask, model, pets, studio):
    form = {
        "train_epochs": "7",
        "snapshot_interval": "0.5",
        "solver_type": "ADAM",
        "lr_policy": "multistep",
        "lr_multistep_values": "40,80",
        "use_mean": "pixel",
        "crop_size": "8",
        "aug_flip": "fliplr",
        "aug_hsv_use": "y",
        "random_seed": "5",
    }

    answer = model(**form)

    assert (answer.status_code, answer.json()["status"]) == (200, "Initialized")
    assert answer.json()["dataset_id"] == pets
    spec = studio.jobs.get(answer.json()["id"]).spec
    assert (spec["epochs"], spec["seed"], spec["batch_size"], spec["learning_rate"]) == (7, 5, 4, 0.01)
    assert (spec["checkpoints"]["every_epochs"], spec["optimizer"]["name"]) == (0.5, "adam")
    assert (spec["schedule"]["policy"], spec["schedule"]["at_percent"]) == ("multistep", [40.0, 80.0])
    assert (spec["preprocessing"]["mean"], spec["preprocessing"]["crop"]) == ("pixel", 8)
    assert (spec["augmentation"]["flip"], spec["augmentation"]["hue"]) == ("fliplr", 0.02)


def test_63_lists_of_values_make_a_job_of_each_combination(ask, model):
    jobs = model(learning_rate="[0.01, 0.02]", batch_size="8,2").json()["jobs"]

    assert len(jobs) == 4
    assert "learning_rate=0.02" in jobs[3]["name"]
    assert "batch_size=2" in jobs[3]["name"]


def test_17_a_model_on_a_deleted_data_set_fails_without_job(ask, model):
    answer = model(dataset="20200101-000000-abcd")

    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["dataset"]
    assert ask("GET", "/index.json").json()["models"] == []


def test_digits_model_that_cannot_train_leaves_no_job(ask, model):
    answer = model(standard_networks="lenett", framework="tensorflow", batch_size="")

    assert answer.status_code == 400
    errors = answer.json()["errors"]
    assert set(errors) == {"standard_networks", "batch_size"}
    assert "Did you mean `lenet`" in errors["standard_networks"][0]
    assert "received: 16 for 8 samples)." in errors["batch_size"][0]
    assert ask("GET", "/index.json").json()["models"] == []


def test_wrong_values_of_a_model_are_named(ask, model):
    answer = model(learning_rate="fast", batch_size="0", lr_policy="sudden", train_epochs="", model_name="")

    assert set(answer.json()["errors"]) == {"learning_rate", "batch_size", "lr_policy", "model_name"}


def test_a_custom_network_is_kept_as_it_was_sent(ask, model, studio):
    job = model(method="custom", custom_network="class UserModel: ...", framework="tensorflow").json()

    assert studio.jobs.get(job["id"]).spec["network"]["text"] == "class UserModel: ..."


def test_22_name_and_notes(ask, model):
    place = f"/jobs/{model().json()['id']}"

    assert ask("PUT", place, data={"job_name": "new"}).text == "Name updated."
    assert ask("PUT", place, data={"job_notes": "n"}).text == "Notes updated."
    found = ask("GET", f"{place}.json").json()
    assert (found["name"], found["notes"]) == ("new", "n")
    assert ask("PUT", place, data={}).status_code == 400


def test_18_19_20_a_data_set_in_use_is_not_deleted(ask, model, pets):
    job = model().json()["id"]

    assert ask("DELETE", f"/datasets/{pets}").status_code == 403
    assert ask("GET", f"/datasets/{pets}.json").status_code == 200
    assert ask("POST", f"/models/{job}/abort").status_code == 200
    assert ask("GET", f"/models/{job}/status").json()["status"] == "Aborted"
    assert ask("DELETE", f"/models/{job}").text == "Job deleted."
    assert ask("DELETE", f"/datasets/{pets}").text == "Job deleted."
    assert ask("GET", f"/datasets/{pets}.json").status_code == 404


def test_25_jobs_are_grouped_and_ungrouped(ask, model, studio):
    ids = [model().json()["id"], model().json()["id"]]

    ask("POST", "/group", data={"job_ids[]": ids, "group_name": "try"})
    assert [studio.jobs.get(each).project for each in ids] == ["try", "try"]
    ask("POST", "/group", data={"job_ids[]": ids[:1], "group_name": ""})
    assert [studio.jobs.get(each).project for each in ids] == ["", "try"]


def test_many_jobs_are_aborted_and_deleted(ask, model, pets):
    ids = [model().json()["id"], model().json()["id"]]

    assert ask("POST", "/abort_jobs", data={"job_ids[]": ids}).status_code == 200
    assert ask("POST", "/abort_jobs", data={"job_ids[]": ids}).status_code == 403
    assert len(ask("GET", "/completed_jobs.json").json()["models"]) == 2
    assert ask("DELETE", "/jobs", params={"job_ids[]": [pets, *ids]}).text == "Jobs deleted."
    assert ask("GET", "/index.json").json()["models"] == []


@pytest.mark.parametrize("extension", ["tar", "tar.gz", "tar.bz2", "zip"])
def test_92_downloads(ask, model, extension):
    answer = ask("GET", f"/models/{model().json()['id']}/download.{extension}")

    assert answer.status_code == 200
    if extension != "zip":
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as packed:
            assert "info.json" in packed.getnames()


def test_92_unknown_archives_and_epochs_are_refused(ask, model):
    job = model().json()["id"]

    assert ask("GET", f"/models/{job}/download.rar").status_code == 400
    assert ask("GET", f"/models/{job}/download.zip?epoch=7").status_code == 404


def test_inference_says_what_is_missing(ask, model):
    place, job = "/models/images/classification", model().json()["id"]

    assert ask("POST", f"{place}/classify_one.json", data={"job_id": "nobody"}).status_code == 404
    assert "image_file" in ask("POST", f"{place}/classify_one.json?job_id={job}").json()["rule"]
    assert "image_list" in ask("POST", f"{place}/classify_many.json", data={"job_id": job}).json()["rule"]
    wrong = ask("POST", f"{place}/classify_one.json", data={"job_id": job, "image_path": "/etc/passwd"})
    assert wrong.status_code == 400


def test_26_who_may_only_look_changes_nothing(ask_as, model, pets):
    job, viewer = model().json()["id"], ask_as("viewer", "read")

    assert viewer("GET", f"/models/{job}.json").status_code == 200
    assert viewer("PUT", f"/jobs/{job}", data={"job_name": "x"}).status_code == 403
    assert viewer("DELETE", f"/models/{job}").status_code == 403
    assert viewer("POST", "/group", data={}).status_code == 403
    assert viewer("GET", "/autocomplete/path").status_code == 403


def test_json_after_a_slash_is_json_after_a_dot(ask, pets, model):
    job = model().json()["id"]
    for path in ("/index", "/completed_jobs", f"/datasets/{pets}", f"/models/{job}", f"/jobs/{job}"):
        assert ask("GET", f"{path}/json").json() == ask("GET", f"{path}.json").json(), path
    for path in ("/datasets/images/classification", "/models/images/classification"):
        assert ask("POST", f"{path}/json", data={}).json() == ask("POST", f"{path}.json", data={}).json(), path
    for path in ("classification/classify_one", "classification/classify_many", "generic/infer_one"):
        sent = {"job_id": job}
        answers = [ask("POST", f"/models/images/{path}{end}", data=sent) for end in ("/json", ".json")]
        assert [each.status_code for each in answers] == [400, 400], path
        assert answers[0].json() == answers[1].json(), path


def test_a_dataset_of_stores_that_are_there_is_made(ask, studio):
    stores = studio.root / "uploads" / "stores"
    for name in ("train/images", "train/labels", "val/images"):
        (stores / name).mkdir(parents=True)
    form = {
        "dataset_name": "arrays",
        "prebuilt_train_images": f"{stores}/train/images",
        "prebuilt_train_labels": f"{stores}/train/labels",
        "prebuilt_val_images": f"{stores}/val/images",
        "force_same_shape": "0",
    }

    answer = ask("POST", "/datasets/images/generic.json", data=form)

    assert (answer.status_code, answer.json()["status"]) == (200, "Initialized")
    spec = studio.jobs.get(answer.json()["id"]).spec
    assert (spec["format"], spec["source"]) == ("digits_lmdb", str(stores))
    assert spec["options"] == {
        "train_images": "train/images",
        "train_labels": "train/labels",
        "val_images": "val/images",
        "force_same_shape": False,
    }


def test_fields_of_a_generic_dataset_are_checked(ask):
    sent = {"prebuilt_train_images": "/etc", "prebuilt_mean_file": "/mean.binaryproto", "method": "other"}
    answer = ask("POST", "/datasets/images/generic.json", data=sent)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {
        "dataset_name", "prebuilt_train_images", "prebuilt_mean_file", "method"
    }  # fmt: skip


def test_a_generic_model_has_the_fields_of_a_classifier(ask, pets, studio):
    sent = {"model_name": "m", "dataset": pets, "method": "custom", "framework": "tensorflow", "batch_size": "4"}
    code = "class UserModel(Tower):\n    @model_property\n    def inference(self):\n        return self.x\n"

    answer = ask("POST", "/models/images/generic/json", data={**sent, "custom_network": code})

    assert answer.status_code == 200, answer.text
    assert studio.jobs.get(answer.json()["id"]).spec["network"]["text"] == code.strip()


def test_a_mask_is_answered_by_the_shares_of_its_classes(ask, model, monkeypatch):
    row = {"size": [2, 2], "classes": [{"class": "dog", "number": 1, "share": 1.0, "color": "#ffffff"}]}
    monkeypatch.setattr(inference, "_one", lambda *_: row)
    monkeypatch.setattr(inference, "_class_count", lambda *_: 2)
    answer = ask("POST", "/models/images/generic/infer_one.json", data={"job_id": model().json()["id"]})
    assert answer.json() == {"outputs": {"share": [0.0, 1.0]}}
