"""Names of jobs and datasets stand wherever an id may; several jobs of a name are listed."""

from __future__ import annotations


def test_a_job_is_meant_by_its_name(ask, train):
    job = train(spec={"name": "my run, ü"})
    assert ask("GET", "/api/v1/jobs/my run, ü").json()["id"] == job["id"]
    assert ask("POST", "/api/v1/jobs/my run, ü/stop").status_code == 200
    assert ask("GET", f"/api/v1/jobs/{job['id']}").json()["state"] == "stopped"


def test_several_jobs_of_a_name_are_listed(ask, train):
    ids = {train(spec={"name": "twin"})["id"] for _ in range(2)}
    answer = ask("DELETE", "/api/v1/jobs/twin")
    assert answer.status_code == 400
    assert set(answer.json()["details"]["ids"]) == ids
    assert ask("GET", "/api/v1/jobs?text=twin").json()["total"] == 2


def test_a_name_nobody_has_is_no_job(ask, train):
    train(spec={"name": "first"})
    assert ask("GET", "/api/v1/jobs/firs").status_code == 404


def test_a_stranger_learns_no_names(ask, ask_as, train):
    train(spec={"name": "secret"})
    ask_as("viewer", "read")  # from now on, nobody comes in without an account
    assert {ask("GET", f"/api/v1/jobs/{name}").status_code for name in ("secret", "other")} == {401}


def test_a_dataset_is_meant_by_its_name(ask, train, studio, pets):
    name = studio.jobs.get(pets).name
    assert ask("GET", f"/api/v1/datasets/{name}").status_code == ask("GET", f"/api/v1/datasets/{pets}").status_code
    job = train(dataset=name)
    assert job["depends_on"] == [pets]


def test_the_name_of_a_training_is_no_dataset(ask, train):
    train(spec={"name": "first"})
    assert ask("GET", "/api/v1/datasets/first/versions").status_code == 404
