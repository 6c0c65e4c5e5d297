"""Routes of evaluations: who may make one, and what is refused before a job is made."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("path", ["evaluations", "inferences"])
def test_looking_is_no_right_to_make(ask_as, path):
    looker = ask_as("viewer", "read")
    reader = ask_as("trainer", "read")

    for browser in (looker, reader):
        answer = browser("POST", f"/api/v1/models/20200101-000000-abcd/{path}", json={"source": "/data"})
        assert answer.status_code == 403


def test_a_model_without_a_checkpoint_is_not_evaluated(ask, train):
    job = train()

    answer = ask("POST", f"/api/v1/models/{job['id']}/evaluations", json={"split": "val"})

    assert "has no checkpoint yet" in answer.json()["rule"]
    assert ask("GET", "/api/v1/jobs").json()["total"] == 1
    assert ask("GET", f"/api/v1/models/{job['id']}/evaluations").json() == {"jobs": []}


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("POST", "/models/{pets}/evaluations", {"json": {}}, 409),
        ("POST", "/models/nobody/evaluations", {"json": {}}, 404),
        ("POST", "/models/{pets}/evaluations", {"json": {"split": "all"}}, 422),
        ("POST", "/models/{pets}/inferences", {"json": {"source": "/", "top": 6}}, 422),
        ("GET", "/models/nobody/evaluations", {}, 404),
        ("GET", "/evaluations/{pets}", {}, 409),
        ("GET", "/evaluations/nobody/samples", {}, 404),
        ("GET", "/evaluations/{pets}/samples?order=best", {}, 422),
        ("GET", "/evaluations/{pets}/curves/-1", {}, 422),
        ("GET", "/evaluations/{pets}/at-threshold?threshold=2", {}, 422),
        ("GET", "/evaluations/{pets}/table", {}, 409),
        ("GET", "/evaluations/{pets}/differences/nobody", {}, 409),
    ],
)
def test_what_is_no_evaluation_is_said(ask, pets, method, path, options, status):
    assert ask(method, f"/api/v1{path.format(pets=pets)}", **options).status_code == status
