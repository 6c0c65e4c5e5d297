"""Several executors as one, and what becomes of a job whose node does not answer."""

import os
import time
from dataclasses import replace

import pytest
from jobs_doubles import HOST, FakeExecutor, new_job
from supervised_studio import Studio

from ziggurat.entities import Heartbeat, NodeResources, Share, WorkerRef
from ziggurat.errors import JobError
from ziggurat.jobs import Ended, Executor, LocalExecutor, Running, SeveralExecutors
from ziggurat.jobs.executor import NotNowError


class Cluster(FakeExecutor):
    """An executor of another name, whose nodes may be lost."""

    lost = ""
    refuses = ""

    def nodes(self):
        return [replace(node, executor="ray") for node in self.machines if node.name != self.lost]

    def poll(self, worker):
        return Ended(None, lost_node=worker.node) if worker.node == self.lost else super().poll(worker)

    def start(self, job_folder, placement, environment, *, attempt):
        if self.refuses:
            raise NotNowError(self.refuses)
        self.alive.pop(job_folder, None)  # what a lost node does is nobody's
        worker = super().start(job_folder, placement, environment, attempt=attempt)
        return replace(worker, executor="ray", node=placement[0].node)

    def adopt(self, folder, heartbeat, worker=None):
        is_there = worker is not None and worker.executor == "ray" and worker.node != self.lost and folder in self.alive
        return worker if is_there else None


@pytest.fixture
def both(tmp_path):
    local = FakeExecutor(machines=[NodeResources(cpu_slots=0)])
    ray = Cluster(machines=[NodeResources(name="a"), NodeResources(name="b")])
    return local, ray, SeveralExecutors({"local": local, "ray": ray})


def test_nodes_are_those_of_all_and_the_first_keeps_its_name(both):
    _, ray, several = both
    assert isinstance(several, Executor)
    assert [(node.name, node.executor) for node in several.nodes()] == [(HOST, "local"), ("a", "ray"), ("b", "ray")]
    ray.machines[0] = NodeResources(name=HOST)
    assert [node.name for node in several.nodes()] == [HOST, "b"]


def test_a_worker_is_asked_of_the_executor_that_has_it(both, tmp_path):
    local, ray, several = both
    folder = tmp_path / "jobs" / "j"
    new_job(tmp_path, "j")
    worker = several.start(folder, (Share("b"),), {}, attempt=1)
    assert (worker.executor, ray.started, local.started) == ("ray", [("j", ())], [])
    assert several.adopt(folder, None, worker) == worker
    several.ask_to_stop(worker, "why")
    several.terminate(worker)
    assert several.poll(worker) == Running()
    several.kill(worker)
    assert several.poll(worker) == Ended(-9)


def test_a_node_that_is_not_there_starts_nothing(both, tmp_path):
    with pytest.raises(JobError, match=r"must be there, and of one executor \(received: a, here"):
        both[2].start(tmp_path, (Share("a"), Share("here")), {}, attempt=1)


def test_a_worker_of_an_executor_that_is_gone_is_an_error(both):
    worker = WorkerRef(executor="slurm", node="c", attempt=1, opaque={"job": 7})
    with pytest.raises(JobError, match="slurm; there are local, ray"):
        both[2].poll(worker)


@pytest.mark.parametrize("opaque", [{"actor": "j-1"}, {}], ids=["lost", "ended"])
@pytest.mark.parametrize("names", [("local", "ray"), ("local",)])
def test_a_superseded_worker_of_a_cluster_is_not_adopted(both, tmp_path, opaque, names):
    local = LocalExecutor(("python", "-m", "worker"), {})
    executors = {"local": local, "ray": both[1]}
    several = SeveralExecutors({name: executors[name] for name in names})
    # It lives on, and the newest heartbeat that arrived is its.
    beat = Heartbeat(pid=os.getpid(), host=HOST, time=time.time(), phase="training", epoch=1, global_step=2)
    worker = WorkerRef(executor="ray", node="b", attempt=1, opaque=opaque)
    assert several.adopt(tmp_path, beat, worker) is None
    assert several.adopt(tmp_path, beat, None).executor == "local"
    assert several.adopt(tmp_path, beat, replace(worker, executor="local", opaque={})).opaque["pid"] == os.getpid()


@pytest.fixture
def studio(tmp_path, both):
    made = Studio(tmp_path, executor=both[2])
    made.ray = both[1]
    yield made
    made.supervisor.close()


def tick(studio):
    studio.ray.now += 1.0
    studio.supervisor.tick(studio.ray.now)


def test_a_job_goes_on_elsewhere_when_its_node_does_not_answer(studio):
    studio.submit("j")
    tick(studio)
    job = studio.job("j")
    assert (job.state, job.placement, job.worker.attempt) == ("running", (Share("a"),), 1)
    studio.ray.lost = "a"
    tick(studio)
    job = studio.job("j")
    assert (job.state, job.placement, job.worker.attempt) == ("running", (Share("b"),), 2)
    assert studio.store.events.lost == ["j"]
    assert (job.reason, job.health, job.exit_code) == ("", "", None)
    assert studio.store.jobs.moved == [("j", "running"), ("j", "queued"), ("j", "running")], "it never ended"


def test_a_job_that_its_cluster_cannot_start_now_waits_on(studio):
    studio.submit("j")
    studio.ray.refuses = "The bridge to the cluster has ended."
    tick(studio)
    job = studio.job("j")
    assert (job.state, job.reason, job.started, job.placement) == ("queued", studio.ray.refuses, None, ())
    studio.ray.refuses = ""
    tick(studio)
    job = studio.job("j")
    assert (job.state, job.worker.attempt, job.placement) == ("running", 2, (Share("a"),))


def test_a_job_asked_to_stop_is_not_started_elsewhere(studio):
    studio.submit("j")
    tick(studio)
    studio.supervisor.stop("j", "asked by ann")
    studio.ray.lost = "a"
    tick(studio)
    job = studio.job("j")
    assert (job.state, job.reason) == ("stopped", "asked by ann, by force: its worker ended before it had saved")
    assert len(studio.ray.started) == 1


def test_a_cluster_that_is_away_for_a_moment_loses_nothing(studio):
    studio.submit("j")
    tick(studio)
    machines, studio.ray.machines = studio.ray.machines, []
    tick(studio)
    assert studio.job("j").state == "running"
    studio.ray.machines = machines
    studio.again()
    tick(studio)
    assert (studio.job("j").state, len(studio.ray.started)) == ("running", 1)
