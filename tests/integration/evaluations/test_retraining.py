"""A dataset relabeled, trained again on the new version by real workers, and compared by REST and in the shell."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ziggurat.cli.main import main


@pytest.fixture(scope="session")
def relabeled(client, made, evaluated):
    """Return the id of a version in which five dark samples of the test split are grey, and their rows."""
    page = client.datasets.samples(made["dataset"], split="test", class_name="dark", limit=5)["samples"]
    rows = [each["row"] for each in page]
    version = client.datasets.relabel(made["dataset"], [f"test/{row}" for row in rows], "grey", name="shades, grey")
    return version["id"], rows


@pytest.fixture(scope="session")
def retrained(client, made, evaluated, relabeled):
    found = client.evaluations.retrain(made["strong"], relabeled[0], evaluation=evaluated["strong"])
    for name in ("model", "evaluation"):
        client.wait(found[name]["id"], every_s=0.1)
    return found


def test_retraining_takes_the_same_spec_on_the_version(client, made, evaluated, relabeled, retrained):
    former, model = client.job(made["strong"]), client.job(retrained["model"]["id"])
    named = {"name", "data"}

    assert retrained["is_new"]
    assert (model["parent"], model["depends_on"]) == (made["strong"], [relabeled[0]])
    assert {k: v for k, v in model["spec"].items() if k not in named} == {
        k: v for k, v in former["spec"].items() if k not in named
    }
    assert model["name"] == "strong, shades, grey"
    assert retrained["former_evaluation"]["id"] == evaluated["strong"]
    evaluation = retrained["evaluation"]
    assert (evaluation["parent"], evaluation["spec"]["split"]) == (model["id"], "test")
    assert evaluation["spec"]["after_training"]


def test_retraining_again_makes_no_second_job(client, made, evaluated, relabeled, retrained):
    before = list(client.jobs(kind=["train"]))

    again = client.evaluations.retrain(made["strong"], relabeled[0], evaluation=evaluated["strong"])

    assert not again["is_new"]
    assert {name: again[name]["id"] for name in ("model", "evaluation", "former_evaluation")} == {
        name: retrained[name]["id"] for name in ("model", "evaluation", "former_evaluation")
    }
    assert len(list(client.jobs(kind=["train"]))) == len(before)


def test_differences_of_versions_agree_with_a_join_by_hand(client, evaluated, relabeled, retrained):
    first, second = evaluated["strong"], retrained["evaluation"]["id"]
    old = {each["key"]: each for each in client.evaluations.samples(first, limit=100)["samples"]}
    new = {each["key"]: each for each in client.evaluations.samples(second, limit=100)["samples"]}

    found = client.evaluations.differences(first, second, which="label_changed")

    assert old.keys() == new.keys()
    right = {name: {key for key, each in some.items() if each["label"] == each["predicted"]} for name, some in
             (("old", old), ("new", new))}  # fmt: skip
    assert found["counts"] == {
        "fixed": len(right["new"] - right["old"]),
        "broken": len(right["old"] - right["new"]),
        "still_wrong": len(old.keys() - right["old"] - right["new"]),
        "label_changed": 5,
        "only_first": 0,
        "only_second": 0,
    }
    assert sorted(each["row"] for each in found["samples"]) == sorted(relabeled[1])
    assert {(each["label_before"], each["label_after"]) for each in found["samples"]} == {("dark", "grey")}
    accuracy = found["accuracy"]
    assert accuracy["difference"] == pytest.approx((len(right["new"]) - len(right["old"])) / 18)
    assert accuracy["interval"][0] <= accuracy["difference"] <= accuracy["interval"][1]
    by_new = np.mean([old[key]["predicted"] == new[key]["label"] for key in old])
    assert accuracy["first_by_second_labels"] == pytest.approx(by_new)


def test_the_shell_shows_what_changed(address, capsys, evaluated, relabeled, made, retrained):
    words = ["job", "differences", evaluated["strong"], retrained["evaluation"]["id"], "--server", address]

    assert main([*words, "--which", "label_changed"]) == 0
    shown = capsys.readouterr().out
    assert "Two datasets with 18 common samples, joined by content." in shown
    assert shown.count("dark, predicted") == shown.count("grey, predicted") == 5
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"]["label_changed"] == 5
    asked = ["job", "retrain", made["strong"], "--dataset", relabeled[0], "--split", "test", "--wait"]
    assert main([*asked, "--server", address]) == 0
    shown = capsys.readouterr().out
    assert "is there already, done." in shown
    assert "Label changed" in shown


def test_a_training_is_not_repeated_on_its_own_data(address, capsys, made):
    asked = ["job", "retrain", made["strong"], "--dataset", made["dataset"], "--server", address]

    assert main(asked) != 0
    assert "on another dataset than its own" in capsys.readouterr().err
