"""A rebuild of the store while jobs wait and run on a cluster: they need the same, and are where they were."""

from __future__ import annotations

import json
import os
from dataclasses import fields

import pytest

from ziggurat.entities import Device, Job, NewJob, NodeResources, ResourceRequest, WorkerRef
from ziggurat.events import AttemptEnded, AttemptStarted, EventFile
from ziggurat.jobs import Ended, Running, Supervisor
from ziggurat.layout import JobFolder
from ziggurat.settings import load_settings
from ziggurat.specs import parse_spec
from ziggurat.store import Store
from ziggurat.workspace.new_jobs import network_name
from ziggurat.workspace.studio.bootstrap import job_reader, reindex

ONE_GPU = ResourceRequest(devices=1, slot="device", datasets=("cells",))
TRAINING = {"kind": "train", "version": 1, "backend": "torch", "network": "lenet", "data": "digits"}
PROGRAM = {"kind": "program", "version": 1, "script": "train.py", "nodes": 2, "gpus": 1}


class Cluster:
    """An executor of nodes with two GPUs each, whose workers run until the test ends them."""

    def __init__(self, name, nodes):
        self.name, self.names, self.ended = name, nodes, {}

    def nodes(self):
        devices = tuple(Device(index=each, name="GPU", memory_bytes=1, free_bytes=1) for each in range(2))
        return [NodeResources(name=name, executor=self.name, devices=devices, cpu_slots=2) for name in self.names]

    def problem(self):
        return ""

    def start(self, job_folder, placement, environment, *, attempt):
        opaque = {"folder": str(job_folder), "job": job_folder.name}
        return WorkerRef(executor=self.name, node=placement[0].node, attempt=attempt, opaque=opaque)

    def poll(self, worker):
        return self.ended.get(worker.opaque["job"], Running("Slurm says: priority" if self.name == "slurm" else ""))

    def adopt(self, folder, heartbeat, worker=None):
        return worker if worker is not None and worker.opaque else None


@pytest.fixture(params=["ray", "slurm"])
def cluster(request):
    return Cluster(request.param, ("a", "b"))


@pytest.fixture
def settings(tmp_path):
    return load_settings({"HOME": "/"}, flags={"workspace": tmp_path / "studio"})


def submit(supervisor, workspace, job_id, content, needs, created):
    folder = JobFolder(workspace / "jobs" / job_id)
    folder.path.mkdir(parents=True)
    spec = parse_spec({**content, "name": job_id}, source="the test")
    folder.spec.write_text(json.dumps(spec.model_dump(mode="json")))
    supervisor.submit(
        NewJob(
            id=job_id, kind=spec.kind, name=job_id, folder=os.fspath(folder.path), spec=spec.model_dump(mode="json"),
            framework="torch" if spec.kind == "train" else "", network=network_name(spec), needs=needs, created=created,
        )
    )  # fmt: skip
    return folder


def advance(settings, cluster, act):
    """Let a supervisor work twice, and return what the store says then."""
    with Store.open(settings.workspace / "studio.db") as store:
        store.settle(settings.workspace)
        supervisor = Supervisor(store, cluster, settings.workspace)
        try:
            act(supervisor)
            for now in (1000.0, 1001.0):
                supervisor.tick(now)
            return values_of(store)
        finally:
            supervisor.close()


def values_of(store):
    """Return the fields of all jobs."""
    jobs = store.jobs.in_states(("queued", "running", "stopping", "stopped", "failed", "done"))
    return {job.id: {part.name: getattr(job, part.name) for part in fields(Job)} for job in jobs}


@pytest.fixture
def before(settings, cluster):
    """Return the fields of three jobs that run, the second over both nodes, and of one that waits for a GPU."""
    settings.workspace.mkdir()

    def fill(supervisor):
        asked = {
            "first": (TRAINING, ONE_GPU),
            "program": (PROGRAM, ResourceRequest(devices=1, slot="device", nodes=2)),
            "last": (TRAINING, ONE_GPU),
            "waits": (TRAINING, ONE_GPU),
            "small": ({**TRAINING, "devices": ["cpu:0"]}, ResourceRequest(slot="cpu", datasets=("cells",))),
        }
        for number, (job_id, (content, needs)) in enumerate(asked.items()):
            submit(supervisor, settings.workspace, job_id, content, needs, 900.0 + number)

    found = advance(settings, cluster, fill)
    assert [each["state"] for each in found.values()].count("running") == 4
    assert [len(found[name]["placement"]) for name in ("first", "program")] == [1, 2]
    assert found["waits"]["state"] == "queued"
    # One of them has begun to write, under the name of its machine; the others have not arrived yet.
    EventFile(JobFolder(settings.workspace / "jobs" / "last").events).write(
        AttemptStarted(time=1001.0, attempt=1, pid=7, host="machine-of-b", backend="torch", release="0")
    )
    return advance(settings, cluster, lambda supervisor: None)


@pytest.mark.parametrize("is_lost", [False, True], ids=["database kept", "database lost"])
def test_open_jobs_are_the_same_after_a_rebuild(settings, cluster, before, is_lost):
    if is_lost:
        (settings.workspace / "studio.db").unlink()
    report = reindex(settings, clock=lambda: 1002.0)
    assert (len(report.added), len(report.renewed)) == ((5, 0) if is_lost else (0, 5))
    with Store.open(settings.workspace / "studio.db") as store:
        after = values_of(store)
    again = advance(settings, cluster, lambda supervisor: None)
    for job_id, values in before.items():
        # What it waits for is said anew by the next plan and the next look at the cluster.
        assert after[job_id] | {"reason": ""} == values | {"reason": ""}, job_id
        assert again[job_id] == values, job_id


def test_an_attempt_is_counted_on_and_one_that_ended_is_over(settings, cluster, before):
    first = JobFolder(settings.workspace / "jobs" / "first")
    EventFile(first.events).write(
        AttemptStarted(time=1001.0, attempt=1, pid=7, host="b", backend="torch", release="0"),
        AttemptEnded(time=1002.0, outcome="stopped", exit_code=75, reason="paused by ann"),
    )
    before_end = job_reader(lambda: 1003.0)(first.path)
    assert (before_end.state, before_end.fields["reason"]) == ("stopped", "paused by ann")
    cluster.ended["first"] = Ended(75)
    assert advance(settings, cluster, lambda supervisor: None)["first"]["state"] == "stopped"
    (settings.workspace / "studio.db").unlink()
    reindex(settings)
    cluster.ended = {"last": Ended(75)}
    job = advance(settings, cluster, lambda supervisor: supervisor.resume("first"))["first"]
    assert (job["state"], job["worker"].attempt) == ("running", 2)


def test_the_worker_of_the_original_is_not_that_of_a_copy(settings, cluster, before, tmp_path):
    (settings.workspace / "jobs").rename(tmp_path / "jobs")
    copy = job_reader(lambda: 1003.0)(tmp_path / "jobs" / "first")
    assert (copy.state, copy.placed["worker"].attempt, copy.placed["worker"].opaque) == ("queued", 1, {})


@pytest.mark.parametrize(
    ("damage", "order"),
    [(None, ["c", "a", "b", "d"]), ("[7, {}]", ["a", "b", "c", "d"]), ("[", ["a", "b", "c", "d"])],
    ids=["whole", "of other values", "torn"],
)
def test_the_queue_keeps_the_order_that_a_user_gave_it(settings, damage, order):
    settings.workspace.mkdir()

    def fill(supervisor):
        for number, job_id in enumerate("abc"):
            submit(supervisor, settings.workspace, job_id, TRAINING, ONE_GPU, 900.0 + number)
        supervisor.reorder("c", before="a")
        submit(supervisor, settings.workspace, "d", TRAINING, ONE_GPU, 904.0)

    advance(settings, Cluster("ray", ()), fill)
    if damage is not None:
        (settings.workspace / "queue.json").write_text(damage)
    (settings.workspace / "studio.db").unlink()
    reindex(settings)
    with Store.open(settings.workspace / "studio.db") as store:
        assert [job.id for job in store.jobs.in_states(("queued",))] == order
