"""Retraining asked for over REST while nothing runs: what is made, once, and what is refused before anything is."""

from __future__ import annotations

import threading

import pytest

from tests.unit.studio_samples import add_objects
from ziggurat.entities import NewJob
from ziggurat.specs import TrainSpec
from ziggurat.workspace.new_jobs import JobRequest

SPEC = {"kind": "train", "version": 1, "backend": "null", "network": "mlp", "epochs": 2, "batch_size": 4}


@pytest.fixture
def done(studio):
    """Return what takes in a job that is done."""
    made = []

    def take_in(kind, name, spec, **fields):
        job_id = f"20260102-000000-{len(made):04d}"
        made.append(job_id)
        folder = studio.root / "jobs" / job_id
        folder.mkdir(parents=True)
        new = NewJob(id=job_id, kind=kind, name=name, folder=str(folder), created=float(len(made)), spec=spec, **fields)
        return studio.datasets.take_in(new, {}).id

    return take_in


@pytest.fixture
def former(studio, pets, done):
    """Return the ids of a training on the pets that is done, and of its evaluation."""
    data = {"source": str(studio.datasets.folder(pets))}
    spec = TrainSpec.model_validate({**SPEC, "name": "first", "data": data}).model_dump(mode="json")
    model = done("train", "first", spec, depends_on=(pets,))
    evaluation = done(
        "evaluate", "first on val", {"split": "val", "checkpoint": "best"}, parent=model, depends_on=(model,)
    )
    return model, evaluation


@pytest.fixture
def version(studio, pets):
    return studio.datasets.relabel(pets, ["val/0"], "dog", name="pets 2").id


def trainings(studio):
    return studio.jobs.counts()["queued"]


def test_a_version_is_trained_on_and_evaluated_behind(ask, studio, former, version):
    answer = ask("POST", f"/api/v1/models/{former[0]}/retrain", json={"dataset": version})

    assert answer.status_code == 201
    found = answer.json()
    model, evaluation = found["model"], found["evaluation"]
    assert model["spec"]["data"]["source"] == str(studio.datasets.folder(version))
    assert (model["name"], model["parent"], model["depends_on"]) == ("first, pets 2", former[0], [version])
    assert (evaluation["depends_on"], evaluation["spec"]["checkpoint"]) == ([model["id"]], "best")
    assert found["former_evaluation"]["id"] == former[1]
    assert "training.create" in [each.action for each in studio.people.audit().entries]


def test_two_users_at_once_make_one_training(studio, former, version):
    found, start = [], threading.Barrier(4)

    def ask_for_it():
        start.wait()
        found.append(studio.retrainings.start(version, model_id=former[0]))

    threads = [threading.Thread(target=ask_for_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({each.model.id for each in found}) == len({each.evaluation.id for each in found}) == 1
    assert sorted(each.is_new for each in found) == [False, False, False, True]
    assert trainings(studio) == 2


def test_another_spec_is_another_training(studio, former, version):
    request = JobRequest(spec={**SPEC, "epochs": 3}, dataset=version)
    (other,) = studio.training.create(request)

    found = studio.retrainings.start(version, model_id=former[0])

    assert found.is_new
    assert found.model.id != other.id
    studio.jobs.stop(found.model.id)
    assert studio.retrainings.start(version, model_id=former[0]).model.id != found.model.id


def test_the_nearest_version_with_a_training_counts(studio, former, version, pets):
    newer = studio.datasets.relabel(version, ["val/0"], "cat", name="pets 3").id

    assert studio.retrainings.former(pets) is None
    assert [studio.retrainings.former(each).id for each in (version, newer)] == [former[0]] * 2
    assert studio.retrainings.start(newer).former.id == former[0]


def test_what_cannot_be_repeated_makes_no_job(ask, studio, former, version, pets, tmp_path):
    path = f"/api/v1/models/{former[0]}/retrain"
    boxes = add_objects(studio, tmp_path / "boxes")
    cases = [
        (path, {"dataset": pets}, 409, "on another dataset than its own"),
        (path, {"dataset": "nobody"}, 404, "There is no job `nobody`"),
        (path, {"dataset": version, "split": "test"}, 422, "split of this data"),
        (path, {"dataset": version, "evaluation": former[0]}, 409, "of kind evaluate"),
        (f"/api/v1/models/{pets}/retrain", {"dataset": version}, 409, "of kind train"),
        (path, {"dataset": boxes, "split": "train"}, 422, "detection"),
    ]
    for place, body, status, words in cases:
        answer = ask("POST", place, json=body)
        assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert trainings(studio) == 0


def test_viewers_may_not_retrain(ask_as, former, version):
    answer = ask_as("viewer", "read")("POST", f"/api/v1/models/{former[0]}/retrain", json={"dataset": version})

    assert answer.status_code == 403
