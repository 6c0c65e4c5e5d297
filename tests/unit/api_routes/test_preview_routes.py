"""Routes and methods of what is shown before a job is made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ziggurat.errors import SpecError
from ziggurat.specs import parse_spec
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.findings import DataFacts, class_findings, disk_finding, memory_finding
from ziggurat.workspace.training_estimates import SLOTS, earlier_jobs, facts_of, network_size

_SPEC = {"kind": "train", "version": 1, "network": "mlp", "data": "digits", "batch_size": 4, "epochs": 3}


def parse(**fields):
    return parse_spec({**_SPEC, **fields})


def levels(found):
    return [(each["name"], each["level"]) for each in found["findings"]]


def sentences(found, name):
    return " ".join(each["sentence"] for each in found["findings"] if each["name"] == name)


def test_the_rate_of_a_draft(ask):
    body = {"spec": {"schedule": "linear", "epochs": 2}, "points": 3}

    answer = ask("POST", "/api/v1/trainings/rate-curve", json=body)

    assert answer.status_code == 200
    assert answer.json()["epochs"] == [0, 1, 2]
    wrong = ask("POST", "/api/v1/trainings/rate-curve", json={"spec": {"schedule": {"policy": "stepp"}}})
    assert (wrong.status_code, wrong.json()["details"]["field"]) == (422, "schedule.policy")


def test_a_quick_look_asks_no_process(ask, pets):
    spec = {name: value for name, value in _SPEC.items() if name != "data"}
    body = {"spec": {**spec, "batch_size": 16}, "dataset": pets, "describe": False}

    found = ask("POST", "/api/v1/trainings/preflight", json=body).json()

    assert ("batch", "error") in levels(found)
    assert sentences(found, "batch").startswith("A batch must not be larger than the training split (")
    assert (found["steps"], found["parameters"]) == (None, None)


def test_what_cannot_work_is_found(studio, pets):
    weights = studio.training.preflight(
        JobRequest(spec={**_SPEC, "class_weights": [1, 2, 3]}, dataset=pets), describe=False
    )
    devices = studio.training.preflight(JobRequest(spec={**_SPEC, "devices": ["gpu:77"]}), describe=False)
    missing = studio.training.preflight(JobRequest(spec={**_SPEC, "data": "/nothing/there"}))

    assert "There must be a class weight for each of the 2 classes (received: 3)." in sentences(weights, "classes")
    assert ("device", "error") in levels(devices)
    assert "`gpu:77`" in sentences(devices, "device")
    assert ("data", "error") in levels(missing)
    with pytest.raises(SpecError) as wrong:
        studio.training.preflight(JobRequest(spec={**_SPEC, "epochs": 0}))
    assert wrong.value.details["field"] == "epochs"


def test_quarter_turns_of_pictures_that_are_no_squares_are_found(studio, pets):
    turned = {**_SPEC, "augmentation": {"quad_rotation": "rot90"}}
    found = studio.training.preflight(JobRequest(spec=turned, dataset=pets))

    assert ("data", "error") in levels(found)
    assert sentences(found, "data").count("need square images") == 1


def test_a_sweep_counts_all_its_jobs(studio, pets):
    request = JobRequest(spec=_SPEC, dataset=pets, sweep={"learning_rate": [0.1, 0.2], "batch_size": [2, 4]})

    found = studio.training.preflight(request, describe=False)

    assert found["steps_per_epoch"] == 4
    assert next(each["checkpoints"] for each in found["findings"] if each["name"] == "disk") == 4 * 3
    words = studio.training.as_text(request)
    assert [line.split("--batch-size ")[1].split()[0] for line in words["cli"].splitlines()] == ["2", "4", "2", "4"]
    assert "'batch_size': 4" not in words["python"]
    assert "sweep={'learning_rate': [0.1, 0.2], 'batch_size': [2, 4]}" in words["python"]


def test_memory_and_disk_follow_from_the_network(studio):
    spec = parse(optimizer="adam", batch_size=10, epochs=20, checkpoints={"keep_last": 3})
    described = {
        "parameters": 1000,
        "variables": [{"count": 1000}, {"count": 50}],
        "operations": [{"shape": [None, 8, 8, 4]}, {"shape": [None, 10]}, {"shape": [3, 3]}, {"shape": None}],
    }

    size = network_size(facts_of(described), spec)

    assert (size.weights_bytes, size.slots_bytes, size.gradients_bytes) == (4200, 8000, 4000)
    assert size.layers_bytes == 4 * 10 * (256 + 10)
    averaged = parse(optimizer="adam", ema_decay=0.999)
    assert network_size(facts_of(described), averaged).slots_bytes == 12000
    machine = {"memory": {"free_bytes": 30_000, "total_bytes": 33_000}, "devices": []}
    assert size.training_bytes == 4200 + 8000 + 4000 + 1.5 * size.layers_bytes, "with the gradients of the layers"
    assert memory_finding(spec, size, machine)["level"] == "warning"
    machine["memory"]["total_bytes"] = 30_000
    assert memory_finding(spec, size, machine)["level"] == "error"
    disk = {"free_bytes": 10**6, "reserve_bytes": 0}
    fits = disk_finding(spec, size.checkpoint_bytes, 100, 2, disk)
    assert (fits["level"], fits["checkpoints"], fits["needed_bytes"]) == ("ok", 8, 8 * 12200)
    assert disk_finding(spec, size.checkpoint_bytes, 100, 2, {**disk, "free_bytes": 50_000})["level"] == "error"
    assert disk_finding(spec, size.checkpoint_bytes, 100, 2, {**disk, "reserve_bytes": 990_000})["level"] == "warning"
    assert disk_finding(spec, None, 100, 2, {"free_bytes": 1, "reserve_bytes": 2})["level"] == "error"


@pytest.mark.parametrize(("outputs", "level"), [(7, "error"), (12, "warning"), (10, None), (None, None)])
def test_a_network_that_gives_other_classes_is_found(outputs, level):
    found = class_findings(parse(), DataFacts(classes=10), outputs)

    assert [each["level"] for each in found] == ([] if level is None else [level])


def test_every_optimizer_has_its_slots():
    for name, slots in SLOTS.items():
        assert parse(optimizer=name).optimizer.name == name
        assert 0 <= slots <= 2
    with pytest.raises(SpecError) as unknown:
        parse(optimizer="none of them")
    assert all(f"`{name}`" in str(unknown.value) for name in SLOTS)
    assert str(unknown.value).split("must be one of")[1].split(". ")[0].count("`") == 2 * len(SLOTS)


def test_time_comes_from_trainings_like_it(studio, pets, train):
    job = studio.jobs.get(train(dataset=pets, spec={"batch_size": 4})["id"])
    done = {"state": "done", "attempt": 1, "started": 100.0, "ended": 110.0, "global_step": 50, "total_steps": 50}
    like = replace(job, **done, max_epoch=25, data_wait_share=0.5)
    other = replace(like, network="another")
    spec = parse(data=str(studio.datasets.folder(pets)), backend="null")

    found = earlier_jobs([other, like], spec, "mlp", 8)

    assert (found.count, found.samples_per_s, found.data_wait_share) == (1, 20.0, 0.5)
    assert earlier_jobs([other], spec, "mlp", 8) is None
    elsewhere = parse(data="/elsewhere", backend="null")
    assert earlier_jobs([like], elsewhere, "mlp", 10) is not None
    assert earlier_jobs([like], elsewhere, "mlp", 800) is None


def test_the_same_job_in_other_words(ask, studio, pets):
    answer = ask("POST", "/api/v1/trainings/text", json={"spec": _SPEC, "dataset": pets, "project": "p"}).json()

    folder = studio.datasets.folder(pets)
    assert answer["cli"] == f"ziggurat train --network mlp --data {folder} --batch-size 4 --epochs 3"
    assert f'"source": "{folder}"' in answer["json"]
    assert f"dataset='{pets}'" in answer["python"]
    assert "project='p'" in answer["python"]
    assert "Client('http://127.0.0.1:5000')" in answer["python"]


def test_who_may_look(ask_as, pets):
    viewer, reader = ask_as("viewer", "read"), ask_as("trainer", "read")
    draft = {"spec": {}}

    assert viewer("POST", "/api/v1/trainings/rate-curve", json=draft).status_code == 200
    for asking in (viewer, reader):
        for path, body in (
            ("trainings/augmented", {"dataset": pets, "spec": {}}),
            ("trainings/preflight", {"spec": _SPEC}),
            ("trainings/text", {"spec": _SPEC}),
            ("datasets/preview", {"spec": {"source": "/etc"}}),
        ):
            assert asking("POST", f"/api/v1/{path}", json=body).status_code == 403, path


def test_facts_of_data_are_those_that_a_task_measures():
    measured = {
        "sizes": {"train": 3},
        "classes": 2,
        "input_shape": [8, 8, 1],
        "in_memory": True,
        "records_per_s": 5.0,
        "threads": 2,
    }
    assert DataFacts.of(measured).input_shape == (8, 8, 1)


def test_a_request_with_former_names_is_read(studio, ask):
    body = {"spec": {**_SPEC, "backend": "tensorflow", "network": "lenet", "average_weights": 0.9}}
    made = ask("POST", "/api/v1/trainings", json={**body, "sweep": {"accumulate": [1, 2]}}).json()

    specs = [studio.jobs.get(job["id"]).spec for job in made["jobs"]]
    assert {(spec["ema_decay"], spec["gradient_accumulation_steps"]) for spec in specs} == {(0.9, 1), (0.9, 2)}
    both = {"spec": {**body["spec"], "ema_decay": 0.9}}
    wrong = ask("POST", "/api/v1/trainings", json=both)
    assert (wrong.status_code, wrong.json()["details"]["field"]) == (422, "ema_decay")
