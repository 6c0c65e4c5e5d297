"""What the supervisor does tick by tick, with workers that do what the test says."""

import threading
from pathlib import Path

import pytest
from jobs_doubles import HOST, machine, new_job
from supervised_studio import Studio

from ziggurat.entities import Heartbeat, JobChange, ResourceRequest, write_heartbeat
from ziggurat.errors import JobError, StorageError
from ziggurat.jobs.job_file import read_job_file
from ziggurat.layout import JobFolder


def test_a_job_from_its_submission_to_its_end(studio):
    studio.submit("a", owner="ann", tags=("x",))
    assert studio.job("a").state == "queued"
    studio.tick()
    job = studio.job("a")
    assert (job.state, job.pid, job.host, job.started) == ("running", 100_000_001, HOST, 1001.0)
    studio.executor.put(studio.folder("a"), 1)
    studio.executor.end(studio.folder("a"), "done", 0, "all epochs are done")
    studio.tick()
    job = studio.job("a")
    assert (job.state, job.reason, job.exit_code) == ("done", "all epochs are done", 0)
    assert (job.ended, job.pid) == (1001.0, None)
    assert [event.type for event in studio.store.events.taken["a"]] == ["attempt_started", "scalar", "attempt_ended"]


def test_what_people_say_of_a_job_is_in_its_folder(studio):
    studio.submit("a", owner="ann", tags=("x",))
    studio.supervisor.change("a", JobChange(notes="good", tags=("y",)))
    studio.supervisor.set_priority("a", 5)
    record = read_job_file(studio.folder("a"))
    assert record is not None
    assert (record.owner, record.notes, record.tags, record.priority) == ("ann", "good", ("y",), 5)
    assert studio.job("a").priority == 5


def test_a_job_needs_its_spec_and_what_it_depends_on(studio):
    new = new_job(studio.workspace, "a", depends_on=("gone",))
    with pytest.raises(JobError, match="There is no such job"):
        studio.supervisor.submit(new)
    JobFolder(Path(new.folder)).spec.unlink()
    with pytest.raises(JobError, match=r"The folder of a new job has a spec\.json"):
        studio.supervisor.submit(new)
    assert studio.states() == {}


def test_a_job_whose_folder_cannot_be_written_is_not_there(studio):
    new = new_job(studio.workspace, "a")
    (studio.folder("a") / "job.json").mkdir()
    with pytest.raises(StorageError, match="What is known of the job must be written"):
        studio.supervisor.submit(new)
    assert studio.states() == {}


def test_fifty_jobs_and_room_for_two(studio):
    for number in range(50):
        studio.submit(f"job{number:02d}")
    done = []
    while len(done) < 50:
        studio.tick()
        running = sorted(folder.name for folder in studio.executor.alive)
        assert len(running) == min(2, 50 - len(done))
        studio.executor.end(studio.folder(running[0]), "done")
        done.append(running[0])
    studio.tick()
    assert set(studio.states().values()) == {"done"}
    assert [name for name, _ in studio.executor.started] == [f"job{number:02d}" for number in range(50)]


def test_who_waits_knows_why(studio):
    for name in "abc":
        studio.submit(name)
    studio.tick()
    reason = "waits for one of 2 CPU slots: job a and job b"
    assert studio.job("c").reason == reason
    studio.supervisor.reorder("c", before=None)
    with pytest.raises(JobError, match=r"Only jobs in the queue are reordered \(received: job a is running"):
        studio.supervisor.reorder("c", before="a")


def test_the_order_can_be_changed(studio):
    for name in "abcde":
        studio.submit(name)
    studio.supervisor.reorder("e", before="a")
    studio.supervisor.reorder("a")
    studio.supervisor.set_priority("d", 1)
    studio.tick()
    assert [name for name, _ in studio.executor.started] == ["d", "e"]


def test_devices_are_handed_out_once(tmp_path):
    studio = Studio(tmp_path, devices=2)
    for name in "abc":
        studio.submit(name, needs=ResourceRequest(devices=1, slot="device"))
    studio.tick()
    assert studio.executor.started == [("a", (0,)), ("b", (1,))]
    assert studio.job("b").devices == (1,)
    studio.executor.end(studio.folder("a"), "done")
    studio.tick()
    assert studio.executor.started[2] == ("c", (0,))
    studio.supervisor.close()


# ---- stop, pause, resume, retry


def test_stopped_in_the_queue(studio):
    studio.submit("a")
    studio.supervisor.stop("a", "stopped by ann")
    studio.tick()
    assert (studio.job("a").state, studio.job("a").reason) == ("stopped", "stopped by ann")
    assert studio.executor.started == []


def test_paused_and_resumed(studio):
    studio.submit("a")
    studio.tick()
    studio.supervisor.pause("a", "paused by ann")
    assert studio.job("a").state == "stopping"
    assert JobFolder(studio.folder("a")).stop_request.read_text() == "paused by ann\n"
    studio.executor.end(studio.folder("a"), "stopped", 75, "paused by ann")
    studio.tick()
    job = studio.job("a")
    assert (job.state, job.paused, job.reason, job.exit_code) == ("stopped", True, "paused by ann", 75)
    studio.supervisor.resume("a")
    assert not studio.job("a").paused
    studio.tick()
    assert (studio.job("a").state, studio.job("a").exit_code) == ("running", None)


def test_a_stop_after_a_pause_is_a_stop(studio):
    studio.submit("a")
    studio.tick()
    studio.supervisor.pause("a")
    studio.supervisor.stop("a")
    studio.executor.end(studio.folder("a"), "stopped", 75)
    studio.tick()
    assert (studio.job("a").state, studio.job("a").paused) == ("stopped", False)


def test_one_that_was_done_before_it_could_pause_is_done(studio):
    studio.submit("a")
    studio.tick()
    studio.supervisor.pause("a")
    studio.executor.end(studio.folder("a"), "done")
    studio.tick()
    assert (studio.job("a").state, studio.job("a").paused) == ("done", False)


def test_stopped_at_once(studio):
    studio.submit("a")
    studio.tick()
    studio.supervisor.stop("a", "ended by ann", at_once=True)
    studio.tick()
    job = studio.job("a")
    assert (job.state, job.reason, job.exit_code) == ("stopped", "ended by ann", -9)


def test_somebody_asked_by_the_shell(studio):
    studio.submit("a")
    studio.tick()
    JobFolder(studio.folder("a")).stop_request.write_text("asked by the shell\n")
    studio.tick()
    assert (studio.job("a").state, studio.job("a").reason) == ("stopping", "asked by the shell")


def test_a_request_that_was_not_written_is_written_later(studio):
    studio.submit("a")
    studio.tick()
    studio.store.jobs.move("a", ("running",), "stopping", reason="asked")  # and killed before the request was written
    studio.tick()
    assert JobFolder(studio.folder("a")).stop_request.read_text() == "asked\n"


def test_an_old_request_does_not_end_a_new_attempt(studio):
    studio.submit("a")
    JobFolder(studio.folder("a")).stop_request.write_text("of yesterday\n")
    studio.tick()
    studio.tick()
    assert studio.job("a").state == "running"


def test_a_failure_and_a_retry(studio):
    studio.submit("a")
    studio.tick()
    studio.executor.end(studio.folder("a"), "failed", 4, "The data must stay.")
    studio.tick()
    assert (studio.job("a").state, studio.job("a").reason) == ("failed", "The data must stay.")
    studio.supervisor.retry("a")
    studio.tick()
    assert (studio.job("a").state, studio.job("a").reason) == ("running", "")


# ---- workers that are lost


def test_a_worker_that_is_killed(studio):
    studio.submit("a")
    studio.tick()
    studio.executor.end(studio.folder("a"), code=-9)
    studio.tick()
    job = studio.job("a")
    assert (job.state, job.health, job.exit_code) == ("failed", "lost", -9)
    assert job.reason.startswith("the worker ended without a word: it was killed by SIGKILL")
    assert studio.store.events.lost == ["a"]


def test_words_of_an_earlier_attempt_are_not_this_ones(studio):
    studio.submit("a")
    studio.tick()
    studio.executor.end(studio.folder("a"), "stopped", 75)
    studio.tick()
    studio.supervisor.resume("a")
    studio.tick(0.0)
    studio.executor.end(studio.folder("a"), code=-9)
    studio.tick(0.0)
    assert studio.job("a").state == "failed"


def test_a_worker_that_hangs_and_one_that_is_silent(studio):
    studio.submit("a")
    studio.tick()
    beat = {"pid": 1, "host": HOST, "phase": "training"}
    write_heartbeat(JobFolder(studio.folder("a")).heartbeat, Heartbeat(time=1200.0, step_began=1001.0, **beat))
    studio.tick(200)
    assert (studio.job("a").state, studio.job("a").health) == ("running", "hung")
    studio.tick(100)
    assert (studio.job("a").state, studio.job("a").health) == ("running", "silent")
    studio.executor.beat(studio.folder("a"))
    studio.tick()
    assert studio.job("a").health == "alive"


def test_a_worker_that_cannot_be_started(studio):
    studio.executor.refuses = "no space left on device"
    studio.submit("a")
    studio.tick()
    assert (studio.job("a").state, studio.job("a").reason) == (
        "failed", "The log of a job must be written (received: no space left on device)."
    )  # fmt: skip


def test_a_job_whose_folder_is_gone(studio):
    studio.submit("a")
    JobFolder(studio.folder("a")).spec.unlink()
    studio.tick()
    assert studio.job("a").reason == f"its folder {studio.folder('a')} has no spec.json"


def test_a_full_disk_starts_nothing_and_loses_nothing(tmp_path):
    studio = Studio(tmp_path, disk_free_bytes=1, disk_reserve_bytes=1_000_000_000)
    studio.submit("a")
    studio.tick()
    assert studio.job("a").reason == (
        "the disk has 1 bytes free and needs 1.0 GB: free some space, or lower the reserve"
    )
    studio.machine = machine()
    studio.tick()
    studio.store.events.is_full = True
    studio.executor.end(studio.folder("a"), "done")
    studio.tick()
    assert studio.job("a").state == "running"
    problem = "The store must be writable (received: no space left on device)."
    assert studio.supervisor.problems() == {"a": f"its worker has ended (done); this cannot be noted: {problem}"}
    studio.store.events.is_full = False
    studio.tick()
    assert studio.job("a").state == "done"
    assert studio.supervisor.problems() == {}
    studio.supervisor.close()


def test_a_job_deleted_while_it_is_attended_to_is_no_problem(studio, monkeypatch):
    studio.submit("a")
    studio.tick()
    studio.executor.end(studio.folder("a"), "done")
    jobs = studio.store.jobs
    listed = jobs.in_states
    row = jobs.rows["a"]
    monkeypatch.setattr(jobs, "in_states", lambda states: (listed(states), jobs.rows.pop("a", None))[0])
    studio.tick()
    assert studio.supervisor.problems() == {}
    jobs.rows["a"] = row


def test_one_job_that_cannot_be_attended_to_stops_no_other(studio):
    studio.submit("a")
    studio.submit("b")
    studio.tick()
    events = JobFolder(studio.folder("a")).events
    events.unlink()
    events.mkdir()
    studio.executor.end(studio.folder("b"), "done")
    studio.tick()
    assert studio.states() == {"a": "running", "b": "done"}
    assert "The events of a job are in a file" in studio.supervisor.problems()["a"]
    studio.executor.alive.pop(studio.folder("a"))
    studio.tick()
    assert studio.job("a").state == "running"
    studio.tick(61)
    assert studio.job("a").state == "failed"


def test_11_starting_twice_or_ending_before_start_is_harmless(studio):
    before = set(threading.enumerate())
    studio.supervisor.start(every_s=0.01)
    studio.supervisor.start(every_s=0.01)
    assert [each.name for each in set(threading.enumerate()) - before].count("supervisor") == 1
    studio.again()
    studio.supervisor.close()
    studio.supervisor.close()
