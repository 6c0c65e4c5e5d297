"""A worker that was asked to stop and does not is ended by force, in stages: each after a time without progress."""

import pytest
from jobs_doubles import HOST

from ziggurat.entities import Heartbeat, write_heartbeat
from ziggurat.layout import JobFolder


@pytest.fixture
def stopping(studio):
    """A studio with a job whose worker pays no attention."""
    studio.submit("a")
    studio.tick()
    studio.supervisor.stop("a", "stopped by ann")
    studio.tick()
    return studio


def progress(studio, **values):
    beat = Heartbeat(pid=studio.executor.alive[studio.folder("a")], host=HOST, time=studio.executor.now, **values)
    write_heartbeat(JobFolder(studio.folder("a")).heartbeat, beat)


def test_a_deaf_worker_gets_sigterm_and_is_killed(stopping):
    stopping.tick(119)
    assert stopping.executor.terminated == []
    stopping.tick(1)
    assert stopping.executor.terminated == ["a"]
    stopping.tick(29)
    assert stopping.states() == {"a": "stopping"}
    stopping.tick(1)
    stopping.tick()
    job = stopping.job("a")
    assert (job.state, job.exit_code) == ("stopped", -9)
    assert job.reason == "stopped by ann, by force: its worker did not end when it was asked to"


def test_the_reason_says_when_force_is_used(stopping):
    assert stopping.job("a").reason == "stopped by ann"  # nearly all workers end within seconds
    stopping.tick(6)
    assert stopping.job("a").reason.startswith("stopped by ann; will be ended by force at ")
    assert stopping.supervisor.forced_end("a") == stopping.executor.now - 6 + 120
    assert JobFolder(stopping.folder("a")).stop_request.read_text() == "stopped by ann\n"


def test_progress_puts_the_force_off(stopping):
    for step in range(1, 10):
        stopping.tick(100)
        progress(stopping, phase="training", step_began=float(step), global_step=step)
    stopping.tick()
    assert stopping.executor.terminated == []


def test_a_checkpoint_that_is_written_is_progress(stopping):
    file = JobFolder(stopping.folder("a")).checkpoints / ".tmp-step-00000010" / "arrays.npz"
    file.parent.mkdir(parents=True)
    for size in range(1, 10):
        stopping.tick(100)
        file.write_bytes(bytes(size))
    stopping.tick()
    assert stopping.executor.terminated == []


def test_slow_steps_get_the_time_that_they_need(stopping):
    progress(stopping, phase="training", step_began=1.0, global_step=3, usual_step_s=200.0)
    stopping.tick()
    stopping.tick(590)
    assert stopping.executor.terminated == []
    stopping.tick(10)
    assert stopping.executor.terminated == ["a"]


def test_asked_again_the_next_stage_comes_at_once(stopping):
    stopping.supervisor.stop("a", "stopped by bob")
    stopping.tick()
    assert stopping.executor.terminated == ["a"]
    assert stopping.states() == {"a": "stopping"}
    stopping.supervisor.stop("a", "stopped by bob")
    stopping.tick()
    stopping.tick()
    assert stopping.job("a").state == "stopped"
    assert stopping.job("a").reason.startswith("stopped by ann, by force")


def test_stopped_at_once_there_is_no_grace(stopping):
    stopping.supervisor.stop("a", "stopped at once by ann", at_once=True)
    stopping.tick()
    assert (stopping.job("a").state, stopping.job("a").reason) == ("stopped", "stopped at once by ann")


def test_another_studio_goes_on_with_the_force(stopping):
    stopping.tick(100)
    stopping.again()
    stopping.tick()
    stopping.tick(6)
    assert stopping.job("a").reason.startswith("stopped by ann; will be ended by force at ")
    stopping.tick(120)
    stopping.tick(30)
    stopping.tick()
    assert stopping.job("a").state == "stopped"
    assert stopping.job("a").reason == "stopped by ann, by force: its worker did not end when it was asked to"


def test_killed_and_the_studio_too_it_was_still_stopped(stopping):
    stopping.supervisor.close()
    stopping.executor.end(stopping.folder("a"), code=-9)
    stopping.again()
    stopping.tick()
    stopping.tick()
    job = stopping.job("a")
    assert (job.state, job.reason) == ("stopped", "stopped by ann, by force: its worker ended before it had saved")


def test_a_forced_job_frees_its_place_and_resumes(studio):
    for name in ("a", "b", "c"):
        studio.submit(name)
    studio.tick()
    assert studio.states() == {"a": "running", "b": "running", "c": "queued"}
    studio.supervisor.pause("a", "paused by ann")
    for passed_s in (1, 120, 30, 1, 1):
        studio.tick(passed_s)
    assert studio.states() == {"a": "stopped", "b": "running", "c": "running"}
    assert studio.job("a").paused
    studio.executor.end(studio.folder("b"), "done")
    studio.supervisor.resume("a")
    studio.tick()
    studio.tick()
    assert studio.job("a").state == "running"
