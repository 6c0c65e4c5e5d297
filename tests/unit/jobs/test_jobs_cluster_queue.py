"""A cluster with a queue of its own: why a job waits there, and what becomes of one whose node is taken back."""

from dataclasses import replace

import pytest
from jobs_doubles import FakeExecutor
from supervised_studio import Studio

from ziggurat.entities import EXIT_STOPPED
from ziggurat.events import AttemptStarted, CheckpointSaved, EventFile
from ziggurat.jobs import Running
from ziggurat.layout import JobFolder


class Cluster(FakeExecutor):
    waits = ""
    end_more = None
    adopted_by = ()

    def poll(self, worker):
        state = super().poll(worker)
        if isinstance(state, Running):
            return Running(self.waits)
        return replace(state, **(self.end_more or {}))

    def adopt(self, folder, heartbeat, worker=None):
        self.adopted_by = (*self.adopted_by, worker)
        return super().adopt(folder, heartbeat, worker)


@pytest.fixture
def studio(tmp_path):
    made = Studio(tmp_path, executor=Cluster())
    made.submit("j")
    made.tick()
    yield made
    made.supervisor.close()


def finish(studio, *, outcome="", code=0, said="", **more):
    studio.executor.end_more = more
    studio.executor.end(studio.folder("j"), outcome, code, said)
    studio.tick()
    return studio.job("j")


def test_why_a_job_waits_in_the_cluster_is_its_reason(studio):
    studio.executor.waits = "waits in Slurm's queue: Priority"
    studio.tick()
    assert (studio.job("j").state, studio.job("j").reason) == ("running", "waits in Slurm's queue: Priority")
    studio.executor.waits = ""
    studio.tick()
    assert (studio.job("j").state, studio.job("j").reason) == ("running", "")


def test_a_job_whose_node_is_taken_back_goes_on(studio):
    job = finish(studio, outcome="stopped", code=EXIT_STOPPED, said="received SIGTERM", goes_on=True)
    assert (job.state, job.worker.attempt, len(studio.executor.started)) == ("running", 2, 2)
    assert (job.reason, job.exit_code) == ("", None)
    assert studio.store.jobs.moved == [("j", "running"), ("j", "queued"), ("j", "running")], "it is never stopped"


def test_a_job_that_was_ended_without_a_word_goes_on_too(studio):
    job = finish(studio, code=-9, goes_on=True, reason="Slurm gave its node to another job")
    assert (job.state, job.worker.attempt) == ("running", 2)
    assert studio.store.events.lost == ["j"]


def saved(studio, attempt, first_step, *steps):
    """Let an attempt say at which step it began, unless it is the first, which has said it, and which it saved."""
    begun = AttemptStarted(
        time=1.0, attempt=attempt, pid=1, host="n", backend="null", release="1", global_step=first_step
    )
    file = EventFile(JobFolder(studio.folder("j")).events)
    file.write(*[begun][attempt == 1 :])
    for step in steps:
        file.write(CheckpointSaved(time=1.0, name=f"step-{step}", step=step, epoch=0))
    file.close()


@pytest.mark.parametrize(
    ("attempts", "state"),
    [
        ([(0,), (0,)], "failed"),
        ([(0, 5), (5, 5), (5, 5)], "failed"),
        ([(0, 5), (5,)], "running"),
        ([(0,), (0, 1)], "running"),
        ([(0,)], "running"),
    ],
)
def test_a_job_that_saves_no_new_step_is_not_sent_again(studio, attempts, state):
    for number, (first, *steps) in enumerate(attempts, 1):
        saved(studio, number, first, *steps)
    job = finish(studio, code=-15, goes_on=True, stuck="raise --time")
    assert (job.state, job.reason) == (state, "raise --time" if state == "failed" else "")


@pytest.mark.parametrize(("outcome", "state"), [("done", "done"), ("failed", "failed")])
def test_a_job_that_is_over_does_not_go_on(studio, outcome, state):
    assert finish(studio, outcome=outcome, code=0, goes_on=True).state == state


def test_a_job_that_was_asked_to_stop_does_not_go_on(studio):
    studio.supervisor.stop("j", "asked by ann")
    assert finish(studio, outcome="stopped", code=EXIT_STOPPED, said="asked by ann", goes_on=True).state == "stopped"


def test_the_executor_says_why_where_the_worker_did_not(studio):
    job = finish(studio, code=10, reason="it was canceled in Slurm")
    assert (job.state, job.reason) == ("failed", "it was canceled in Slurm")


def test_a_worker_that_has_ended_is_never_asked_for_again(studio):
    job = finish(studio, outcome="stopped", code=EXIT_STOPPED, said="enough")
    assert (job.state, job.worker.attempt, job.worker.opaque) == ("stopped", 1, {})
    studio.executor.adopted_by = ()
    studio.again()
    studio.supervisor.resume("j")
    studio.tick()
    assert [worker.opaque for worker in studio.executor.adopted_by if worker is not None] == [{}] * len(
        studio.executor.adopted_by
    )
    assert studio.job("j").worker.attempt == 2
