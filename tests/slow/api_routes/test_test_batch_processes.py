"""Test batches in real processes: what is measured, that nothing is kept, cancellation, limits, and the pre-flight."""

from __future__ import annotations

import tempfile

import pytest

from tests.unit.canceling import run_and_cancel
from ziggurat.errors import JobError, NetworkCodeError, TrainingError
from ziggurat.layout import JOBS_FOLDER
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.batch_trials import CANCELED
from ziggurat.workspace.tasks import Tasks

_SPEC = {"kind": "train", "version": 1, "backend": "null", "network": "mlp", "data": "digits", "epochs": 2}


def by_name(found):
    return {each["name"]: each for each in found["findings"]}


@pytest.mark.nightly
def test_some_steps_are_measured_and_nothing_is_kept(studio, ask):
    answer = ask("POST", "/api/v1/trainings/test-batch", json={"spec": _SPEC})

    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["steps"] >= 20
    assert found["input_shape"] == [28, 28, 1]
    assert found["memory_bytes"] > found["start_bytes"] > 2**26
    assert found["total_s"] > found["start_s"] > 0
    assert found["steps_per_epoch"] == 1252 // 64
    assert found["largest_batch"] in {64 * 2**power for power in range(5)}
    assert 0 <= found["data_wait_share"] <= 1
    rate = found["rate"]
    assert rate["own"]["finite"]
    assert len(rate["rates"]) == len(rate["losses"]) > 30
    assert not list((studio.root / JOBS_FOLDER).glob("*"))
    assert studio.jobs.totals().kinds == {}

    checked = by_name(studio.training.preflight(JobRequest(spec={**_SPEC, "epochs": 7}), describe=False))
    assert checked["memory"]["needed_bytes"] == found["memory_bytes"]
    for name in ("memory", "time", "rate"):
        assert checked[name]["level"] == "ok", checked[name]
    # How long data is waited for depends on what else the machine does.
    assert checked["loading"]["level"] in ("ok", "warning"), checked["loading"]
    assert "measured" in checked["loading"]["value"]
    assert "measured" in checked["time"]["value"]
    card = next(each for each in studio.training.cards("digits", 64) if each.name == "null/mlp")
    assert card.memory_bytes == found["memory_bytes"]


@pytest.mark.nightly
def test_a_test_batch_without_rates_is_shorter(ask):
    found = ask("POST", "/api/v1/trainings/test-batch", json={"spec": _SPEC, "find_rate": False}).json()
    assert found["rate"] is None


def test_a_dataset_of_the_studio_is_tested(studio, pets):
    spec = {**_SPEC, "batch_size": 2, "data": {}}
    found = studio.training.test_batch(JobRequest(spec=spec, dataset=pets), find_rate=False)

    assert found["sizes"]["train"] == 8
    assert found["largest_batch"] <= 8


def test_a_running_test_batch_is_cancelled(studio):
    errors = []

    def run():
        try:
            studio.training.test_batch(JobRequest(spec=_SPEC), ticket="mine")
        except JobError as error:
            errors.append(error)

    run_and_cancel(run, lambda: studio.training.test_batches.cancel("mine"))
    assert errors[0].details["reason"] == CANCELED


def test_a_test_batch_ends_at_its_limit(studio):
    with pytest.raises(NetworkCodeError, match="time limit"):
        studio.training.test_batch(JobRequest(spec=_SPEC), time_limit_s=0.05)


def test_the_machine_keeps_its_memory(studio, monkeypatch):
    monkeypatch.setattr(studio.machine, "memory_bytes", 2**20)
    with pytest.raises(TrainingError, match="The training takes too much memory:"):
        studio.training.test_batch(JobRequest(spec=_SPEC))


def test_what_ends_a_watched_task_is_raised(studio):
    def refuse(_pid):
        raise JobError("It is watched.")

    with pytest.raises(JobError, match="It is watched"):
        Tasks(studio.settings).test_batch(_SPEC, watch=refuse)


def test_a_test_batch_that_is_killed_leaves_no_files(studio, tmp_path, monkeypatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", str(place))

    def end_amid_work(_pid):
        if any(place.glob("ziggurat-test-*/*")):
            raise JobError("It was ended.")

    with pytest.raises(JobError, match="It was ended"):
        Tasks(studio.settings).test_batch(_SPEC, watch=end_amid_work)
    assert list(place.iterdir()) == []


def test_what_cannot_be_trained_is_refused_at_once(studio, ask):
    answer = ask("POST", "/api/v1/trainings/test-batch", json={"spec": {**_SPEC, "network": "none"}})
    assert (answer.status_code, answer.json()["details"]["field"]) == (422, "network.name")
    assert ask("DELETE", "/api/v1/trainings/test-batch/nothing").status_code == 404


def test_the_recipe_and_the_cards_of_data(ask, pets):
    recipe = ask("GET", f"/api/v1/datasets/{pets}/recipe").json()
    assert recipe["fields"]["batch_size"] <= 8
    cards = ask("GET", f"/api/v1/datasets/{pets}/networks", params={"batch_size": 4}).json()
    assert cards[0]["name"] == recipe["network"]
    assert cards[0]["badge"] == "Recommended"
    assert ask("GET", "/api/v1/datasets/digits/recipe").json()["network"]
    assert ask("GET", "/api/v1/datasets/none/recipe").status_code == 404
    own = ask("GET", "/api/v1/datasets/digits/recipe", params={"network": "mlp"}).json()
    assert own["network"] == "null/mlp"
    file = ask("GET", "/api/v1/datasets/digits/recipe", params={"network": ""}).json()
    assert "learning_rate" not in file["fields"]
    assert ask("GET", "/api/v1/datasets/digits/recipe", params={"network": "lenett"}).status_code == 422
