"""Routes of jobs: found, changed, stopped, paused, deleted, one by one and many at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ziggurat.events import DivergenceNoticed, HyperparameterChanged, ScalarLogged
from ziggurat.store import Store


def test_an_empty_studio_has_no_jobs(ask):
    assert ask("GET", "/api/v1/jobs").json() == {"total": 0, "jobs": []}
    assert ask("GET", "/api/v1/queue").json() == {"total": 0, "jobs": []}


def test_datasets_and_models_are_listed_at_their_own_addresses(ask, train):
    job = train(spec={"name": "mine"})
    assert [each["id"] for each in ask("GET", "/api/v1/models?text=mine").json()["jobs"]] == [job["id"]]
    assert ask("GET", "/api/v1/datasets").json() == {"total": 0, "jobs": []}
    assert ask("GET", "/api/v1/datasets?kind=train").status_code == 400


def test_what_is_missing_has_the_word_of_its_address(ask):
    for subject in ("dataset", "evaluation", "job"):
        missing = ask("GET", f"/api/v1/{subject}s/nobody")
        assert (missing.status_code, missing.json()["rule"]) == (404, f"There is no {subject} `nobody`.")


def test_the_queue_comes_in_pages(ask, train):
    order = [train(spec={"name": name})["id"] for name in ("a", "b", "c")]

    def queue(query):
        found = ask("GET", f"/api/v1/queue?{query}").json()
        return found["total"], [each["id"] for each in found["jobs"]]

    assert queue("") == (3, order)
    assert queue("limit=2") == (3, order[:2])
    assert queue("limit=2&offset=2") == (3, order[2:])
    assert ask("GET", "/api/v1/queue?limit=2000").status_code == 422
    machine = ask("GET", "/api/v1/machine").json()
    assert (machine["waiting"], [each["id"] for each in machine["queue"]]) == (3, order)
    moved = ask("POST", f"/api/v1/jobs/{order[2]}/reorder", json={"before": order[0]}).json()
    assert [each["id"] for each in moved["jobs"]] == [order[2], order[0], order[1]]


def test_a_queued_training_is_found_by_what_it_is(ask, train):
    job = train(spec={"name": "first", "learning_rate": 0.1}, project="faces", tags=["try"])
    train(spec={"name": "second", "learning_rate": 0.001})

    def names(query):
        return [each["name"] for each in ask("GET", f"/api/v1/jobs?{query}").json()["jobs"]]

    assert job["state"] == "queued"
    assert names("sort=name") == ["first", "second"]
    assert names("sort=-name") == ["second", "first"]
    assert names("sort=-name&offset=1&limit=1") == ["first"]
    assert names("where=learning_rate%3E0.01") == ["first"]
    assert names("where=learning_rate%3C1+and+learning_rate%3E0.01") == ["first"]
    assert names("project=faces") == names("tag=try") == names("text=FIRS") == ["first"]
    assert names("kind=dataset") == names("state=done") == []


def test_a_condition_that_is_none_says_what_one_looks_like(ask):
    answer = ask("GET", "/api/v1/jobs?where=learning_rate")

    assert answer.status_code == 400
    assert "learning_rate > 0.01 and accuracy > 0.98" in answer.json()["advice"]


def test_jobs_refuses_more_than_20_conditions(ask):
    answer = ask("GET", "/api/v1/jobs?" + "&".join(["where=learning_rate%3E0.01"] * 1900))

    assert answer.status_code == 422
    assert "The filter has 1900 conditions; at most 20 are allowed." in answer.json()["received"]


def test_unknown_filters_are_refused(ask):
    answer = ask("GET", "/api/v1/jobs?colour=red")

    assert answer.status_code == 422
    assert "colour" in answer.json()["received"]


def test_unknown_job_is_404_everywhere(ask):
    for path in ("", "/log", "/messages", "/attempts", "/tags", "/curves", "/checkpoints", "/download", "/request"):
        answer = ask("GET", f"/api/v1/jobs/20200101-000000-abcd{path}")
        assert answer.status_code == 404, path
        assert answer.json()["error"] == "job"


def test_curves_come_with_as_many_digits_as_are_wanted(ask, train, studio):
    job_id = train()["id"]
    values = [123456.789, -0.000123456789, 1e300, 0.0, float("nan"), float("-inf")]
    said = [
        ScalarLogged(time=1763772801.98765 + step, tag="cost", value=value, step=step, epoch=0)
        for step, value in enumerate(values)
    ]
    with Store.open(studio.root / "studio.db") as store:
        assert store.events.take(job_id, 0, 1, said)

    (whole,) = ask("GET", f"/api/v1/jobs/{job_id}/curves").json()
    (short,) = ask("GET", f"/api/v1/jobs/{job_id}/curves?digits=3").json()

    assert whole["values"] == [123456.789, -0.000123456789, 1e300, 0.0, "NaN", "-Infinity"]
    assert short["values"] == [123000.0, -0.000123, 1e300, 0.0, "NaN", "-Infinity"]
    assert short["times"] == [1763772801.99 + step for step in range(6)]
    assert (short["steps"], short["epochs"], short["total"]) == (whole["steps"], whole["epochs"], 6)
    assert ask("GET", f"/api/v1/jobs/{job_id}/curves?digits=0").status_code == 422


def test_digits_22_name_and_notes_are_changed_by_themselves(ask, train):
    job = train(spec={"name": "old"})
    place = f"/api/v1/jobs/{job['id']}"

    assert ask("PATCH", place, json={"name": "new"}).json()["name"] == "new"
    changed = ask("PATCH", place, json={"notes": "Try this."}).json()
    assert (changed["name"], changed["notes"]) == ("new", "Try this.")
    assert ask("GET", place).json()["name"] == "new"


def test_stop_resume_and_delete(ask, train):
    """DIGITS 20: create → abort → delete works, and afterwards the job is not there."""
    place = f"/api/v1/jobs/{train()['id']}"

    assert ask("POST", f"{place}/stop").json()["state"] == "stopped"
    assert ask("POST", f"{place}/resume").json()["state"] == "queued"
    paused = ask("POST", f"{place}/pause").json()
    assert (paused["state"], paused["paused"]) == ("stopped", True)
    assert ask("DELETE", place).status_code == 204
    assert ask("GET", place).status_code == 404


def test_a_job_that_did_not_fail_is_not_retried(ask, train):
    answer = ask("POST", f"/api/v1/jobs/{train()['id']}/retry")

    assert answer.status_code == 409
    assert answer.json()["error"] == "job"


def test_the_queue_is_reordered(ask, train):
    first, second = train(spec={"name": "first"}), train(spec={"name": "second"})

    answer = ask("POST", f"/api/v1/jobs/{second['id']}/reorder", json={"before": first["id"]})

    assert [each["name"] for each in answer.json()["jobs"]] == ["second", "first"]


def test_hyperparameters_are_those_of_a_running_training(ask, train):
    answer = ask("POST", f"/api/v1/jobs/{train()['id']}/hyperparameters", json={"name": "learning_rate", "value": 0.1})

    assert answer.status_code == 409
    assert "queued" in answer.json()["message"]


def test_a_rate_of_more_than_ten_times_needs_force(ask, studio, train):
    job_id = train()["id"]
    place = f"/api/v1/jobs/{job_id}/hyperparameters"
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job_id, ("queued",), "running", started=10.0, health="alive")
    assert ask("POST", place, json={"name": "learning_rate", "value": 0.01}).status_code == 200

    refused = ask("POST", place, json={"name": "learning_rate", "value": 0.11})
    assert refused.status_code == 422
    assert refused.json()["rule"].startswith("The learning rate 0.11 is more than 10 times the present one, 0.01")
    assert "`force` (in a shell `--yes`)" in refused.json()["advice"]
    assert studio.jobs.hyperparameters(job_id) == {"learning_rate": 0.01}
    assert ask("POST", place, json={"name": "learning_rate", "value": 0.1}).status_code == 200
    assert ask("POST", place, json={"name": "learning_rate", "value": 7, "force": True}).status_code == 200


def test_marks_and_divergence_are_there_by_rest(ask, studio, train):
    job_id = train()["id"]
    said = [
        HyperparameterChanged(time=2.0, name="learning_rate", value=5, previous=0.01, step=3, source="person"),
        DivergenceNoticed(
            time=3.0, state="diverged", tag="cost", value=90.0, step=5, epoch=2, best=0.5, best_epoch=1, noticed_step=9
        ),
    ]
    with Store.open(studio.root / "studio.db") as store:
        assert store.events.take(job_id, 0, 1, said)

    found = ask("GET", f"/api/v1/jobs/{job_id}").json()["divergence"]
    assert (found["epoch"], found["value"]) == (2, 90.0)
    assert found["text"] == "Diverged: the loss rose to 90 at epoch 2 (best 0.5 at epoch 1)."
    marks = ask("GET", f"/api/v1/jobs/{job_id}/marks").json()
    assert [(each["kind"], each["step"], each["time"]) for each in marks] == [
        ("intervention", 3, 2.0),
        ("divergence", 5, None),
    ]


@pytest.mark.parametrize("rate", [0, -0.1])
def test_a_rate_that_learns_nothing_is_refused(ask, train, rate):
    body = {"name": "learning_rate", "value": rate}

    answer = ask("POST", f"/api/v1/jobs/{train()['id']}/hyperparameters", json=body)

    assert answer.status_code == 422
    assert answer.json()["rule"].endswith("is no learning rate: it must be a number above 0.")


def test_a_hyperparameter_set_by_hand_goes_back_to_its_schedule(ask, studio, train):
    job_id = train()["id"]
    place = f"/api/v1/jobs/{job_id}/hyperparameters"
    refused = ask("DELETE", f"{place}/learning_rate")
    assert (refused.status_code, refused.json()["rule"]) == (
        409,
        f"{job_id} is queued; a hyperparameter goes back to its schedule while a training runs.",
    )
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job_id, ("queued",), "running", started=10.0, health="alive")
        for name, value in (("learning_rate", 0.1), ("momentum", 0.5)):
            assert ask("POST", place, json={"name": name, "value": value}).status_code == 200

        assert ask("DELETE", f"{place}/learning_rate").json()["id"] == job_id

        assert studio.jobs.hyperparameters(job_id) == {"momentum": 0.5}
        assert (Path(studio.jobs.get(job_id).folder) / "hyper.txt").read_text() == "momentum: 0.5\n"
        noted = studio.people.audit(limit=1).entries[0]
        assert (noted.action, noted.details) == ("job.hyperparameter", {"name": "learning_rate", "value": None})
    again = ask("DELETE", f"{place}/learning_rate")
    assert again.status_code == 409
    assert "was not set by hand, so it does not go back to its schedule" in again.json()["rule"]
    assert again.json()["advice"] == "Set by hand are: momentum."
    assert ask("DELETE", "/api/v1/jobs/20200101-000000-abcd/hyperparameters/learning_rate").status_code == 404


def test_a_line_with_a_comment_is_a_rate_set_by_hand(studio, train):
    job_id = train()["id"]
    (Path(studio.jobs.get(job_id).folder) / "hyper.txt").write_text("learning_rate: 0.25 # slower\n")

    assert studio.jobs.hyperparameters(job_id) == {"learning_rate": 0.25}


def test_many_jobs_by_their_ids(ask, train):
    job = train()

    answer = ask("POST", "/api/v1/jobs/actions", json={"action": "stop", "ids": [job["id"], "nobody"]})

    good, bad = answer.json()["results"]
    assert good == {"id": job["id"], "done": True, "error": None}
    assert (bad["done"], bad["error"]["error"]) == (False, "job")


def test_all_that_a_filter_leaves_are_changed(ask, train):
    train(spec={"name": "a"}, tags=["x"]), train(spec={"name": "b"}, tags=["x"]), train(spec={"name": "c"})

    body = {"action": "change", "filter": {"tag": "x", "limit": 1}, "change": {"project": "moved"}}
    results = ask("POST", "/api/v1/jobs/actions", json=body).json()["results"]

    assert [each["done"] for each in results] == [True, True]
    assert ask("GET", "/api/v1/jobs?project=moved").json()["total"] == 2


def test_bulk_needs_ids_or_a_filter_and_not_both(ask):
    for body in ({"action": "stop"}, {"action": "stop", "ids": [], "filter": {}}):
        assert ask("POST", "/api/v1/jobs/actions", json=body).status_code == 400


def test_compare_tells_where_specs_differ(ask, train):
    one, two = train(spec={"learning_rate": 0.1}), train(spec={"learning_rate": 0.2})

    found = ask("GET", f"/api/v1/compare?job={one['id']}&job={two['id']}").json()

    assert found["differences"] == {"learning_rate": [0.1, 0.2]}


def test_digits_24_a_clone_asks_for_the_same(ask, train):
    job = train(spec={"name": "lenet", "epochs": 7}, project="faces", tags=["a"], notes="n", priority=3)

    request = ask("GET", f"/api/v1/jobs/{job['id']}/request").json()
    (copy,) = ask("POST", "/api/v1/trainings", json=request).json()["jobs"]

    assert copy["parent"] == job["id"]
    for name in ("spec", "name", "project", "tags", "notes", "priority", "needs"):
        assert copy[name] == job[name], name


def test_what_people_do_is_recorded(ask, train, studio):
    job = train()
    ask("POST", f"/api/v1/jobs/{job['id']}/stop")
    ask("DELETE", f"/api/v1/jobs/{job['id']}")

    actions = [entry.action for entry in studio.people.audit().entries]
    assert actions == ["job.delete", "job.stop", "training.create"]


def test_viewers_look_and_do_not_touch(ask_as, train):
    job = train()
    viewer = ask_as("viewer", "admin")

    assert viewer("GET", f"/api/v1/jobs/{job['id']}").status_code == 200
    assert viewer("POST", f"/api/v1/jobs/{job['id']}/stop").status_code == 403
    assert viewer("DELETE", f"/api/v1/jobs/{job['id']}").status_code == 403
    assert viewer("GET", "/api/v1/paths").status_code == 403
    assert viewer("GET", "/api/v1/settings").status_code == 403
