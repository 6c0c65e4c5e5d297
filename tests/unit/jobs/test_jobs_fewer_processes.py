"""Trainings over several nodes in the queue of a studio after nodes are gone: when they resume on fewer processes."""

import json

import pytest
from jobs_doubles import FakeExecutor
from supervised_studio import Studio

from ziggurat.entities import NodeResources, ResourceRequest
from ziggurat.jobs.fewer_processes import SETTLED_S
from ziggurat.layout import JobFolder

NOTE = "Resumed on 1 of 2 processes: node b is gone."


class Cluster(FakeExecutor):
    told = ()

    def start(self, job_folder, placement, environment, *, attempt):
        self.told = (*self.told, ([share.node for share in placement], environment.get("ZIGGURAT_RESUMED_ON", "")))
        return super().start(job_folder, placement, environment, attempt=attempt)

    def have(self, *names):
        own = NodeResources(name="studio", cpu_slots=0)
        self.machines = [own, *(NodeResources(name=name, executor="ray", dataset_slots=0) for name in names)]


@pytest.fixture
def studio(tmp_path):
    executor = Cluster()
    executor.have("a", "b")
    made = Studio(tmp_path, executor=executor)
    made.submit("j", needs=ResourceRequest(nodes=2), spec={"batch_size": 64})
    made.tick()
    made.store.jobs.note("j", attempt=1)
    yield made
    made.supervisor.close()


def lose(studio, *, steps):
    """Let the job end without a word, after it has saved at some steps, and its node b with it."""
    folder = JobFolder(studio.folder("j"))
    for step in steps:
        (folder.checkpoints / f"step-{step:010d}").mkdir(parents=True)
    studio.executor.end(folder.path, code=-9)
    studio.executor.have("a")
    studio.tick()
    studio.supervisor.resume("j")
    studio.tick()


def test_a_lost_job_resumes_on_fewer_once_the_nodes_stay(studio):
    lose(studio, steps=(6,))
    assert studio.job("j").state == "queued"
    assert "resumes on 1 of 2 processes at about" in studio.job("j").reason
    studio.tick(SETTLED_S - 2)
    assert studio.job("j").state == "queued"
    studio.tick(2)
    assert studio.executor.told == ((["a", "b"], ""), (["a"], NOTE))
    assert studio.job("j").state == "running"
    attempt = json.loads(JobFolder(studio.folder("j")).attempt.read_text())
    assert [share["node"] for share in attempt["placement"]] == ["a"]


def test_a_node_that_comes_back_soon_is_used(studio):
    lose(studio, steps=(6,))
    studio.tick(SETTLED_S - 2)
    studio.executor.have("a", "c")
    studio.tick(10)
    assert studio.executor.told == ((["a", "b"], ""), (["a", "c"], ""))


def test_each_node_that_comes_is_given_time(studio):
    lose(studio, steps=(6,))
    studio.store.jobs.note("j", needs=ResourceRequest(nodes=4))
    studio.tick(SETTLED_S - 2)
    studio.executor.have("a", "c")
    studio.tick(SETTLED_S - 2)
    studio.tick(SETTLED_S - 2)
    assert studio.job("j").state == "queued"
    studio.tick(4)
    assert studio.executor.told[1] == (["a", "c"], "Resumed on 2 of 4 processes: node b is gone.")


def test_a_job_without_a_checkpoint_waits_for_all_nodes(studio):
    lose(studio, steps=())
    studio.tick(10 * SETTLED_S)
    assert studio.job("j").state == "queued"
    assert "resumes" not in studio.job("j").reason


def test_all_nodes_are_used_again_at_the_next_resume(studio):
    lose(studio, steps=(6,))
    studio.tick(SETTLED_S)
    studio.executor.have("a", "b")
    studio.tick(SETTLED_S)
    assert len(studio.executor.told) == 2, "it goes on as it is"
    studio.supervisor.stop("j")
    studio.executor.end(studio.folder("j"), "stopped", 75, "enough")
    studio.tick()
    studio.supervisor.resume("j")
    studio.tick()
    assert studio.executor.told[2] == (["a", "b"], "")
