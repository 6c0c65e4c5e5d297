"""Routes of trainings, networks, models and the studio itself."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tests.unit.studio_samples import add_arrays
from ziggurat.store import Store

_NETWORK = {"source": "file", "path": "mine.py", "text": "class UserModel: ..."}
_SPEC = {"kind": "train", "version": 1, "network": "mlp", "data": "digits"}


def test_digits_63_a_sweep_makes_a_job_of_each_combination(ask):
    body = {"spec": {**_SPEC, "name": "s"}, "sweep": {"learning_rate": [0.01, 0.02], "batch_size": [8, 10]}}

    jobs = ask("POST", "/api/v1/trainings", json=body).json()["jobs"]

    assert [each["name"] for each in jobs] == [
        "s learning_rate=0.01 batch_size=8",
        "s learning_rate=0.01 batch_size=10",
        "s learning_rate=0.02 batch_size=8",
        "s learning_rate=0.02 batch_size=10",
    ]
    assert ask("GET", f"/api/v1/jobs?group={jobs[0]['group']}").json()["total"] == 4


@pytest.mark.parametrize(
    ("spec", "path", "values"),
    [
        ({}, "optimizer.momentum", [0.8, 0.95]),
        ({"optimizer": "adam"}, "optimizer.beta_1", [0.8, 0.85]),
        ({}, "schedule.gamma", [0.2, 0.5]),
        ({}, "augmentation.scale", [0.0, 0.1]),
        ({}, "checkpoints.keep_last", [1, 2]),
        ({"checkpoints": {"keep_best": "validation_error"}}, "checkpoints.keep_last", [3, 4]),
    ],
)
def test_a_sweep_over_a_part_fills_in_the_rest_of_its_field(studio, ask, spec, path, values):
    answer = ask("POST", "/api/v1/trainings", json={"spec": {**_SPEC, **spec}, "sweep": {path: values}})

    assert answer.status_code == 201, answer.text
    whole, part = path.split(".")
    specs = [studio.jobs.get(each["id"]).spec for each in answer.json()["jobs"]]
    assert [each[whole][part] for each in specs] == values
    kinds = {"optimizer": ("name", spec.get("optimizer", "momentum")), "schedule": ("policy", "step")}
    if whole in kinds:
        tag, kind = kinds[whole]
        assert [each[whole][tag] for each in specs] == [kind, kind]


def test_a_sweep_over_optimizers_and_their_parts_has_no_order(studio, ask):
    sweep = {"optimizer.epsilon": [1e-8], "optimizer.name": ["adam", "rmsprop"]}

    jobs = ask("POST", "/api/v1/trainings", json={"spec": _SPEC, "sweep": sweep}).json()["jobs"]

    assert [studio.jobs.get(each["id"]).spec["optimizer"]["name"] for each in jobs] == ["adam", "rmsprop"]


def test_a_sweep_over_a_part_that_a_field_does_not_have_names_it(ask):
    body = {"spec": _SPEC, "sweep": {"optimizer.momentun": [0.8]}}

    answer = ask("POST", "/api/v1/trainings", json=body).json()

    assert answer["rule"] == "`optimizer.momentun` is not a field of this spec."
    assert answer["advice"] == "Did you mean `momentum`?"


def test_digits_17_no_job_is_left_where_its_data_set_is_gone(ask):
    answer = ask("POST", "/api/v1/trainings", json={"spec": _SPEC, "dataset": "20200101-000000-abcd"})

    assert answer.status_code == 404
    assert ask("GET", "/api/v1/jobs").json()["total"] == 0


def test_digits_16_18_19_a_training_needs_its_data_set(ask, pets, train):
    job = train(dataset=pets)
    assert job["depends_on"] == [pets]

    refused = ask("DELETE", f"/api/v1/jobs/{pets}")
    assert refused.status_code == 409
    assert job["id"] in refused.json()["message"] or job["name"] in refused.json()["message"]

    ask("DELETE", f"/api/v1/jobs/{job['id']}")
    assert ask("DELETE", f"/api/v1/jobs/{pets}").status_code == 204


@pytest.mark.parametrize("data", [lambda pets: pets, lambda pets: {"source": pets}])
def test_the_id_of_a_data_set_is_no_folder(ask, pets, data):
    answer = ask("POST", "/api/v1/trainings", json={"spec": {**_SPEC, "data": data(pets)}})

    assert answer.status_code == 409
    refused = answer.json()
    assert refused["rule"] == "`data` is a folder or `digits`; a dataset of the studio is named apart from it."
    assert refused["received"] == f"the id {pets} as `data`"
    assert f"`--dataset {pets}` in the shell" in refused["advice"]


def test_a_wrong_field_is_named(ask):
    answer = ask("POST", "/api/v1/trainings", json={"spec": {**_SPEC, "batch_size": 0}})

    assert answer.status_code == 422
    assert "batch_size" in answer.json()["message"]


def test_a_network_file_is_sent_with_its_text(ask):
    for network in ("/etc/passwd", "other.py", {"source": "file", "path": "/etc/passwd"}):
        answer = ask("POST", "/api/v1/trainings", json={"spec": {**_SPEC, "network": network}})
        assert (answer.status_code, "is sent without its text" in answer.json()["rule"]) == (400, True)
    assert ask("POST", "/api/v1/trainings", json={"spec": {**_SPEC, "network": _NETWORK}}).status_code == 201


def test_networks_of_a_backend_are_listed_by_its_name(ask):
    found = ask("GET", "/api/v1/networks", params={"framework": "null"}).json()
    assert [each["name"] for each in found] == ["mlp", "linear", "table_mlp", "table_linear"]
    wrong = ask("GET", "/api/v1/networks", params={"framework": "nul"})
    assert wrong.status_code == 422
    assert "tensorflow, torch, null" in wrong.json()["details"]["fields"][0]["message"]


def test_digits_64_standard_networks_and_their_source(ask):
    names = [each["name"] for each in ask("GET", "/api/v1/networks").json()]

    assert "lenet" in names
    assert "class UserModel" in ask("GET", "/api/v1/networks/lenet").json()["text"]
    assert ask("GET", "/api/v1/networks/nothing").status_code == 422


@pytest.mark.tensorflow
def test_digits_61_64_a_networks_text_has_its_own_process(ask):
    text = ask("GET", "/api/v1/networks/lenet").json()["text"]

    good = ask("POST", "/api/v1/networks/describe", json={"text": text, "input_shape": [28, 28, 1]})
    bad = ask("POST", "/api/v1/networks/describe", json={"text": "nonsense"})

    assert good.json()["input_shape"] == [28, 28, 1]
    assert (bad.status_code, bad.json()["error"]) == (422, "network_code")
    assert "nonsense" in bad.text


def test_networks_are_not_named_by_path(ask):
    answer = ask("POST", "/api/v1/networks/describe", json={"network": "/etc/passwd.py"})

    assert answer.status_code == 400


def test_predicting_needs_a_training_and_pictures(ask, pets, train):
    job = train()
    picture = {"files": ("a.png", cv2.imencode(".png", np.zeros((8, 8), np.uint8))[1].tobytes())}

    assert ask("POST", "/api/v1/models/nobody/predict", files=picture).status_code == 404
    assert ask("POST", f"/api/v1/models/{pets}/predict", files=picture).status_code == 409
    assert ask("POST", f"/api/v1/models/{job['id']}/predict").json()["received"] == "none"
    outside = ask("POST", f"/api/v1/models/{job['id']}/predict", data={"paths": "/etc/passwd"})
    assert outside.status_code == 400


def test_projects_are_made_renamed_and_removed(ask, train):
    train(project="faces")

    assert ask("POST", "/api/v1/projects", json={"name": "cars/old"}).json()["jobs"] == 0
    assert ask("PATCH", "/api/v1/projects/faces", json={"name": "people"}).status_code == 204
    assert [(each["name"], each["jobs"]) for each in ask("GET", "/api/v1/projects").json()] == [
        ("cars/old", 0),
        ("people", 1),
    ]
    assert ask("DELETE", "/api/v1/projects/people").status_code == 400
    assert ask("DELETE", "/api/v1/projects/people?move_jobs_to=cars/old").status_code == 204
    assert ask("GET", "/api/v1/jobs?project=cars/old").json()["total"] == 1


def test_machine_settings_and_version(ask, train):
    train(spec={"name": "waits"})

    machine = ask("GET", "/api/v1/machine").json()
    assert [each["name"] for each in machine["queue"]] == ["waits"]
    assert "workspace" in [each["name"] for each in ask("GET", "/api/v1/settings").json()]
    assert set(ask("GET", "/api/v1/version").json()) == {"ziggurat", "python"}


def test_digits_2_paths_are_suggested_below_the_roots_only(ask, pets, studio):
    start = f"{studio.root}/datasets/{pets}/man"

    assert ask("GET", "/api/v1/paths", params={"query": start}).json()["suggestions"] == [f"{start}ifest.json"]
    assert ask("GET", "/api/v1/paths", params={"query": "/etc/pass"}).json()["suggestions"] == []
    assert f"{studio.root}/datasets/" in ask("GET", "/api/v1/paths").json()["suggestions"]


def test_an_admin_chooses_which_folders_are_offered(ask, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".hidden").mkdir()
    (tmp_path / "link").symlink_to("/etc")

    assert ask("PUT", "/api/v1/roots", json={"roots": ["data"]}).status_code == 400
    assert ask("PUT", "/api/v1/roots", json={"roots": [str(tmp_path)]}).json() == {"roots": [str(tmp_path)]}

    found = ask("GET", "/api/v1/paths", params={"query": f"{tmp_path}/"}).json()["suggestions"]
    assert f"{tmp_path}/data/" in found
    listed = ask("GET", "/api/v1/folders", params={"path": str(tmp_path)}).json()["entries"]
    assert {"name": "data", "path": f"{tmp_path}/data", "is_folder": True} in listed
    assert "link" not in [each["name"] for each in listed]
    for path in ("data/.hidden", "link/passwd", "data/../../..", "not"):
        answer = ask("POST", "/api/v1/dataset-guesses", json={"source": f"{tmp_path}/{path}"})
        assert answer.status_code == 400, path


def test_an_admin_allows_one_more_folder(ask, tmp_path):
    ask("PUT", "/api/v1/roots", json={"roots": []})
    refused = ask("POST", "/api/v1/dataset-guesses", json={"source": str(tmp_path)}).json()
    assert refused["details"]["command"] == f"ziggurat settings allow {tmp_path}"
    assert refused["details"]["command"] in refused["advice"]

    answer = ask("POST", "/api/v1/roots", json={"path": str(tmp_path)})

    assert (answer.status_code, answer.json()) == (201, {"roots": [str(tmp_path)]})
    assert ask("POST", "/api/v1/roots", json={"path": f"{tmp_path}/nothing"}).status_code == 400


def test_the_openapi_document_names_every_answer(app, ask):
    document = ask("GET", "/api/v1/openapi.json").json()

    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), f"{method} {path}"


@pytest.mark.parametrize("turns", ["rot90", "rotall"])
def test_quarter_turns_of_no_squares_are_refused(ask, pets, turns):
    turned = {**_SPEC, "batch_size": 4, "augmentation": {"quad_rotation": turns}}
    answer = ask("POST", "/api/v1/trainings", json={"spec": turned, "dataset": pets})

    assert answer.status_code == 422
    assert answer.json()["rule"] == "Quarter turns by `rot90` or `rotall` need square images."
    assert answer.json()["received"] == "20 x 30 px"
    assert answer.json()["details"]["field"] == "augmentation.quad_rotation"
    swept = {"augmentation.quad_rotation": ["none", turns]}
    assert ask("POST", "/api/v1/trainings", json={"spec": _SPEC, "dataset": pets, "sweep": swept}).status_code == 422
    cropped = {**turned, "preprocessing": {"size": [16, 24], "crop": 12}}
    assert ask("POST", "/api/v1/trainings", json={"spec": cropped}).json()["received"] == "16 x 24 px"
    assert ask("GET", "/api/v1/jobs?kind=train").json()["total"] == 0


def test_quarter_turns_of_squares_and_all_half_turns_are_taken(ask, pets, train):
    train(dataset=pets, spec={"augmentation": {"quad_rotation": "rot90"}, "preprocessing": {"size": [16, 16]}})
    train(dataset=pets, spec={"augmentation": {"quad_rotation": "rot180"}})
    train(spec={"augmentation": {"quad_rotation": "rotall"}})

    assert ask("GET", "/api/v1/jobs?kind=train").json()["total"] == 3


def test_a_set_that_is_not_trained_makes_no_job(ask, studio, tmp_path):
    arrays = add_arrays(studio, tmp_path / "arrays")
    body = {"spec": {**_SPEC, "batch_size": 1}, "dataset": arrays}

    answer = ask("POST", "/api/v1/trainings", json=body)

    assert answer.status_code == 422
    assert answer.json()["rule"] == "Training for generic arrays is not available yet."
    assert answer.json()["details"]["field"] == "data.source"
    swept = {**body, "sweep": {"learning_rate": [0.1, 0.2]}}
    assert ask("POST", "/api/v1/trainings", json=swept).status_code == 422
    assert ask("GET", "/api/v1/jobs?kind=train").json()["total"] == 0
    assert not [*(studio.root / "jobs").glob("*")]


def test_a_sweep_with_one_wrong_network_makes_no_job(ask):
    body = {"spec": {**_SPEC, "network": "mlp"}, "sweep": {"network": ["mlp", "lenet", "unet"]}}

    answer = ask("POST", "/api/v1/trainings", json=body)

    assert answer.status_code == 422
    assert "Segmentation needs images with masks" in answer.json()["message"]
    assert ask("GET", "/api/v1/jobs?kind=train").json()["total"] == 0


def test_the_backend_of_a_training_follows_its_network(ask):
    body = {"spec": _SPEC, "sweep": {"network": ["mlp", "lenet"]}}

    jobs = ask("POST", "/api/v1/trainings", json=body).json()["jobs"]

    assert [(job["network"], job["framework"]) for job in jobs] == [("mlp", "null"), ("lenet", "tensorflow")]
    assert [job["spec"]["backend"] for job in jobs] == ["null", "tensorflow"]


def test_a_clone_without_its_data_makes_no_job(ask, studio, train):
    folder = studio.root / "uploads" / "pets"
    picture = folder / "cat" / "one.png"
    picture.parent.mkdir(parents=True)
    picture.touch()
    job = train(spec={"data": str(folder), "batch_size": 1})
    picture.unlink()

    again = ask("GET", f"/api/v1/jobs/{job['id']}/request").json()
    answer = ask("POST", "/api/v1/trainings", json={name: again[name] for name in ("spec", "parent")})

    assert answer.status_code == 422
    assert "has no folder for each class with images in it" in answer.json()["rule"]


def test_data_that_failed_is_not_waited_for(ask, studio):
    source = studio.root / "uploads" / "pets"
    (source / "cat").mkdir(parents=True)
    made = ask(
        "POST",
        "/api/v1/datasets",
        json={"spec": {"kind": "dataset", "version": 1, "source": str(source), "format": "class_folders"}},
    )
    assert made.status_code == 201, made.text
    dataset = made.json()["id"]
    body = {"spec": _SPEC, "dataset": dataset}
    assert ask("POST", "/api/v1/trainings", json=body).status_code == 201, "it waits for the dataset"
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(dataset, ("queued",), "failed", reason="no images", ended=10.0)

    answer = ask("POST", "/api/v1/trainings", json=body)

    assert answer.status_code == 422
    assert "is not complete, so it cannot be trained on" in answer.json()["rule"]
