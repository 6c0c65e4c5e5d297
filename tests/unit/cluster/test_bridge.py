"""Jobs on a cluster without a cluster: nodes of this process, some of which stop to answer."""

import contextlib
import json
import sys

import pytest

from tests.waiting import PROCESS_S, wait_until
from ziggurat.cluster.bridge import Bridge
from ziggurat.cluster.followed_job import UnreachableError
from ziggurat.cluster.node_worker import NodeWorker
from ziggurat.errors import JobError, UnknownNameError
from ziggurat.testing.executor import STAND_IN

LONG_S = 60


class Remote:
    """A worker on a node that may not answer."""

    def __init__(self, cluster, node, worker):
        self.cluster, self.node, self.worker, self.is_removed = cluster, node, worker, False

    def __getattr__(self, name):
        def call(*values):
            if self.node in self.cluster.silent:
                raise UnreachableError(f"node {self.node} does not answer")
            self.is_removed |= name == "remove"
            return getattr(self.worker, name)(*values)

        return call


class Machines:
    """A cluster whose nodes are folders."""

    def __init__(self, folder):
        self.folder, self.silent, self.made = folder, set(), {}
        script = folder / "stand_in.py"
        script.write_text(STAND_IN)
        self.command = (sys.executable, "-S", str(script))

    def nodes(self):
        return [{"name": "a", "problem": ""}]

    def create(self, node, job_id, attempt, devices):
        worker = NodeWorker(self.folder / node, job_id, attempt, self.command)
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
    for each in made:
        each.close()


@pytest.fixture
def job(tmp_path):
    """Return what makes the folder of a job in the studio."""

    def make(**spec):
        folder = tmp_path / "studio" / "job"
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(spec))
        return folder

    return make


def start(bridge, folder, attempt=1, node="a"):
    fields = {"folder": str(folder), "attempt": attempt}
    bridge.answer({"do": "start", "node": node, "devices": [], "environment": {}, **fields})
    return fields


def state(bridge, attempt=1):
    states = {number: state for _, number, state in bridge.answer({"do": "states"})["states"]}
    return states[attempt]


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


def test_unknown_requests_and_jobs_are_refused(bridge, job):
    made = bridge()
    with pytest.raises(UnknownNameError, match="request to the bridge"):
        made.answer({"do": "dance"})
    with pytest.raises(JobError, match="does not follow this job"):
        made.answer({"do": "kill", "folder": "/jobs/x", "attempt": 1})
