"""Previews from a program; and the program that a training is written down as asks for the same training."""

from __future__ import annotations

import base64
import json

import pytest

from ziggurat.errors import UsageError
from ziggurat.specs import parse_spec

_SPEC = {
    "network": "mlp",
    "name": "taken 'away'",
    "batch_size": 4,
    "schedule": {"policy": "cosine", "warm_up_percent": 5},
    "preprocessing": {"crop": 8},
    "devices": ["gpu:0"],
}
"""It waits for an accelerator that is not there, so that nobody trains it."""


def test_the_program_asks_for_the_same_training(client, done, capsys):
    dataset, model = done
    request = {"dataset": dataset, "model": model, "checkpoint": "latest", "project": "away", "tags": ["a", "b"]}
    asked = client.train(_SPEC, **request)

    program = client.previews.text(_SPEC, **request)["python"]
    exec(compile(program, "away.py", "exec"), {})

    ids = [each["id"] for each in asked]
    (made,) = [each for each in client.jobs(project="away") if each["id"] not in ids]
    assert made["id"] in capsys.readouterr().out
    for field in ("spec", "name", "tags", "depends_on", "project", "network", "framework"):
        assert made[field] == asked[0][field], field
    for job_id in (*ids, made["id"]):
        client.delete(job_id)


def test_the_program_of_a_sweep_makes_all_its_jobs(client, done):
    request = {"dataset": done[0], "sweep": {"learning_rate": [0.1, 0.2], "schedule.warm_up_percent": [5, 10]}}
    request["project"] = "swept"

    exec(compile(client.previews.text(_SPEC, **request)["python"], "swept.py", "exec"), {})

    jobs = list(client.jobs(project="swept"))
    assert sorted((each["spec"]["learning_rate"], each["spec"]["schedule"]["warm_up_percent"]) for each in jobs) == [
        (0.1, 5),
        (0.1, 10),
        (0.2, 5),
        (0.2, 10),
    ]
    assert {each["spec"]["schedule"]["policy"] for each in jobs} == {"cosine"}
    for job in jobs:
        client.delete(job["id"])


def test_the_json_is_the_spec_of_the_job(client, done):
    (job,) = client.train(_SPEC, dataset=done[0])

    text = client.previews.text(_SPEC, dataset=done[0])["json"]

    assert parse_spec(json.loads(text)) == parse_spec(job["spec"])
    client.delete(job["id"])


@pytest.mark.nightly
def test_pictures_rates_and_findings(client, done, pets):
    dataset, _model = done
    spec = {"augmentation": {"flip": "fliplr"}, "batch_size": 3, "epochs": 2}

    found = client.previews.augmented(dataset, spec, row=0, count=2)
    assert len(found["pictures"][0]["augmented_png"]) == 2
    assert base64.b64decode(found["pictures"][0]["original_png"]).startswith(b"\x89PNG")

    assert client.previews.rate_curve(spec, points=2)["epochs"] == [0, 2]

    whole = client.previews.preflight({**spec, "network": "mlp"}, dataset=dataset)
    assert (whole["steps_per_epoch"], whole["steps"]) == (3, 6)
    (timed,) = [each for each in whole["findings"] if each["name"] == "time"]
    assert timed["earlier_jobs"] == 1  # the training that is done
    assert timed["expected_s"] > 0

    source = client.datasets.upload(pets)
    looked = client.previews.dataset({"source": source}, samples=1)
    assert (looked["counts"]["total"], len(looked["samples"])) == (12, 1)


def test_a_recipe_and_a_test_batch_from_a_program(client, done):
    recipe = client.previews.recipe(done[0])
    cards = client.previews.networks(done[0], batch_size=2)
    assert cards[0]["name"] == recipe["network"]

    spec = {"network": "mlp", "backend": "null", "batch_size": 2}
    found = client.previews.test_batch(spec, dataset=done[0], find_rate=False, ticket="mine")
    assert found["memory_bytes"] > 0
    with pytest.raises(UsageError):
        client.previews.cancel_test_batch("mine")
