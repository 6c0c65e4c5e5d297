"""Deleted jobs: listed, restored as they were, and removed for good."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from ziggurat.events import AttemptEnded, AttemptStarted, EventFile
from ziggurat.layout import JobFolder


def deleted(ask, job_id):
    assert ask("DELETE", f"/api/v1/jobs/{job_id}").status_code == 204
    assert ask("GET", f"/api/v1/jobs/{job_id}").status_code == 404
    return [each["id"] for each in ask("GET", "/api/v1/trash").json()]


def test_a_deleted_training_comes_back_as_it_was(ask, train):
    before = train(spec={"name": "first"}, project="faces", tags=["try"], notes="keep")
    ask("POST", f"/api/v1/jobs/{before['id']}/stop")
    before = ask("GET", f"/api/v1/jobs/{before['id']}").json()
    assert deleted(ask, before["id"]) == [before["id"]]
    answer = ask("POST", "/api/v1/trash/first/restore")
    assert answer.status_code == 200
    after = answer.json()
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"position", "reason", "ended"}
    assert Path(after["folder"], "spec.json").is_file()
    assert ask("GET", "/api/v1/trash").json() == []
    assert ask("POST", f"/api/v1/jobs/{before['id']}/resume").json()["state"] == "queued"


def test_what_used_a_dataset_works_after_it_is_restored(ask, train, studio, pets):
    job = train(dataset=pets)
    with closing(EventFile(JobFolder(Path(studio.jobs.get(pets).folder)).events)) as events:  # as its worker wrote them
        events.write(
            AttemptStarted(time=1.0, attempt=1, pid=7, host="here", backend="", release="1"),
            AttemptEnded(time=2.0, outcome="done", exit_code=0),
        )
    ask("POST", f"/api/v1/jobs/{job['id']}/stop")
    assert ask("DELETE", f"/api/v1/jobs/{pets}?force=true").status_code == 204
    assert ask("POST", f"/api/v1/trash/{pets}/restore").status_code == 200
    assert ask("GET", f"/api/v1/datasets/{pets}/samples").status_code == 200
    assert ask("GET", f"/api/v1/jobs/{job['id']}").json()["depends_on"] == [pets]
    assert ask("DELETE", f"/api/v1/jobs/{pets}").status_code == 409


def test_forever_is_at_once(ask, train, studio):
    kept, gone = train(spec={"name": "kept"})["id"], train(spec={"name": "gone"})["id"]
    folder = Path(studio.jobs.get(gone).folder)
    assert ask("DELETE", f"/api/v1/jobs/{gone}?forever=true").status_code == 204
    assert not folder.exists()
    assert deleted(ask, kept) == [kept]
    assert ask("DELETE", f"/api/v1/jobs/{kept}?forever=true").status_code == 204
    assert ask("GET", "/api/v1/trash").json() == []
    assert ask("POST", f"/api/v1/trash/{kept}/restore").status_code == 404
    assert ask("DELETE", f"/api/v1/jobs/{kept}?forever=true").status_code == 404


def test_something_else_at_its_place_stays(ask, train, studio):
    job_id = train()["id"]
    folder = Path(studio.jobs.get(job_id).folder)
    deleted(ask, job_id)
    folder.mkdir()
    answer = ask("POST", f"/api/v1/trash/{job_id}/restore")
    assert answer.status_code == 409
    assert answer.json()["received"] == str(folder)
    assert list(folder.iterdir()) == []


def test_a_viewer_restores_nothing(ask, ask_as, train):
    job_id = train()["id"]
    deleted(ask, job_id)
    viewer = ask_as("viewer", "write")
    assert viewer("POST", f"/api/v1/trash/{job_id}/restore").status_code == 403
    assert len(viewer("GET", "/api/v1/trash").json()) == 1
