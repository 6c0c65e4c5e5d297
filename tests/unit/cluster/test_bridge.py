"""Jobs on a cluster without a cluster: nodes of this process, some of which stop to answer."""

import contextlib
import hashlib
import json
import sys
import threading
from pathlib import Path

import pytest

from tests.waiting import PROCESS_S, wait_until
from ziggurat.cluster.bridge import Bridge
from ziggurat.cluster.followed_job import Place, UnreachableError
from ziggurat.cluster.node_cache import NodeCache
from ziggurat.cluster.node_worker import NodeWorker, cache_of
from ziggurat.errors import JobError, UnknownNameError
from ziggurat.layout import present_paths, workspace_of
from ziggurat.records.manifest import Manifest, SplitNote, StoreNote
from ziggurat.records.schema import Schema
from ziggurat.testing.executor import STAND_IN

LONG_S = 60


class Gate:
    """Lets two calls through, and the others when it is opened."""

    def __init__(self):
        self.calls, self._is_open = 0, threading.Event()
        self.open = self._is_open.set

    def pass_through(self):
        self.calls += 1
        if self.calls > 2:
            self._is_open.wait(PROCESS_S)


class Remote:
    """A worker on a node that may not answer."""

    def __init__(self, cluster, node, worker):
        self.cluster, self.node, self.worker, self.is_removed = cluster, node, worker, False

    def __getattr__(self, name):
        def call(*values):
            if name in self.cluster.gates:
                self.cluster.gates[name].pass_through()
            if self.node in self.cluster.silent:
                raise UnreachableError(f"node {self.node} does not answer")
            self.is_removed |= name == "remove"
            return getattr(self.worker, name)(*values)

        return call


class Machines:
    """A cluster whose nodes are folders."""

    def __init__(self, folder):
        self.folder, self.silent, self.made = folder, set(), {}
        self.gates = {}
        self.sees_workspace, self.cache_bytes = True, 1 << 30
        script = folder / "stand_in.py"
        script.write_text(STAND_IN)
        self.command = (sys.executable, "-S", str(script))

    def hold(self, name):
        """Hold the calls of a method of workers after the first two."""
        self.gates[name] = Gate()
        return self.gates[name]

    def nodes(self):
        return [{"name": "a", "problem": ""}]

    def place(self, node):
        return Place(node, self.folder / "studio", self.sees_workspace)

    def create(self, node, job_id, attempt, devices):
        worker = NodeWorker(self.folder / node, job_id, attempt, self.command, cache_bytes=self.cache_bytes)
        self.made[job_id, attempt] = Remote(self, node, worker)
        return self.made[job_id, attempt]

    def find(self, job_id, attempt):
        return self.made.get((job_id, attempt))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    yield made
    for remote in made.made.values():
        with contextlib.suppress(JobError):
            remote.worker.kill()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def bridge(machines, clock):
    made = []

    def make():
        made.append(Bridge(machines, lease_s=15.0, every_s=0.02, clock=clock))
        return made[-1]

    yield make
    for gate in machines.gates.values():
        gate.open()
    for each in made:
        each.close()


@pytest.fixture
def job(tmp_path):
    """Return what makes the folder of a job in the studio."""

    def make(**spec):
        folder = tmp_path / "studio" / "jobs" / "job"
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(spec))
        return folder

    return make


def start(bridge, folder, attempt=1, node="a"):
    fields = {"folder": str(folder), "attempt": attempt, "node": node}
    bridge.answer({"do": "start", "devices": [], "environment": {}, **fields})
    return fields


def state(bridge, attempt=1):
    states = {number: state for _, number, state in bridge.answer({"do": "states"})["states"]}
    return states[attempt]


def load_content(spec):
    """Return a spec with paths as a worker sees them."""
    return present_paths(json.loads(spec.read_text()), workspace_of(spec.parent))


def wait_for(bridge, name, attempt=1):
    return wait_until(lambda: (found := state(bridge, attempt))["state"] == name and found, PROCESS_S)


def test_a_job_runs_on_its_node_and_arrives(bridge, machines, job):
    folder, made = job(exit_code=3), bridge()
    start(made, folder)
    assert wait_for(made, "ended")["exit_code"] == 3
    assert (folder / "log.txt").read_text() == "begun\n"
    assert machines.made["job", 1].is_removed
    assert not machines.made["job", 1].worker.folder.exists()


def test_a_folder_goes_along_without_a_torn_line(bridge, machines, job):
    folder, made = job(), bridge()
    (folder / "events.jsonl").write_text("one\ntwo\nthr")
    (folder / "checkpoints" / "step-1").mkdir(parents=True)
    (folder / "checkpoints" / "step-1" / "arrays").write_bytes(b"a" * 3_000_000)
    (folder / "empty").touch()
    start(made, folder)
    wait_for(made, "ended")
    assert (folder / "events.jsonl").read_text() == "one\ntwo\n"
    assert (folder / "checkpoints" / "step-1" / "arrays").read_bytes() == b"a" * 3_000_000


@pytest.mark.parametrize(("act", "code"), [("stop", 75), ("terminate", -15), ("kill", -9)])
def test_it_ends_as_it_is_asked(bridge, job, act, code):
    folder, made = job(for_s=LONG_S), bridge()
    fields = start(made, folder)
    wait_until((folder / "said.json").exists, PROCESS_S)
    made.answer({"do": act, "reason": "the test asks", **fields})
    assert wait_for(made, "ended")["exit_code"] == code


def test_one_that_cannot_be_started_says_why_in_its_log(bridge, machines, job):
    folder, made = job(), bridge()
    machines.command = ("/nowhere/python",)
    start(made, folder)
    assert wait_for(made, "ended")["exit_code"] == 1
    assert "could not be started on its node" in (folder / "log.txt").read_text()


def test_a_start_waits_for_a_slow_node(bridge, machines, clock, job):
    folder, made = job(), bridge()
    machines.silent.add("a")
    start(made, folder)
    assert state(made)["state"] == "running"
    machines.silent.clear()
    assert wait_for(made, "ended")["exit_code"] == 0


def test_a_start_on_a_node_that_never_answers_is_lost(bridge, machines, clock, job):
    folder, made = job(), bridge()
    machines.silent.add("a")
    start(made, folder)
    clock.now += 61.0
    wait_for(made, "lost")


def test_another_bridge_goes_on_where_the_first_one_was(bridge, job):
    folder, first = job(for_s=LONG_S), bridge()
    fields = start(first, folder)
    wait_until((folder / "said.json").exists, PROCESS_S)
    first.close()
    second = bridge()
    assert second.answer({"do": "adopt", **fields}) == {"is_there": True}
    assert second.answer({"do": "adopt", **fields | {"attempt": 7}}) == {"is_there": False}
    second.answer({"do": "stop", "reason": "the test asks", **fields})
    assert wait_for(second, "ended")["exit_code"] == 75


def test_a_node_that_is_silent_for_a_lease_loses_its_job(bridge, machines, clock, job):
    folder, made = job(for_s=LONG_S), bridge()
    start(made, folder)
    wait_until((folder / "said.json").exists, PROCESS_S)
    machines.silent.add("a")
    clock.now += 16.0
    answers = [state(made) for _ in range(20)]
    assert {each["state"] for each in answers} == {"running"}, "a lease and two seconds are not over"
    clock.now += 2.0
    wait_for(made, "lost")
    # The node comes back, and its worker has written more: nobody hears it, and the next attempt goes on.
    old = machines.made["job", 1].worker
    machines.silent.clear()
    (old.folder / "events.jsonl").write_text("of the superseded attempt\n")
    (folder / "spec.json").write_text("{}")
    start(made, folder, attempt=2, node="b")
    wait_for(made, "ended", attempt=2)
    assert not (folder / "events.jsonl").exists()
    assert state(made)["state"] == "lost"


def test_a_job_that_has_ended_is_forgotten_when_it_was_heard(bridge, job):
    folder, made = job(for_s=LONG_S), bridge()
    fields = start(made, folder)
    made.answer({"do": "forget", **fields})
    assert state(made)["state"] == "running", "it has not ended"
    made.answer({"do": "kill", **fields})
    wait_for(made, "ended")
    made.answer({"do": "forget", **fields})
    assert made.answer({"do": "states"}) == {"states": []}


# ---- nodes that do not see the workspace


@pytest.fixture
def dataset(tmp_path):
    """Return the folder of a dataset of 3 MB in the studio's workspace."""
    folder = tmp_path / "studio" / "datasets" / "cells-1"
    folder.mkdir(parents=True)
    store = b"record" * 500_000
    (folder / "train.lmdb").write_bytes(store)
    note = StoreNote(path="train.lmdb", record_format="lmdb", count=1, size_bytes=len(store), sha256="")
    splits = {"train": SplitNote(count=1, stores=(note,))}
    Manifest(name="cells", schema=Schema(kind="image-classification", class_names=("a", "b")), splits=splits).save(
        folder
    )
    (folder / "log.txt").write_text("how it was made")
    (folder / "test-openings.jsonl").write_text('{"time": 1}\n')
    return folder


def blind(machines):
    machines.sees_workspace = False
    return machines


def test_a_job_gets_a_copy_of_its_dataset(bridge, machines, job, dataset):
    folder, made = job(for_s=LONG_S, data=str(dataset)), bridge()
    fields = start(made, folder, node=blind(machines) and "a")
    wait_until((folder / "said.json").exists, PROCESS_S)
    there = machines.made["job", 1].worker.folder
    data = Path(load_content(there / "spec.json")["data"])
    assert data == there.parents[1] / "datasets" / "cells-1", "paths into the workspace mean the copies"
    assert sorted(path.name for path in data.iterdir()) == ["manifest.json", "test-openings.jsonl", "train.lmdb"]
    assert (data / "train.lmdb").read_bytes() == (dataset / "train.lmdb").read_bytes()
    assert cache_of(there.parents[2]).joinpath(Manifest.load(dataset).id).is_dir()
    # What the worker notes of the test split comes back.
    with (data / "test-openings.jsonl").open("a") as log:
        log.write('{"time": 2}\n')
    made.answer({"do": "stop", "reason": "the test asks", **fields})
    wait_for(made, "ended")
    assert (dataset / "test-openings.jsonl").read_text() == '{"time": 1}\n{"time": 2}\n'
    assert not there.parents[1].exists()


def test_a_model_comes_with_its_dataset_and_without_its_curves(bridge, machines, job, dataset, tmp_path):
    model = tmp_path / "studio" / "jobs" / "model"
    (model / "checkpoints" / "step-1").mkdir(parents=True)
    (model / "spec.json").write_text(json.dumps({"data": str(dataset)}))
    (model / "checkpoints" / "step-1" / "arrays.npz").write_bytes(b"weights")
    (model / "events.jsonl").write_text("{}\n")
    folder, made = job(for_s=LONG_S, model=str(model)), bridge()
    fields = start(made, folder, node=blind(machines) and "a")
    wait_until((folder / "said.json").exists, PROCESS_S)
    place = machines.made["job", 1].worker.folder.parents[1]
    assert (place / "jobs" / "model" / "checkpoints" / "step-1" / "arrays.npz").read_bytes() == b"weights"
    assert not (place / "jobs" / "model" / "events.jsonl").exists()
    assert (place / "datasets" / "cells-1" / "train.lmdb").exists()
    made.answer({"do": "kill", **fields})
    wait_for(made, "ended")


def test_data_outside_of_the_workspace_is_refused(bridge, machines, job, tmp_path):
    (tmp_path / "images").mkdir()
    folder, made = job(data=str(tmp_path / "images")), bridge()
    start(made, folder, node=blind(machines) and "a")
    ended = wait_for(made, "ended")
    assert ended["reason"].startswith(
        f"`{tmp_path}/images` lies outside of the workspace `{tmp_path}/studio`, and node a"
    )


def test_a_full_node_says_so_until_there_is_room(bridge, machines, job, dataset):
    machines.cache_bytes = 4_000_000
    folder, made = job(data=str(dataset)), bridge()
    held = NodeCache(cache_of(machines.folder / "a"), 4_000_000)
    held.take("other", 2_000_000, machines.folder / "reader")
    held.write("x", 0, b"x" * 2_000_000)
    held.finish(
        {"x": (2_000_000, hashlib.blake2b(b"x" * 2_000_000, digest_size=16).digest())}, machines.folder / "reader"
    )
    fields = start(made, folder, node=blind(machines) and "a")
    wait_until(lambda: "waits" in state(made), PROCESS_S)
    text = "node a has 2.0 MB of room for copies, and dataset cells has 3.0 MB: it waits until a job there ends"
    assert state(made) == {"state": "running", "waits": text}
    made.answer({"do": "stop", "reason": "asked by ann", **fields})
    assert wait_for(made, "ended") == {"state": "ended", "exit_code": 75, "reason": "asked by ann"}


def test_a_copy_says_how_far_it_is_and_begins_anew(bridge, machines, clock, job, dataset):
    folder, first = job(for_s=LONG_S, data=str(dataset)), bridge()
    gate = blind(machines).hold("copy")
    fields = start(first, folder)
    wait_until(lambda: gate.calls > 2, PROCESS_S)
    assert state(first) == {"state": "running", "waits": "copies dataset cells to node a, 35\u202f%"}
    second = bridge()  # the studio was killed: the job goes back into the queue
    assert second.answer({"do": "adopt", **fields}) == {"is_there": True}
    assert wait_for(second, "lost")["reason"] == "the studio ended while it sent the job to node a"
    gate.open()


def test_unknown_requests_and_jobs_are_refused(bridge, job):
    made = bridge()
    with pytest.raises(UnknownNameError, match="request to the bridge"):
        made.answer({"do": "dance"})
    with pytest.raises(JobError, match="does not follow this job"):
        made.answer({"do": "kill", "folder": "/jobs/x", "attempt": 1})
