"""REST of what a training recorded: machine load, sample predictions, last batches, timeline, early stopping."""

import json
from pathlib import Path

import pytest

from ziggurat.entities.json_lines import replace_lines
from ziggurat.layout import JobFolder

_WHAT = "A test"


@pytest.fixture
def recorded(train):
    """Return a training that waits, in whose folder records lie."""
    job = train(spec={"early_stopping": {"tag": "validation_accuracy", "patience": 5}})
    folder = JobFolder(Path(job["folder"]))
    folder.path.mkdir(parents=True, exist_ok=True)
    load = [{"time": 1.0, "machine": {"cores": 2}}, {"time": 2.0, "attempt": 1.0, "step": 3, "images_per_s": 7.5}]
    replace_lines(folder.machine_load, load, _WHAT)
    sample = {"split": "val", "row": 4, "key": "a.png", "label": 1}
    head = {"version": 1, "kind": "classification", "class_names": ["cat", "dog"], "samples": [sample]}
    record = {"step": 9, "epoch": 1.0, "time": 2.0, "predictions": [{"class": 1, "score": 0.75}]}
    replace_lines(folder.sample_predictions, [head, record], _WHAT)
    folder.sample_image(0).parent.mkdir()
    folder.sample_image(0).write_bytes(b"\x89PNG")
    return job["id"]


def test_machine_load_has_units_and_columns(ask, recorded):
    answer = ask("GET", f"/api/v1/jobs/{recorded}/machine-load").json()
    assert answer["machine"]["cores"] == 2
    assert answer["times"] == [2.0]
    assert answer["steps"] == [3]
    (curve,) = answer["curves"]
    assert (curve["name"], curve["unit"], curve["values"]) == ("images_per_s", "samples/s", [7.5])


def test_sample_predictions_have_samples_and_records(ask, recorded):
    answer = ask("GET", f"/api/v1/jobs/{recorded}/sample-predictions").json()
    assert answer["kind"] == "classification"
    assert answer["samples"] == [{"number": 0, "split": "val", "row": 4, "key": "a.png", "label": 1, "content": None}]
    assert answer["records"][0]["predictions"] == [{"class": 1, "score": 0.75}]
    assert ask("GET", f"/api/v1/jobs/{recorded}/sample-predictions/0/image").content == b"\x89PNG"
    assert ask("GET", f"/api/v1/jobs/{recorded}/sample-predictions/1/image").status_code == 404
    assert ask("GET", f"/api/v1/jobs/{recorded}/sample-predictions/9/image").status_code == 422


def test_last_batches_have_steps_and_rows(ask, train):
    job = train()
    folder = JobFolder(Path(job["folder"])).black_box
    folder.mkdir(parents=True)
    image = {"shape": [2, 8, 8, 1], "dtype": "float32", "finite": False, "least": 0.0, "largest": 1.0}
    step = {"file": "x", "step": 4, "epoch": 1, "keys": [], "values": {"cost": "NaN"}, "arrays": {"batch/0": image}}
    batch = {"split": "train", "rows": [3, 1], "inputs": "image-classification", "classes": 10}
    content = {"step": 4, "tag": "cost", "steps": [step], "batch": batch}
    (folder / "black_box.json").write_text(json.dumps(content))

    found = ask("GET", f"/api/v1/jobs/{job['id']}/last-batches").json()

    assert found == {
        "steps": [{"step": 4, "epoch": 1, "values": {"cost": "NaN"}, "arrays": {"batch/0": image}}],
        **batch,
    }


def test_an_old_job_has_empty_records(ask, train):
    job = train()["id"]
    assert ask("GET", f"/api/v1/jobs/{job}/machine-load").json()["curves"] == []
    assert ask("GET", f"/api/v1/jobs/{job}/sample-predictions").json()["records"] == []
    assert ask("GET", f"/api/v1/jobs/{job}/last-batches").json()["steps"] == []
    assert ask("GET", f"/api/v1/jobs/{job}/timeline").json() == []
    assert ask("GET", f"/api/v1/jobs/{job}/early-stopping").json() is None


def test_early_stopping_stands_at_zero_before_the_start(ask, recorded):
    state = ask("GET", f"/api/v1/jobs/{recorded}/early-stopping").json()
    assert (state["tag"], state["waited"], state["patience"]) == ("validation_accuracy", 0, 5)


@pytest.mark.parametrize("part", ["machine-load", "sample-predictions", "last-batches", "timeline", "early-stopping"])
def test_a_job_that_is_not_there_is_not_found(ask, part):
    assert ask("GET", f"/api/v1/jobs/20200101-000000-abcd/{part}").status_code == 404
