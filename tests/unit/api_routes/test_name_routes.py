"""Control characters are refused wherever a name comes in over REST, and nothing is changed."""

import pytest

BAD = ("\0", "one\ntwo", "\x1b[0m")
SPEC = {"kind": "train", "version": 1, "network": "mlp", "backend": "null", "data": "digits", "name": "tiny"}


def made(ask):
    return ask("POST", "/api/v1/trainings", json={"spec": SPEC}).json()["jobs"][0]["id"]


def is_refused(answer):
    assert answer.status_code == 422, answer.text
    return "must be text without control characters" in answer.json()["rule"]


@pytest.mark.parametrize("bad", BAD)
def test_changes_of_a_job_are_refused(ask, bad):
    job = made(ask)
    before = ask("GET", f"/api/v1/jobs/{job}").json()
    for change in ({"name": bad}, {"project": bad}, {"tags": ["good", bad]}):
        assert is_refused(ask("PATCH", f"/api/v1/jobs/{job}", json=change))
    assert is_refused(ask("PATCH", f"/api/v1/jobs/{job}", json={"notes": "\0"}))
    assert ask("GET", f"/api/v1/jobs/{job}").json() == before
    assert ask("PATCH", f"/api/v1/jobs/{job}", json={"notes": "two\nlines\t"}).status_code == 200


@pytest.mark.parametrize("bad", BAD)
def test_new_jobs_and_projects_are_refused(ask, studio, bad):
    before = studio.jobs.totals().kinds
    for body in ({"spec": SPEC | {"name": bad}}, {"spec": SPEC, "project": bad}, {"spec": SPEC, "tags": [bad]}):
        assert is_refused(ask("POST", "/api/v1/trainings", json=body))
    assert is_refused(ask("POST", "/api/v1/projects", json={"name": bad}))
    assert studio.jobs.totals().kinds == before
    assert [path.name for path in (studio.root / "jobs").glob("*")] == []
