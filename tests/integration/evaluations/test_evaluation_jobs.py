"""Evaluations of a split as jobs: made over REST, done by real workers, every figure counted again."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from tests.waiting import wait_until
from ziggurat.cli.main import main
from ziggurat.errors import CheckpointError, JobError, MissingCheckpointError, UnknownNameError, UsageError
from ziggurat.layout import JobFolder

CLASSES = ("dark", "grey", "light")


def test_an_evaluation_is_a_job_like_others(client, studio, made, evaluated):
    job = client.job(evaluated["strong"])

    assert (job["kind"], job["state"], job["name"]) == ("evaluate", "done", "strong on test")
    assert (job["parent"], job["depends_on"], job["framework"]) == (made["strong"], [made["strong"]], "")
    assert (job["global_step"], job["total_steps"]) == (18, 18)
    assert job["reason"].startswith("18 samples of test, accuracy 0.")
    assert [each["outcome"] for each in client.attempts(job["id"])] == ["done"]
    assert [each["id"] for each in client.evaluations.of_model(made["strong"])] == [job["id"]]
    assert "evaluation.create" in [each.action for each in studio.people.audit().entries]


@pytest.mark.nightly
def test_the_summary_agrees_with_each_prediction(client, made, evaluated, truth):
    for name in ("weak", "strong"):
        labels, probabilities = truth[name]["labels"], truth[name]["probabilities"]
        chosen = probabilities.argmax(axis=1)
        matrix = np.zeros((3, 3), int)
        for label, taken in zip(labels, chosen, strict=True):
            matrix[label, taken] += 1

        found = client.evaluations.summary(evaluated[name])

        assert found["confusion"] == matrix.tolist()
        assert found["accuracy"] == pytest.approx((labels == chosen).mean())
        assert found["top5"] is None
        assert found["classes"] == list(CLASSES)
        assert (found["kind"], found["split"], found["count"], found["skipped"]) == ("evaluate", "test", 18, 0)
        assert (found["model"], found["dataset"]) == (made[name], made["dataset"])
        assert found["checkpoint"] == next(each["name"] for each in client.checkpoints(made[name]) if each["best_by"])
        for number, each in enumerate(found["per_class"]):
            assert each["support"] == 6
            assert each["recall"] == pytest.approx(matrix[number, number] / 6)
        cost = -np.log(probabilities[np.arange(18), labels]).mean()
        assert found["scalars"]["cost"] == pytest.approx(cost, rel=1e-4)


def test_openings_of_the_test_split_are_counted(client, evaluated):
    openings = sorted(client.evaluations.summary(job_id)["openings"] for job_id in evaluated.values())

    assert openings == [1, 2]


def test_samples_have_rows_keys_and_probabilities(client, evaluated, truth):
    known = truth["strong"]

    page = client.evaluations.samples(evaluated["strong"], order="row", limit=1000)

    assert page["total"] == 18
    for place, sample in enumerate(page["samples"]):
        assert sample["split"] == "test"
        assert sample["row"] == known["rows"][place]
        assert sample["key"] == known["keys"][place]
        assert sample["label"] == known["labels"][place]
        scores = {each["class"]: each["score"] for each in sample["top"]}
        assert [scores[number] for number in range(3)] == pytest.approx(
            known["probabilities"][place].tolist(), abs=1e-5
        )


def test_a_cell_of_the_confusion_and_its_pages(client, evaluated):
    matrix = client.evaluations.summary(evaluated["weak"])["confusion"]
    for label in range(3):
        for predicted in range(3):
            first = client.evaluations.samples(evaluated["weak"], label=label, predicted=predicted, limit=2)
            rest = client.evaluations.samples(evaluated["weak"], label=label, predicted=predicted, offset=2, limit=50)
            found = first["samples"] + rest["samples"]
            assert first["total"] == rest["total"] == len(found) == matrix[label][predicted]
            assert {(each["label"], each["predicted"]) for each in found} <= {(label, predicted)}


def test_curves_threshold_and_the_surest(client, evaluated, truth):
    labels, probabilities = truth["strong"]["labels"], truth["strong"]["probabilities"]
    scores, is_light = probabilities[:, 2], labels == 2
    gaps = scores[is_light][:, None] - scores[~is_light][None]

    curves = client.evaluations.curves(evaluated["strong"], 2)
    at = client.evaluations.at_threshold(evaluated["strong"], 0.6)
    surest = client.evaluations.top_of_class(evaluated["strong"], 2, limit=4)

    assert curves["exact"]
    assert curves["area"] == pytest.approx(((gaps > 0) + 0.5 * (gaps == 0)).mean(), abs=1e-6)
    assert curves["recall"][-1] == 1.0
    decided = probabilities.max(axis=1) >= 0.6
    right = probabilities.argmax(axis=1) == labels
    assert at["coverage"] == pytest.approx(decided.mean())
    assert at["accuracy"] == pytest.approx(right[decided].mean())
    wanted = np.sort(scores)[::-1][:4]
    shown = [next(one["score"] for one in each["top"] if one["class"] == 2) for each in surest]
    assert shown == pytest.approx(wanted.tolist(), abs=1e-5)


def test_what_the_stronger_model_fixed(client, evaluated, truth):
    labels = truth["weak"]["labels"]
    right = {name: truth[name]["probabilities"].argmax(axis=1) == labels for name in ("weak", "strong")}
    wanted = {
        "fixed": ~right["weak"] & right["strong"],
        "broken": right["weak"] & ~right["strong"],
        "still_wrong": ~right["weak"] & ~right["strong"],
    }
    assert wanted["fixed"].any(), "the models differ"

    for which, places in wanted.items():
        found = client.evaluations.differences(evaluated["weak"], evaluated["strong"], which=which, limit=1000)
        assert found["counts"] == {name: int(each.sum()) for name, each in wanted.items()}
        assert found["total"] == len(found["samples"]) == places.sum()
        rows = [truth["weak"]["rows"][place] for place in np.flatnonzero(places)]
        assert [each["row"] for each in found["samples"]] == rows
        chosen = truth["strong"]["probabilities"].argmax(axis=1)[places].tolist()
        assert [each["second"]["predicted"] for each in found["samples"]] == chosen


def test_the_table_is_a_file(client, evaluated, truth, tmp_path):
    with client.evaluations.table(evaluated["strong"], tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    listed = json.loads(client.evaluations.table(evaluated["strong"], tmp_path / "all.json").read_text())

    assert [row["label_name"] for row in rows] == [CLASSES[label] for label in truth["strong"]["labels"]]
    assert [int(row["row"]) for row in rows] == [each["row"] for each in listed] == truth["strong"]["rows"]
    chosen = truth["strong"]["probabilities"].argmax(axis=1)
    assert [row["predicted_name"] for row in rows] == [CLASSES[number] for number in chosen]


def test_other_splits_and_other_models_are_not_compared(client, made, evaluated):
    other = client.evaluations.create(made["weak"], split="val", checkpoint="latest")
    client.wait(other["id"], every_s=0.1)

    with pytest.raises(JobError, match=", and evaluations of the same split are compared"):
        client.evaluations.differences(evaluated["weak"], other["id"])
    assert client.evaluations.summary(other["id"])["openings"] is None
    assert [each["id"] for each in client.evaluations.of_model(made["weak"])] == [other["id"], evaluated["weak"]]
    client.delete(other["id"])
    with pytest.raises(JobError):
        client.evaluations.summary(other["id"])


def test_a_model_is_kept_while_an_evaluation_needs_it(client, made, evaluated):
    with pytest.raises(JobError, match=r"What other jobs use is kept.*strong on test"):
        client.delete(made["strong"])


def test_what_cannot_be_is_said_before_a_job_is_made(client, made, evaluated):
    before = len(list(client.jobs()))
    with pytest.raises(MissingCheckpointError, match=r"There is no checkpoint `step-9`.*There are: step-"):
        client.evaluations.create(made["strong"], checkpoint="step-9")
    with pytest.raises(JobError, match=r"needs a job of kind train"):
        client.evaluations.create(made["dataset"])
    with pytest.raises(JobError):
        client.evaluations.create("20200101-000000-abcd")
    with pytest.raises(JobError, match="; this needs an evaluation, or predictions for many images, that is done"):
        client.evaluations.summary(made["strong"])
    with pytest.raises(UsageError, match="There is no class 3: they have numbers from 0 to 2"):
        client.evaluations.curves(evaluated["strong"], 3)
    assert len(list(client.jobs())) == before


def test_a_split_that_the_data_set_does_not_have(client, source):
    small = client.datasets.create({"source": str(source), "name": "no test", "workers": 0})
    (job,) = client.train({"network": "mlp", "epochs": 1, "batch_size": 6}, dataset=small["id"])
    client.wait(job["id"], every_s=0.1)

    with pytest.raises(UnknownNameError, match="`test` is not a known split of this data"):
        client.evaluations.create(job["id"], split="test")


def test_evaluating_waits_for_its_place_not_for_the_training(client, studio, made):
    spec = {"network": "mlp", "epochs": 100_000, "batch_size": 6, "checkpoints": {"every_steps": 3}}
    (training,) = client.train(spec, dataset=made["dataset"])
    (waiting,) = client.train({"network": "mlp", "batch_size": 6, "devices": ["gpu:7"]}, dataset=made["dataset"])
    try:
        with pytest.raises(CheckpointError, match=r"has no checkpoint yet; it is queued.*Let it train first"):
            client.evaluations.create(waiting["id"])
        place = JobFolder(studio.root / "jobs" / training["id"]).checkpoints
        wait_until(lambda: any(place.glob("step-*/state.json")), 60)
        job = client.evaluations.create(training["id"], checkpoint="latest")["id"]
        # There is one place on the processors, and the training has it.
        assert client.job(job)["state"] == "queued"
        with pytest.raises(JobError, match="What other jobs use is kept"):
            client.delete(training["id"])
        assert client.stop(job)["state"] == "stopped"
        client.resume(job)
        client.stop(training["id"])

        assert client.wait(job, every_s=0.1, timeout_s=60)["state"] == "done"
        assert client.job(training["id"])["state"] == "stopped"
        assert client.evaluations.summary(job)["checkpoint"].startswith("step-")
        assert client.evaluations.summary(job)["count"] == 18
        client.delete(job)
    finally:
        client.delete(training["id"], force=True)
        client.delete(waiting["id"])


@pytest.mark.nightly
def test_the_shell_makes_such_jobs_and_shows_what_they_found(client, address, made, source, capfd):
    words = ["job", "evaluate", made["strong"], "--split", "val", "--wait", "--server", address]
    assert main([*words, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert main(words) == 0
    shown = capfd.readouterr().out
    assert (
        main(["job", "infer", made["strong"], str(source / "dark"), "--limit", "3", "--wait", "--server", address]) == 0
    )
    many = capfd.readouterr().out
    assert main(["job", "evaluate", made["strong"], "--checkpoint", "gone", "--server", address]) != 0
    refused = capfd.readouterr().err

    assert found["accuracy"] == client.evaluations.summary(found["id"])["accuracy"]
    assert (found["split"], found["count"]) == ("val", 18)
    assert f"accuracy {found['accuracy']:.2%}" in shown
    assert [line.split()[0] for line in shown.splitlines()[-3:]] == list(CLASSES)
    assert "3 samples by step-" in many
    assert "There is no checkpoint `gone`" in refused
    for job in client.evaluations.of_model(made["strong"]):
        if job["name"] != "strong on test":
            client.delete(job["id"])
