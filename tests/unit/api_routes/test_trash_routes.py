"""What was deleted: listed, restored as they were, and removed for good."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.unit.weights.weight_samples import add_entry
from ziggurat.entities import WorkerRef
from ziggurat.entities.trash import Trash
from ziggurat.events import AttemptEnded, AttemptStarted, EventFile
from ziggurat.jobs.disk import Retention, what_to_empty
from ziggurat.jobs.job_file import StartedAttempt, write_attempt
from ziggurat.layout import JobFolder
from ziggurat.workspace.studio.uploads import Uploads


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


def test_a_job_that_ran_on_a_cluster_comes_back_stopped(ask, train, studio):
    job_id = train()["id"]
    folder = Path(studio.jobs.get(job_id).folder)
    worker = WorkerRef(executor="ray", node="there", attempt=1, opaque={"folder": str(folder), "name": "gone"})
    write_attempt(folder, StartedAttempt(worker, (), studio.clock()))  # its worker was killed before it was deleted
    deleted(ask, job_id)
    restored = ask("POST", f"/api/v1/trash/{job_id}/restore").json()
    assert (restored["state"], restored["reason"]) == ("stopped", "restored")
    assert studio.jobs.get(job_id).worker is None


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


def test_other_kinds_are_deleted_restored_and_removed(ask, studio):
    add_entry(studio.root)
    ask("PUT", "/api/v1/saved/view/a/b", json={"content": {"query": "q=x"}})
    upload = ask("POST", "/api/v1/uploads?name=pets/1.png", content=b"12345").json()
    places = ["weights/small", "saved/view/a/b", f"uploads/{upload['id']}"]
    looks = ["weights/small", "saved/view", f"uploads/{upload['id']}"]
    before = [ask("GET", f"/api/v1/{each}").json() for each in looks]

    for place in places:
        assert ask("DELETE", f"/api/v1/{place}").status_code == 204
        assert ask("DELETE", f"/api/v1/{place}").status_code == 404
    listed = {each["kind"]: each for each in ask("GET", "/api/v1/trash").json()}
    assert {kind: each["name"] for kind, each in listed.items()} == {
        "weights": "small",
        "view": "a/b",
        "upload": "pets",
    }
    assert listed["upload"]["size_bytes"] == 5
    assert listed["weights"]["size_bytes"] == before[0]["size_bytes"]
    for place in places:
        assert ask("POST", f"/api/v1/{place}/restore").status_code == 200
        assert ask("POST", f"/api/v1/{place}/restore").status_code == 404
    after = [ask("GET", f"/api/v1/{each}").json() for each in looks]
    assert [after[0], after[2]] == [before[0], before[2]]
    assert (after[1][0]["name"], after[1][0]["content"]) == ("a/b", {"query": "q=x"})

    ask("DELETE", f"/api/v1/{places[1]}")
    for place in places:  # one that is deleted already, and others that are not
        assert ask("DELETE", f"/api/v1/{place}?forever=true").status_code == 204
        assert ask("DELETE", f"/api/v1/{place}?forever=true").status_code == 404
    assert ask("GET", "/api/v1/trash").json() == []
    assert not list((studio.root / ".trash").iterdir())


def test_a_name_that_is_taken_again_is_told(ask, studio):
    add_entry(studio.root)
    for content in (1, 2):
        ask("PUT", "/api/v1/saved/view/mine", json={"content": content})
        if content == 1:
            ask("DELETE", "/api/v1/saved/view/mine")
    ask("DELETE", "/api/v1/weights/small")
    add_entry(studio.root)
    ids = {each["kind"]: each["id"] for each in ask("GET", "/api/v1/trash").json()}
    view = ask("POST", "/api/v1/saved/view/mine/restore")
    assert view.status_code == 400
    assert view.json()["rule"] == "There is another saved view of the name `mine` now."
    assert ids["view"] in view.json()["advice"]
    weights = ask("POST", "/api/v1/weights/small/restore")
    assert weights.json()["rule"] == "There are other pretrained weights of the name `small` now."
    assert weights.json()["advice"] == f"Remove those first, then restore {ids['weights']}."
    ask("DELETE", "/api/v1/weights/small?forever=true")
    assert ask("POST", f"/api/v1/weights/{ids['weights']}/restore").json()["name"] == "small"


def test_a_view_that_a_kill_left_twice_is_restored(ask, studio):
    ask("PUT", "/api/v1/saved/view/mine", json={"content": 1})
    ask("DELETE", "/api/v1/saved/view/mine")
    ask("PUT", "/api/v1/saved/view/mine", json={"content": 1})  # as where it is killed before it is deleted
    assert ask("POST", "/api/v1/saved/view/mine/restore").json()["content"] == 1
    assert ask("GET", "/api/v1/trash").json() == []


def test_a_restored_upload_waits_as_long_as_a_new_one(ask, studio):
    now = [studio.clock()]
    uploads = Uploads(studio.uploads.folder, lambda: now[0], Trash(studio.root))
    with uploads.add("a.txt") as incoming:
        incoming.write(b"1")
    now[0] += 900.0
    uploads.delete(incoming.upload_id)
    uploads.restore(incoming.upload_id)
    assert uploads.remove_older_than(500.0) == 0
    now[0] += 600.0
    assert uploads.remove_older_than(500.0) == 1


def test_drafts_are_gone_at_once(ask):
    ask("PUT", "/api/v1/saved/draft/x", json={"content": 1})
    ask("DELETE", "/api/v1/saved/draft/x")
    assert ask("GET", "/api/v1/trash").json() == []
    assert ask("POST", "/api/v1/saved/draft/x/restore").status_code == 404


def test_only_their_owner_restores_views(ask_as):
    one, other = ask_as("viewer", "write"), ask_as("trainer", "write")
    one("PUT", "/api/v1/saved/view/mine", json={"content": 1})
    one("DELETE", "/api/v1/saved/view/mine")
    assert other("GET", "/api/v1/trash").json() == []
    assert other("POST", "/api/v1/saved/view/mine/restore").status_code == 404
    assert other("DELETE", "/api/v1/saved/view/mine?forever=true").status_code == 404
    assert one("POST", "/api/v1/saved/view/mine/restore").status_code == 200


def test_a_full_disk_or_an_old_age_empties_all_kinds(ask, studio):
    add_entry(studio.root)
    ask("DELETE", "/api/v1/weights/small")
    ask("PUT", "/api/v1/saved/view/mine", json={"content": 1})
    ask("DELETE", "/api/v1/saved/view/mine")
    trash = Trash(studio.root)
    old = what_to_empty(studio.clock(), Retention(trash_age_s=600.0))
    assert trash.empty(old) == []
    assert len(trash.empty(what_to_empty(studio.clock(), Retention(trash_age_s=600.0), disk_is_low=True))) == 2
    assert ask("GET", "/api/v1/trash").json() == []


def test_a_training_that_waits_keeps_its_weights(ask, studio, train):
    add_entry(studio.root)
    job = train(spec={"pretrained": "weights:small", "backend": "null"})
    for query in ("", "?forever=true"):
        answer = ask("DELETE", f"/api/v1/weights/small{query}")
        assert answer.status_code == 409
        assert answer.json()["details"] == {"jobs": [job["id"]]}
    ask("POST", f"/api/v1/jobs/{job['id']}/stop")
    assert ask("DELETE", "/api/v1/weights/small").status_code == 204
    assert ask("POST", "/api/v1/weights/small/restore").status_code == 200
    assert [each["id"] for each in ask("GET", "/api/v1/weights/small").json()["users"]] == [job["id"]]
