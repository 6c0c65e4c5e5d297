"""What the supervisor does tick by tick, with workers that do what the test says."""

from pathlib import Path

import pytest
from jobs_doubles import HOST, FakeExecutor, MemoryStore, machine, new_job

from ziggurat.entities import Heartbeat, JobChange, Needs, write_heartbeat
from ziggurat.errors import JobError, StorageError
from ziggurat.events import CheckpointRemoved
from ziggurat.jobs import Retention, Supervisor
from ziggurat.jobs.job_file import read_job_file
from ziggurat.layout import JobFolder


class Studio:
    """A supervisor over doubles; another one takes its place where a test says so."""

    def __init__(self, workspace, retention=None, **resources):
        self.retention = retention
        self.workspace = workspace
        self.store = MemoryStore()
        self.executor = FakeExecutor()
        self.machine = machine(**({"cpu_slots": 2} | resources))
        self.supervisor = self._new()

    def _new(self):
        return Supervisor(
            self.store, self.executor, self.workspace, resources=lambda: self.machine, retention=self.retention
        )

    def again(self):
        self.supervisor.close()
        self.supervisor = self._new()

    def tick(self, passed_s=1.0):
        self.executor.now += passed_s
        self.supervisor.tick(self.executor.now)

    def submit(self, job_id, /, **changes):
        return self.supervisor.submit(new_job(self.workspace, job_id, **changes))

    def folder(self, name):
        return self.workspace / "jobs" / name

    def job(self, name):
        return self.store.jobs.get(name)

    def states(self):
        return {name: job.state for name, job in self.store.jobs.rows.items()}


@pytest.fixture
def studio(tmp_path):
    made = Studio(tmp_path)
    yield made
    made.supervisor.close()


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
    reason = "2 jobs at a time run on the processors; now job a and job b"
    assert studio.job("c").reason == reason
    assert studio.supervisor.waiting()["c"].blockers == ("a", "b")
    studio.supervisor.reorder("c", before=None)
    with pytest.raises(JobError, match=r"Only jobs in the queue are reordered\. Received: job a is running"):
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
        studio.submit(name, needs=Needs(devices=1, slot="device"))
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
        "failed", "The log of a job must be written. Received: no space left on device."
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
    assert studio.supervisor.problems() == {"a": "The store must be writable. Received: no space left on device."}
    studio.store.events.is_full = False
    studio.tick()
    assert studio.job("a").state == "done"
    assert studio.supervisor.problems() == {}
    studio.supervisor.close()


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


# ---- a new supervisor


def test_a_new_supervisor_adopts_what_is_alive(studio):
    studio.submit("a")
    studio.tick()
    studio.executor.put(studio.folder("a"), 1)
    studio.again()
    studio.executor.put(studio.folder("a"), 2)
    studio.tick()
    assert studio.job("a").state == "running"
    studio.executor.end(studio.folder("a"), "done")
    studio.tick()
    assert studio.job("a").state == "done"
    assert len(studio.store.events.taken["a"]) == 4


def test_it_notes_what_ended_meanwhile(studio):
    for name in "ab":
        studio.submit(name)
    studio.tick()
    studio.supervisor.close()
    studio.executor.end(studio.folder("a"), "done")
    studio.executor.alive.pop(studio.folder("b"))
    studio.again()
    studio.tick()
    assert studio.states() == {"a": "done", "b": "failed"}
    assert studio.job("b").reason == "the worker ended without a word: it was killed, or its machine went down"


@pytest.mark.parametrize(("state", "after"), [("running", "queued"), ("stopping", "stopped")])
def test_killed_before_the_worker_was_started(studio, state, after):
    studio.submit("a")
    studio.store.jobs.move("a", ("queued",), state, started=1000.5, host=HOST)
    studio.machine = machine(cpu_slots=0)
    studio.tick()
    assert studio.job("a").state == after


def test_killed_right_after_the_worker_was_started(studio):
    studio.submit("a")
    studio.tick()
    studio.store.jobs.note("a", pid=None)
    studio.again()
    studio.tick()
    assert (studio.job("a").state, studio.job("a").pid) == ("running", 100_000_001)


def test_a_worker_on_another_machine_is_not_taken_for_lost(studio):
    studio.submit("a")
    studio.store.jobs.move("a", ("queued",), "running", started=1000.0, host="elsewhere", pid=7)
    write_heartbeat(JobFolder(studio.folder("a")).heartbeat, Heartbeat(pid=7, host="elsewhere", time=1000.5))
    studio.tick()
    assert (studio.job("a").state, studio.job("a").health) == ("running", "alive")
    studio.tick(100)
    assert (studio.job("a").state, studio.job("a").health) == ("running", "silent")


@pytest.mark.parametrize("state", ["queued", "stopped", "failed"])
def test_a_worker_that_the_shell_started_is_adopted(studio, state):
    studio.submit("a")
    studio.store.jobs.move("a", ("queued",), state)
    studio.executor.start(studio.folder("a"), (), {})
    studio.tick()
    assert studio.job("a").state == "running"
    assert len(studio.executor.started) == 1


def test_a_worker_that_the_shell_starts_in_the_queue_is_not_started_twice(studio):
    for name in "abc":
        studio.submit(name)
    studio.tick()
    studio.executor.start(studio.folder("c"), (), {})
    studio.executor.end(studio.folder("a"), "done")
    studio.tick()
    assert studio.job("c").state == "running"


def test_an_end_that_the_shell_brought_about_is_found(studio):
    studio.submit("a")
    studio.tick()
    studio.executor.end(studio.folder("a"), "stopped", 75)
    studio.tick()
    studio.executor.now += 10
    studio.executor.start(studio.folder("a"), (), {})
    studio.executor.end(studio.folder("a"), "done")
    studio.again()
    studio.tick()
    assert studio.job("a").state == "done"


# ---- deleting


def test_a_deleted_job_is_gone(studio):
    studio.submit("a")
    studio.supervisor.delete("a", now=1000.0)
    assert studio.states() == {}
    assert not studio.folder("a").exists()
    studio.tick()
    studio.supervisor.close()
    assert list((studio.workspace / ".trash").iterdir()) == []


def test_a_running_job_is_deleted_by_force_only(studio):
    studio.submit("a")
    studio.tick()
    with pytest.raises(JobError, match="Stop it first, or delete it by force"):
        studio.supervisor.delete("a")
    studio.supervisor.delete("a", force=True)
    assert studio.executor.alive == {}
    assert studio.states() == {}
    studio.tick()


def test_a_data_set_in_use_is_kept(studio):
    studio.submit("d", kind="dataset", name="mnist", needs=Needs(slot="dataset"))
    studio.submit("m", name="lenet", depends_on=("d",))
    studio.tick()
    studio.executor.end(studio.folder("d"), "done")
    studio.tick()
    with pytest.raises(JobError) as error:
        studio.supervisor.delete("d")
    assert str(error.value) == (
        "What other jobs use is kept: the data set mnist cannot be deleted. Received: it is used by job lenet "
        "(running). Delete those first."
    )
    with pytest.raises(JobError, match="Stop those first"):
        studio.supervisor.delete("d", force=True)
    studio.executor.end(studio.folder("m"), "done")
    studio.tick()
    with pytest.raises(JobError, match=r"it is used by job lenet \(done\)"):
        studio.supervisor.delete("d")
    assert studio.folder("d").exists()
    studio.supervisor.delete("m")
    studio.supervisor.delete("d")
    assert studio.states() == {}


def test_killed_in_the_middle_of_a_deletion(studio):
    studio.submit("a")
    studio.submit("b")
    trash = studio.workspace / ".trash"
    trash.mkdir()
    studio.folder("a").rename(trash / "a.1000")  # and killed before the store knew
    studio.again()
    studio.tick()
    assert studio.states() == {"b": "running"}


def test_a_folder_that_cannot_be_moved_keeps_its_job(studio):
    studio.submit("a")
    (studio.workspace / ".trash").write_text("")
    with pytest.raises(StorageError, match="A job that is deleted is moved from"):
        studio.supervisor.delete("a")
    assert studio.folder("a").exists()
    assert studio.job("a").state == "queued"


def test_a_worker_on_another_machine_is_asked_by_its_folder(studio):
    studio.submit("a")
    studio.store.jobs.move("a", ("queued",), "running", started=1000.0, host="elsewhere", pid=7)
    studio.supervisor.stop("a", "enough")
    assert JobFolder(studio.folder("a")).stop_request.read_text() == "enough\n"
    with pytest.raises(JobError, match="A worker is ended at once on its own machine"):
        studio.supervisor.stop("a", at_once=True)


# ---- space


def test_checkpoints_that_need_not_be_kept_are_removed_when_the_job_has_ended(tmp_path):
    studio = Studio(tmp_path, retention=Retention(keep_last=1))
    for name in "ab":
        studio.submit(name)
    studio.tick()
    for name in "ab":
        for step in (1, 2, 3):
            (JobFolder(studio.folder(name)).checkpoints / f"step-{step:08d}").mkdir(parents=True)
        (JobFolder(studio.folder(name)).checkpoints / "names.json").write_text('{"best": "step-00000001"}')
    studio.executor.end(studio.folder("a"), "done")
    studio.tick()
    assert studio.supervisor.tidy(2000.0) == {"a": ["step-00000002"]}
    assert studio.supervisor.tidy(2000.0) == {}
    told = studio.store.events.taken["a"][-1]
    assert isinstance(told, CheckpointRemoved)
    assert told.reason == "the newest 1 and those with a name are kept"
    left = {path.name for path in JobFolder(studio.folder("a")).checkpoints.iterdir()}
    assert left == {"step-00000001", "step-00000003", "names.json"}
    studio.supervisor.close()


def test_names_that_cannot_be_read_keep_everything(tmp_path):
    studio = Studio(tmp_path, retention=Retention(keep_last=1))
    studio.submit("a")
    studio.supervisor.stop("a")
    for step in (1, 2):
        (JobFolder(studio.folder("a")).checkpoints / f"step-{step:08d}").mkdir(parents=True)
    (JobFolder(studio.folder("a")).checkpoints / "names.json").write_text("{")
    assert studio.supervisor.tidy(2000.0) == {}
    studio.supervisor.close()


# ---- telling


def test_changes_are_told(studio):
    subscription = studio.supervisor.hub.subscribe(["jobs"])
    studio.submit("a")
    studio.tick()
    assert [(notice.kind, notice.id) for notice in subscription.take()] == [("added", "a"), ("state", "a")]
    studio.executor.put(studio.folder("a"), 1)
    studio.tick()
    size = JobFolder(studio.folder("a")).events.stat().st_size
    assert ("events", size) in [(notice.kind, notice.offset) for notice in subscription.take()]


def test_a_change_can_be_waited_for(studio):
    before = studio.supervisor.version
    assert studio.supervisor.wait_for_change(before, timeout_s=0.0) == before
    studio.submit("a")
    assert studio.supervisor.wait_for_change(before, timeout_s=30) > before


def test_the_thread_works_on_where_a_tick_fails(studio):
    studio.machine = None
    studio.submit("a")
    studio.supervisor.start(every_s=0.01, clock=lambda: 2000.0)
    version = studio.supervisor.version
    for _ in range(500):
        if "" in studio.supervisor.problems():
            break
        studio.supervisor.wait_for_change(version, timeout_s=0.02)
    assert "AttributeError" in studio.supervisor.problems()[""]
    studio.machine = machine()
    for _ in range(500):
        if studio.job("a").state == "running":
            break
        studio.supervisor.wait_for_change(version, timeout_s=0.02)
    assert studio.job("a").state == "running"
