"""Jobs on a cluster without a cluster: nodes of this process, some of which stop to answer."""

import contextlib
import hashlib
import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from tests.waiting import PROCESS_S, wait_until
from ziggurat.cluster.bridge import Bridge
from ziggurat.cluster.followed_group import ranks_of
from ziggurat.cluster.followed_job import GoneError, Place, UnreachableError
from ziggurat.cluster.node_cache import NodeCache
from ziggurat.cluster.node_worker import NodeWorker, cache_of
from ziggurat.entities import Share
from ziggurat.entities.processes import began_at
from ziggurat.errors import JobError, UnknownNameError
from ziggurat.layout import present_paths, workspace_of
from ziggurat.records.manifest import Manifest, SplitNote, StoreNote
from ziggurat.records.schema import Schema
from ziggurat.testing.executor import STAND_IN

LONG_S = 60


class Gate:
    """Lets some calls of a node through, and the others when it is opened."""

    def __init__(self, free=2, node=None):
        self.calls, self._free, self._node, self._is_open = 0, free, node, threading.Event()
        self.open = self._is_open.set

    def pass_through(self, node):
        if node == (self._node or node):
            self.calls += 1
            if self.calls > self._free:
                self._is_open.wait(PROCESS_S)


class Remote:
    """A worker on a node that may not answer."""

    def __init__(self, cluster, node, worker):
        self.cluster, self.node, self.worker, self.is_removed = cluster, node, worker, False

    def __getattr__(self, name):
        def call(*values):
            if name in self.cluster.gates:
                self.cluster.gates[name].pass_through(self.node)
            if self.node in self.cluster.silent:
                raise UnreachableError(f"node {self.node} does not answer")
            if (self.node, name) in self.cluster.gone:
                raise GoneError(f"node {self.node} is gone")
            self.is_removed |= name == "remove"
            answer = getattr(self.worker, name)(*values)
            if f"{name} answered" in self.cluster.gates:
                self.cluster.gates[f"{name} answered"].pass_through(self.node)
            return answer

        return call


class Machines:
    """A cluster whose nodes are folders."""

    def __init__(self, folder):
        self.folder, self.silent, self.made = folder, set(), {}
        self.gates, self.released, self.gone = {}, [], set()
        self.sees_workspace, self.cache_bytes = True, 1 << 30
        script = folder / "stand_in.py"
        script.write_text(STAND_IN)
        self.command = (sys.executable, "-S", str(script))

    def hold(self, name, free=2, node=None):
        """Hold the calls of a method of workers, or their answers, after the first ones; ``node``: only there."""
        self.gates[name] = Gate(free, node)
        return self.gates[name]

    def nodes(self):
        return [{"name": "a", "problem": ""}]

    def place(self, node):
        return Place(node, self.folder / "studio", self.sees_workspace)

    def create(self, job_id, attempt, shares):
        for rank, share in ranks_of(shares):
            folder = self.folder / share.node
            worker = NodeWorker(folder, job_id, attempt, self.command, cache_bytes=self.cache_bytes, rank=rank)
            self.made[job_id, attempt, rank] = Remote(self, share.node, worker)
        return [self.made[job_id, attempt, rank] for rank, _ in ranks_of(shares)]

    def find(self, job_id, attempt, rank):
        return self.made.get((job_id, attempt, rank))

    def release(self, job_id, attempt):
        self.released.append((job_id, attempt))


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

    def make(name="job", **spec):
        folder = tmp_path / "studio" / "jobs" / name
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(spec))
        return folder

    return make


def start(bridge, folder, attempt=1, node="a", shares=None, **environment):
    fields = {"folder": str(folder), "attempt": attempt, "shares": shares or [[node, [], [0]]]}
    bridge.answer({"do": "start", "environment": environment, **fields})
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
    assert machines.made["job", 1, 0].is_removed
    assert not machines.made["job", 1, 0].worker.folder.exists()


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


def test_hyperparameters_of_a_page_reach_the_worker(bridge, machines, job):
    folder, made = job(for_s=LONG_S), bridge()
    (folder / "hyper.txt").write_text("learning_rate: 0.1\n")
    fields = start(made, folder)
    there = machines.made["job", 1, 0].worker.folder / "hyper.txt"
    wait_until((folder / "said.json").exists, PROCESS_S)
    assert there.read_text() == "learning_rate: 0.1\n"
    for text in ("learning_rate: 0.01\n", ""):
        (folder / "hyper.txt").write_text(text)
        wait_until(lambda: there.read_text() == text, PROCESS_S)  # noqa: B023
    made.answer({"do": "kill", **fields})
    wait_for(made, "ended")
    assert (folder / "hyper.txt").read_text() == "", "it is the studio's: the node's copy does not come back"


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


def test_a_start_on_a_node_that_is_gone_is_lost_at_once(bridge, machines, job):
    folder, made = job(), bridge()
    machines.gone.add(("a", "receive"))
    start(made, folder)
    wait_for(made, "lost")


def test_a_worker_that_may_have_begun_has_its_lease(bridge, machines, clock, job):
    folder, made = job(), bridge()
    gate = machines.hold("start", free=1)
    machines.gone.add(("a", "start"))
    start(made, folder)
    wait_until(lambda: gate.calls == 2, PROCESS_S)
    assert state(made) == {"state": "running"}
    clock.now += 61.0
    gate.open()
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
    old = machines.made["job", 1, 0].worker
    machines.silent.clear()
    (old.folder / "events.jsonl").write_text("of the superseded attempt\n")
    (folder / "spec.json").write_text("{}")
    start(made, folder, attempt=2, node="b")
    wait_for(made, "ended", attempt=2)
    assert not (folder / "events.jsonl").exists()
    assert state(made)["state"] == "lost"


def test_a_lease_ends_while_a_call_hangs(bridge, machines, clock, job):
    folder, made = job(for_s=LONG_S), bridge()
    start(made, folder)
    wait_until((folder / "said.json").exists, PROCESS_S)
    gate = machines.hold("exchange answered", free=0)
    there = machines.made["job", 1, 0].worker.folder
    (there / "events.jsonl").write_text("of the superseded attempt\n")
    wait_until(lambda: gate.calls, PROCESS_S)
    clock.now += 17.5
    wait_for(made, "lost")
    gate.open()
    made.close()
    assert not (folder / "events.jsonl").exists()
    assert state(made) == {"state": "lost"}


def test_a_silent_node_gets_the_request_when_it_answers(bridge, machines, job):
    folder, made = job(for_s=LONG_S), bridge()
    fields = start(made, folder)
    wait_until((folder / "said.json").exists, PROCESS_S)
    gate = machines.hold("kill", free=1)
    machines.silent.add("a")
    made.answer({"do": "kill", **fields})
    wait_until(lambda: gate.calls == 2, PROCESS_S)  # the first one was not answered
    gate.open()
    machines.silent.clear()
    assert wait_for(made, "ended")["exit_code"] == -9


def test_a_node_that_hangs_holds_up_no_other(bridge, machines, job):
    folder, made = job(for_s=LONG_S), bridge()
    start(made, folder, node="b")
    wait_until((folder / "said.json").exists, PROCESS_S)
    gate = machines.hold("is_started", node="a", free=0)
    for number in range(20):
        machines.create(f"job-{number}", 1, [Share("a", (), (0,))])
        fields = {"folder": str(job(f"job-{number}")), "attempt": 1, "shares": [["a", [], [0]]]}
        assert made.answer({"do": "adopt", **fields}) == {"is_there": True}
    wait_until(lambda: gate.calls >= 8, PROCESS_S)
    (machines.made["job", 1, 0].worker.folder / "events.jsonl").write_text("of the other node\n")
    wait_until((folder / "events.jsonl").exists, 5)


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
    there = machines.made["job", 1, 0].worker.folder
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
    place = machines.made["job", 1, 0].worker.folder.parents[1]
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


# ---- one job over several nodes

SEVERAL = [["a", [], [0, 1]], ["b", [], [2]]]


def said(machines, rank, attempt=1):
    path = machines.made["job", attempt, rank].worker.folder / "said.json"
    wait_until(path.exists, PROCESS_S)
    return json.loads(path.read_text())


def test_the_processes_of_a_job_find_each_other(bridge, machines, job):
    folder, made = job(for_s=LONG_S), bridge()
    fields = start(made, folder, shares=SEVERAL)
    found = [said(machines, rank)["environment"] for rank in range(3)]
    assert [(each["RANK"], each["LOCAL_RANK"], each["WORLD_SIZE"]) for each in found] == [
        ("0", "0", "3"), ("1", "1", "3"), ("2", "0", "3"),
    ]  # fmt: skip
    assert [(each["LOCAL_WORLD_SIZE"], each["GROUP_RANK"]) for each in found] == [("2", "0"), ("2", "0"), ("1", "1")]
    assert len({(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found}) == 1
    # A stop is asked of the first one; the others end with it.
    made.answer({"do": "stop", "reason": "the test asks", **fields})
    assert wait_for(made, "ended")["exit_code"] == 75
    assert [remote.is_removed for remote in machines.made.values()] == [True] * 3
    assert (folder / "ranks" / "2" / "log.txt").read_text().startswith("begun\n")
    made.answer({"do": "forget", **fields})
    assert machines.released == [("job", 1)]


def test_a_process_that_is_left_alone_is_told_so(bridge, machines, job):
    folder, made = job(for_s=LONG_S), bridge()
    note = "Resumed on 1 of 2 processes: node b is gone."
    start(made, folder, ZIGGURAT_RESUMED_ON=note)
    found = said(machines, 0)["environment"]
    assert (found["RANK"], found["WORLD_SIZE"], bool(found["MASTER_PORT"])) == ("0", "1", True)
    assert found["ZIGGURAT_RESUMED_ON"] == note


def test_a_process_that_fails_ends_the_others(bridge, machines, job):
    folder, made = job(for_s=LONG_S), bridge()
    start(made, folder, shares=SEVERAL)
    pids = [said(machines, rank)["pid"] for rank in range(3)]
    os.kill(pids[2], signal.SIGTERM)
    ended = wait_for(made, "ended")
    assert (ended["exit_code"], ended["reason"]) == (
        -15, "rank 2 on node b ended with exit code -15; its log may say why",
    )  # fmt: skip
    assert [began_at(pid) for pid in pids] == [None] * 3


def test_a_lost_node_ends_the_others_and_the_job_is_lost(bridge, machines, clock, job):
    folder, made = job(for_s=LONG_S), bridge()
    start(made, folder, shares=SEVERAL)
    pids = [said(machines, rank)["pid"] for rank in range(3)]
    machines.silent.add("b")
    clock.now += 18.0
    wait_for(made, "lost")
    assert [began_at(pid) for pid in pids[:2]] == [None] * 2


def test_a_process_on_a_node_that_hangs_holds_up_no_other(bridge, machines, job):
    folder, made = job(for_s=LONG_S), bridge()
    start(made, folder, shares=SEVERAL)
    for rank in range(3):
        said(machines, rank)
    gate = machines.hold("exchange", node="a", free=0)
    wait_until(lambda: gate.calls == 2, PROCESS_S)
    (machines.made["job", 1, 2].worker.folder / "events.jsonl").write_text("of the other node\n")
    wait_until((folder / "ranks" / "2" / "events.jsonl").exists, 5)


def test_a_job_that_cannot_start_on_one_node_starts_on_none(bridge, machines, job):
    folder, made = job(for_s=LONG_S), bridge()
    gate = machines.hold("start")
    fields = start(made, folder, shares=SEVERAL)
    wait_until(lambda: gate.calls > 2, PROCESS_S)
    machines.made["job", 1, 2].worker.kill = lambda: None
    machines.made["job", 1, 2].worker.start = lambda *_: (_ for _ in ()).throw(JobError("There is no such program."))
    pids = [said(machines, rank)["pid"] for rank in range(2)]
    gate.open()
    assert wait_for(made, "ended")["reason"].startswith("rank 2 on node b ended with exit code 1: There is no such")
    assert [began_at(pid) for pid in pids] == [None] * 2
    assert fields["attempt"] == 1


def test_another_bridge_adopts_all_processes_or_none(bridge, machines, job):
    folder, first = job(for_s=LONG_S), bridge()
    fields = start(first, folder, shares=SEVERAL)
    pids = [said(machines, rank)["pid"] for rank in range(3)]
    first.close()
    second = bridge()
    assert second.answer({"do": "adopt", **fields}) == {"is_there": True}
    assert state(second) == {"state": "running"}
    second.close()
    del machines.made["job", 1, 1]
    assert bridge().answer({"do": "adopt", **fields}) == {"is_there": False}
    wait_until(lambda: began_at(pids[0]) is None and began_at(pids[2]) is None, PROCESS_S)


def test_unknown_requests_and_jobs_are_refused(bridge, job):
    made = bridge()
    with pytest.raises(UnknownNameError, match="request to the bridge"):
        made.answer({"do": "dance"})
    with pytest.raises(JobError, match="does not follow this job"):
        made.answer({"do": "kill", "folder": "/jobs/x", "attempt": 1})
