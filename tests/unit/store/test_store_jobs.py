"""Jobs in the store: what was asked comes back, states change only from where they were, the queue has an order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from store_samples import new_job

from ziggurat.entities import JobChange, JobFilter, ResourceRequest
from ziggurat.errors import JobError, StorageError, UnknownNameError, UsageError
from ziggurat.store import Store


def test_a_job_comes_back_as_it_was_asked_for(store: Store) -> None:
    asked = new_job(
        "a", spec={"learning_rate": 0.1, "network": {"name": "lenet"}}, project="digits", owner="fred", group="g",
        parent="z", depends_on=("d",), needs=ResourceRequest(devices=2, device_indices=(0, 1), slot="device"),
        priority=3,
        framework="tensorflow", network="lenet", created=5.0, tags=("good", "old"), notes="Käse \N{SNOWMAN}",
    )  # fmt: skip
    job = store.jobs.add(asked)
    assert job == store.jobs.get("a") == store.jobs.find("a")
    for name in (
        "id",
        "spec",
        "project",
        "owner",
        "group",
        "parent",
        "depends_on",
        "needs",
        "priority",
        "tags",
        "notes",
    ):
        assert getattr(job, name) == getattr(asked, name)
    assert (job.state, job.position, job.attempt, job.scalars, job.devices) == ("queued", 1.0, 0, {}, ())
    assert [project.name for project, _ in store.projects.all()] == ["digits"]


def test_a_job_that_is_not_there(store: Store) -> None:
    assert store.jobs.find("nobody") is None
    store.jobs.delete("nobody")
    for call in (
        lambda: store.jobs.get("nobody"),
        lambda: store.jobs.move("nobody", ["queued"], "running"),
        lambda: store.jobs.note("nobody", health="alive"),
        lambda: store.jobs.change("nobody", JobChange(name="x"), 0.0),
        lambda: store.jobs.reorder("nobody"),
        lambda: store.curves.tags("nobody"),
    ):
        with pytest.raises(JobError, match=r"There is no job `nobody`"):
            call()


def test_an_id_is_given_once_and_a_name_often(store: Store) -> None:
    store.jobs.add(new_job("a", name="same"))
    store.jobs.add(new_job("b", name="same"))
    with pytest.raises(JobError, match="There is a job with the id"):
        store.jobs.add(new_job("a"))


def test_a_state_changes_only_from_where_it_was_expected(store: Store) -> None:
    store.jobs.add(new_job("a"))
    assert store.jobs.move("a", ["queued"], "running", devices=(1, 2), pid=4711, host="here", started=3.0)
    job = store.jobs.get("a")
    assert (job.state, job.devices, job.pid, job.host, job.started) == ("running", (1, 2), 4711, "here", 3.0)
    assert not store.jobs.move("a", ["queued", "done"], "failed", reason="late")
    assert store.jobs.get("a") == job
    error = {"error": "data", "message": "No file."}
    assert store.jobs.move("a", ["running"], "failed", error=error, exit_code=4, pid=None, reason="no file")
    job = store.jobs.get("a")
    assert (job.state, job.error, job.exit_code, job.pid, job.reason) == ("failed", error, 4, None, "no file")


def test_only_known_states_and_fields_are_written(store: Store) -> None:
    store.jobs.add(new_job("a"))
    with pytest.raises(UnknownNameError, match=r"`runing` is not a known state of a job. Did you mean `running`"):
        store.jobs.move("a", ["queued"], "runing")
    with pytest.raises(UnknownNameError, match="`state` is not a known changeable field"):
        store.jobs.note("a", state="done")
    with pytest.raises(UnknownNameError):
        store.jobs.move("a", ["queued"], "running", resaon="typing error")
    assert store.jobs.get("a").state == "queued"  # all of it or nothing


def test_people_change_names_notes_projects_and_tags(store: Store) -> None:
    store.jobs.add(new_job("a", tags=("x",), notes="old"))
    job = store.jobs.change("a", JobChange(name="new", tags=("y", "z", "y"), project="p", priority=4), 1.0)
    assert (job.name, job.notes, job.project, job.priority, job.tags) == ("new", "old", "p", 4, ("y", "z"))
    assert store.jobs.change("a", JobChange(notes=""), 1.0).notes == ""
    assert store.jobs.tags() == ["y", "z"]
    assert [job.id for job in store.jobs.page(JobFilter(text="NEW")).jobs] == ["a"]


def test_the_queue_goes_by_priority_then_by_position(store: Store) -> None:
    for job_id in "abcd":
        store.jobs.add(new_job(job_id))
    store.jobs.change("d", JobChange(priority=1), 0.0)
    queue = lambda: "".join(job.id for job in store.jobs.in_states(["queued"]))  # noqa: E731
    assert queue() == "dabc"
    store.jobs.reorder("c", before="a")
    assert queue() == "dcab"
    store.jobs.reorder("c")
    assert queue() == "dabc"
    store.jobs.reorder("a", before="a")
    assert queue() == "dabc"
    with pytest.raises(JobError):
        store.jobs.reorder("a", before="nobody")


def test_two_jobs_change_places_for_ever(sqlite_store: Store) -> None:
    for job_id in "abc":
        sqlite_store.jobs.add(new_job(job_id))
    for _ in range(60):  # halving a distance ends after some fifty times
        sqlite_store.jobs.reorder("c", before="b")
        sqlite_store.jobs.reorder("b", before="c")
    assert [job.id for job in sqlite_store.jobs.in_states(["queued"])] == ["a", "b", "c"]


def test_dependents_groups_and_counts(store: Store) -> None:
    store.jobs.add(new_job("data", kind="dataset"))
    store.jobs.add(new_job("m2", depends_on=("data",), group="sweep", created=2.0))
    store.jobs.add(new_job("m1", depends_on=("data", "other"), group="sweep", created=1.0))
    store.jobs.move("m2", ["queued"], "running")
    assert [job.id for job in store.jobs.dependents("data")] == ["m2", "m1"]
    assert [job.id for job in store.jobs.group("sweep")] == ["m1", "m2"]
    assert store.jobs.counts() == {"queued": 2, "running": 1, "stopping": 0, "done": 0, "failed": 0, "stopped": 0}
    store.jobs.delete("data")
    assert [job.id for job in store.jobs.dependents("data")] == ["m2", "m1"]  # what they wait for is gone
    store.jobs.note("m1", depends_on=("other",))
    assert [job.id for job in store.jobs.dependents("data")] == ["m2"]


def test_facts_of_data_sets_are_listed_and_sorted_by(store: Store) -> None:
    store.jobs.add(new_job("small", kind="dataset"))
    store.jobs.note("small", facts={"kind": "classification", "samples": {"train": 10}, "classes": ["a", "b"]})
    version = store.datasets.add_finished(new_job("large", kind="dataset", created=4.0), {"samples": {"train": 99}})
    assert (version.state, version.ended) == ("done", 4.0)
    assert store.datasets.facts(["small", "large", "nobody"]) == {
        "small": {"kind": "classification", "samples": {"train": 10}, "classes": ["a", "b"]},
        "large": {"samples": {"train": 99}},
    }
    page = store.jobs.page(JobFilter(sort="facts.samples.train", conditions=(("facts.samples.train", ">", 5),)))
    assert [job.id for job in page.jobs] == ["large", "small"]
    store.jobs.note("large", facts={})
    assert store.jobs.page(JobFilter(conditions=(("facts.samples.train", ">", 5),))).total == 1


def test_texts_and_numbers_that_no_index_and_no_column_holds(store: Store) -> None:
    store.jobs.add(new_job("a"))
    for change, words in (
        (JobChange(tags=("x" * 201,)), r"A tag must have at most 200 characters \(received: x{40}… of 201 characters"),
        (JobChange(project="x" * 10_000), "The name of a project must have at most 200"),
    ):
        with pytest.raises(UsageError, match=words):
            store.jobs.change("a", change, 0.0)
    with pytest.raises((UsageError, StorageError)):
        store.jobs.change("a", JobChange(name="half", priority=10**30), 0.0)
    assert store.jobs.get("a").name == "a"


def test_hostile_text_is_stored_as_text(store: Store) -> None:
    nasty = "'; DROP TABLE jobs; -- % _ \\ \x00 \ud800 \N{PILE OF POO}"
    job = store.jobs.add(new_job("a", name=nasty, tags=(nasty,), notes=nasty, spec={nasty: nasty, "n": 10**400}))
    cleaned = nasty.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    assert (job.name, job.tags, job.notes) == (cleaned, (cleaned,), cleaned)
    assert job.spec == {nasty: nasty, "n": 10**400}
    for wanted in (JobFilter(text="drop table"), JobFilter(text="%"), JobFilter(tag=nasty), JobFilter(sort=nasty),
                   JobFilter(conditions=((nasty, "=", nasty),)), JobFilter(text=nasty)):  # fmt: skip
        assert [found.id for found in store.jobs.page(wanted).jobs] == ["a"]
    assert store.jobs.page(JobFilter(text="%%")).total == 0
    assert store.jobs.page(replace(JobFilter(), limit=-1, offset=-5)).jobs == ()
    assert store.jobs.page(JobFilter(offset=10**30)).total == 1
