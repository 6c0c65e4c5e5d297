"""What a new supervisor finds, what is deleted, what is kept, and who is told."""

import pytest
from jobs_doubles import HOST, machine
from supervised_studio import Studio

from ziggurat.entities import Heartbeat, ResourceRequest, write_heartbeat
from ziggurat.errors import JobError, StorageError
from ziggurat.events import CheckpointRemoved
from ziggurat.jobs import Retention
from ziggurat.jobs.job_file import read_attempt
from ziggurat.layout import JobFolder

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
    studio.executor.start_by_shell(studio.folder("a"))
    studio.tick()
    assert studio.job("a").state == "running"
    assert len(studio.executor.started) == 1


def test_a_worker_the_shell_starts_is_not_started_twice(studio):
    for name in "abc":
        studio.submit(name)
    studio.tick()
    studio.executor.start_by_shell(studio.folder("c"))
    studio.executor.end(studio.folder("a"), "done")
    studio.tick()
    assert studio.job("c").state == "running"


def test_an_end_that_the_shell_brought_about_is_found(studio):
    studio.submit("a")
    studio.tick()
    studio.executor.end(studio.folder("a"), "stopped", 75)
    studio.tick()
    studio.executor.now += 10
    studio.executor.start_by_shell(studio.folder("a"))
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
    studio.submit("d", kind="dataset", name="mnist", needs=ResourceRequest(slot="dataset"))
    studio.submit("m", name="lenet", depends_on=("d",))
    studio.tick()
    studio.executor.end(studio.folder("d"), "done")
    studio.tick()
    with pytest.raises(JobError) as error:
        studio.supervisor.delete("d")
    assert str(error.value) == (
        "What other jobs use is kept: the dataset mnist cannot be deleted (received: it is used by job lenet "
        "(running)). Delete those first."
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
    with pytest.raises(StorageError, match="could not be moved into the trash"):
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


def test_unneeded_checkpoints_are_removed_when_the_job_ended(tmp_path):
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


def test_a_killed_worker_is_not_sought_in_a_restored_folder(studio):
    studio.submit("a")
    studio.tick()
    started = read_attempt(studio.folder("a"))
    assert (started.worker.attempt, bool(started.worker.opaque)) == (1, True)
    studio.supervisor.delete("a", force=True)
    ended = read_attempt(studio.supervisor.restore("a"))
    assert (ended.worker.attempt, ended.worker.opaque) == (1, {})
