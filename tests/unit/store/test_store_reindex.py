"""Rebuilding the store from the folders alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from store_samples import ended, new_job, point, saved, started

from ziggurat.entities import NewJob
from ziggurat.errors import JobError
from ziggurat.events import EventFile
from ziggurat.store import JobOnDisk, Store


def make_folder(path: Path, *, spec: dict[str, Any], given: dict[str, Any], events: list[Any] = []) -> None:  # noqa: B006
    path.mkdir(parents=True)
    (path / "spec.json").write_text(json.dumps(spec))
    (path / "job.json").write_text(json.dumps(given))
    file = EventFile(path / "events.jsonl")
    if events:
        file.write(*events)
    file.close()


def read_job(folder: Path) -> JobOnDisk:
    """What the workspace does, in short."""
    if not (folder / "spec.json").is_file():
        raise JobError("A job folder must have a spec.json.", received=folder.name)
    spec, given = (json.loads((folder / name).read_text()) for name in ("spec.json", "job.json"))
    state = given.pop("state")
    facts = {"facts": {"samples": 5}} if spec["kind"] == "dataset" else {}
    asked = NewJob(id=folder.name, kind=spec["kind"], folder=str(folder), spec=spec, **given)
    return JobOnDisk(job=asked, state=state, fields={"reason": "as the folder says", **facts})


def workspace(tmp_path: Path) -> Path:
    events = [started(), point("loss", 1, 0.5), saved(10), point("loss", 20, 0.25), ended(outcome="stopped", step=20)]
    events += [started(50.0, at=10), point("loss", 11, 0.125), ended(60.0)]
    train = {"kind": "train", "learning_rate": 0.1}
    make_folder(
        tmp_path / "jobs" / "m", spec=train, events=events,
        given={"name": "Model", "state": "done", "project": "p", "tags": ["t"], "notes": "n", "created": 2.0},
    )  # fmt: skip
    make_folder(
        tmp_path / "datasets" / "d", spec={"kind": "dataset"}, events=[started(), ended()],
        given={"name": "Data", "state": "done", "created": 1.0},
    )  # fmt: skip
    (tmp_path / "jobs" / "broken").mkdir()
    (tmp_path / "jobs" / ".trash").mkdir()
    return tmp_path


def test_an_empty_store_is_filled(store: Store, tmp_path: Path) -> None:
    user = store.people.users.create("fred", role="admin", password_hash="x", now=1.0)
    report = store.reindex(workspace(tmp_path), read_job)
    assert (report.added, report.renewed, report.missing, report.events) == (("d", "m"), (), (), 10)
    assert {Path(folder).name: why for folder, why in report.damaged.items()} == {
        "broken": "A job folder must have a spec.json (received: broken)."
    }
    job = store.jobs.get("m")
    assert (job.name, job.state, job.project, job.tags, job.notes, job.reason) == (
        "Model", "done", "p", ("t",), "n", "as the folder says"
    )  # fmt: skip
    assert (job.attempt, job.global_step, job.exit_code, job.ended) == (2, 30, 0, 60.0)
    assert store.curves.curve("m", "loss").values.tolist() == [0.5, 0.125]
    assert [one.outcome for one in store.curves.attempts("m")] == ["stopped", "done"]
    assert [one.step for one in store.curves.checkpoints("m")] == [10]
    assert store.datasets.facts(["d"]) == {"d": {"samples": 5}}
    assert store.people.users.all() == [user]


def test_a_store_that_says_otherwise_is_put_right(store: Store, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    store.jobs.add(new_job("gone"))
    store.jobs.add(new_job("m", name="wrong", spec={"learning_rate": 9.0}, tags=("wrong",)))
    store.events.take("m", 0, 77, [point("wrong", 1, 1.0)])
    report = store.reindex(folder, read_job)
    assert (report.added, report.renewed, report.missing) == (("d",), ("m",), ("gone",))
    job = store.jobs.get("m")
    assert (job.name, job.spec["learning_rate"], job.tags, store.jobs.tags()) == ("Model", 0.1, ("t",), ["t"])
    assert store.curves.tags("m") == ["loss"]
    assert store.jobs.get("gone").state == "queued"
    before = [store.jobs.get(job_id) for job_id in ("d", "m", "gone")]
    store.reindex(folder, read_job)
    assert [store.jobs.get(job_id) for job_id in ("d", "m", "gone")] == before
