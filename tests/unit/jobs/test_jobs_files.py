"""What lies in folders: job.json, the trash, checkpoints that need not be kept, and how an attempt ended."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs_doubles import a_job, new_job

from ziggurat.entities import Checkpoint, JobChange, Share, WorkerRef
from ziggurat.entities.trash import Trash
from ziggurat.errors import JobError, StorageError
from ziggurat.events import AttemptEnded, AttemptStarted, ErrorRaised, EventFile
from ziggurat.jobs.disk import Retention, free_bytes, remove_checkpoints, what_to_empty, what_to_remove
from ziggurat.jobs.job_file import (
    JobRecord,
    StartedAttempt,
    read_attempt,
    read_job_file,
    record_of,
    write_attempt,
    write_job_file,
)
from ziggurat.jobs.outcome import LOST_REASON, last_events, outcome_of
from ziggurat.jobs.supervisor import SupervisorLock
from ziggurat.layout import JobFolder

# ---- job.json


def test_job_json_says_what_people_say(tmp_path):
    new = new_job(tmp_path, "a", owner="ann", tags=("x", "y"), depends_on=("d",), notes="ü", priority=3)
    write_job_file(tmp_path, record_of(new))
    assert json.loads((tmp_path / "job.json").read_text()) == {
        "version": 1, "name": "a", "notes": "ü", "project": "", "owner": "ann", "tags": ["x", "y"], "priority": 3,
        "created": 900.0, "group": "", "parent": "", "depends_on": ["d"],
        "needs": {
            "devices": 0, "device_indices": [], "device_memory_bytes": 0, "memory_bytes": 0, "slot": "cpu", "nodes": 1,
            "datasets": [],
        },
    }  # fmt: skip
    assert read_job_file(tmp_path) == record_of(new)


def test_a_change_is_part_of_it():
    record = record_of(a_job("a", notes="old", tags=("x",)), JobChange(notes="", tags=("y",)))
    assert (record.name, record.notes, record.tags) == ("a", "", ("y",))


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_a_file_that_cannot_be_read_says_nothing(tmp_path, text):
    (tmp_path / "job.json").write_text(text)
    assert read_job_file(tmp_path) is None


def test_a_file_that_somebody_edited_says_what_can_be_used(tmp_path):
    content = {"name": 7, "notes": "n", "tags": ["a", 3], "priority": True, "created": 5, "owner": None}
    content["needs"] = {"devices": "two"}
    (tmp_path / "job.json").write_text(json.dumps(content))
    assert read_job_file(tmp_path) == JobRecord(notes="n", tags=("a",), created=5.0)


def test_an_attempt_comes_back_but_an_edited_one_does_not(tmp_path):
    worker = WorkerRef(executor="ray", node="b", attempt=3, opaque={"folder": "/jobs/a", "births": [1.5, None]})
    attempt = StartedAttempt(worker, (Share("b", (0, 1), (0, 1)), Share("c", (2,), (2,))), 900.5)
    assert read_attempt(tmp_path) is None
    write_attempt(tmp_path, attempt)
    assert read_attempt(tmp_path) == attempt
    for change in ({"worker": 7}, {"placement": [7]}, {"started": "soon"}):
        content = json.loads((tmp_path / "attempt.json").read_text())
        (tmp_path / "attempt.json").write_text(json.dumps(content | change))
        assert read_attempt(tmp_path) is None
        write_attempt(tmp_path, attempt)


def test_a_folder_that_is_gone_is_told(tmp_path):
    with pytest.raises(StorageError, match=r"What is known of the job must be written to .*job\.json"):
        write_job_file(tmp_path / "gone", JobRecord())


# ---- the trash


def test_a_folder_goes_to_the_trash_and_then_off_the_disk(tmp_path):
    folder = tmp_path / "jobs" / "7"
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text("{}")
    trash = Trash(tmp_path)
    discarded = trash.discard(folder, "7", 100.4)
    assert not folder.exists()
    assert trash.content() == [discarded]
    assert discarded is not None
    assert (discarded.id, discarded.since) == ("7", 100.0)
    assert trash.empty(older_than=99.0) == []
    assert trash.empty(older_than=100.0) == ["7"]
    assert list(trash.folder.iterdir()) == []


def test_the_same_id_twice_in_a_second(tmp_path):
    trash = Trash(tmp_path)
    for _ in range(3):
        (tmp_path / "jobs" / "7").mkdir(parents=True)
        trash.discard(tmp_path / "jobs" / "7", "7", 100.0)
    assert [each.id for each in trash.content()] == ["7", "7", "7"]
    assert len(trash.empty(older_than=100.0)) == 3


def test_a_folder_that_is_not_there_needs_no_trash(tmp_path):
    assert Trash(tmp_path).discard(tmp_path / "gone", "7", 100.0) is None


def test_what_others_put_into_the_trash_stays(tmp_path):
    trash = Trash(tmp_path)
    (trash.folder / "photos").mkdir(parents=True)
    assert trash.empty(older_than=1e12) == []
    assert (trash.folder / "photos").exists()


def test_a_folder_on_another_disk_is_hidden_there_and_removed(tmp_path):
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk")
    with tempfile.TemporaryDirectory(dir=memory) as other:
        (tmp_path / "jobs").symlink_to(other)
        folder = tmp_path / "jobs" / "7"
        folder.mkdir()
        trash = Trash(tmp_path)
        trash.discard(folder, "7", 100.0)
        assert [path.name for path in Path(other).iterdir()] == [".trash-7.100"]
        assert trash.empty(older_than=100.0) == ["7"]
        assert list(Path(other).iterdir()) == []
        assert trash.content() == []


def test_a_link_in_the_trash_takes_nothing_with_it(tmp_path):
    (tmp_path / "mine").mkdir()
    trash = Trash(tmp_path)
    trash.folder.mkdir()
    (trash.folder / "7.100").symlink_to(tmp_path / "mine")
    assert trash.empty(older_than=100.0) == ["7"]
    assert (tmp_path / "mine").exists()


# ---- space


def steps(*numbers):
    return [Checkpoint(name=f"step-{number:08d}", step=number, epoch=1) for number in numbers]


def test_the_newest_and_the_named_are_kept():
    names = {"min-error": "step-00000002"}
    removed = what_to_remove(steps(5, 1, 2, 3, 4), names, Retention(keep_last=2))
    assert removed == ["step-00000001", "step-00000003"]


def test_without_a_rule_all_are_kept():
    assert what_to_remove(steps(1, 2), {}, Retention()) == []


@given(st.sets(st.integers(0, 50)), st.integers(0, 5), st.integers(0, 50))
def test_the_newest_always_is_kept(numbers, keep_last, best):
    removed = what_to_remove(steps(*numbers), {"best": f"step-{best:08d}"}, Retention(keep_last=keep_last))
    kept = {f"step-{number:08d}" for number in numbers} - set(removed)
    assert not numbers or f"step-{max(numbers):08d}" in kept
    assert f"step-{best:08d}" not in removed
    assert len(kept) <= max(1, keep_last) + 1


def test_removed_checkpoints_free_their_space(tmp_path):
    folder = JobFolder(tmp_path)
    for name in ("step-00000001", "step-00000002"):
        (folder.checkpoints / name).mkdir(parents=True)
        (folder.checkpoints / name / "arrays.npz").write_bytes(b"x" * 100)
    (tmp_path / "mine").mkdir()
    assert remove_checkpoints(folder, ["step-00000001", "../mine", "step-00000009"]) == 100
    assert [path.name for path in folder.checkpoints.iterdir()] == ["step-00000002"]
    assert (tmp_path / "mine").exists()


def test_free_room_can_be_asked_before_the_folder_is_there(tmp_path):
    assert free_bytes(tmp_path / "not" / "yet") > 0


def test_the_trash_is_emptied_by_age():
    assert what_to_empty(1000.0, Retention()) == 1000.0
    assert what_to_empty(1000.0, Retention(trash_age_s=600)) == 400.0


# ---- how it ended


def job_that_said(folder, *events):
    file = EventFile(JobFolder(folder).events)
    file.write(*events)
    file.close()
    return JobFolder(folder)


def begun(time):
    return AttemptStarted(time=time, attempt=1, pid=1, host="h", backend="null", release="0")


def over(time, outcome="done", code=0, reason="all epochs are done"):
    return AttemptEnded(time=time, outcome=outcome, exit_code=code, reason=reason)


def test_the_last_words_of_this_attempt_count(tmp_path):
    folder = job_that_said(tmp_path, begun(1), over(5, "stopped", 75, "asked"))
    assert outcome_of(folder, 75, last_events(folder, since=1.0)).event == "end_stopped"
    assert last_events(folder, since=6.0) is None
    size = folder.events.stat().st_size
    assert last_events(folder, since=6.0, from_offset=0) is not None
    assert last_events(folder, since=0.0, from_offset=size) is None
    job_that_said(tmp_path, begun(7))
    assert last_events(folder, since=0.0) is None


def test_a_failure_before_the_start_counts_too(tmp_path):
    error = ErrorRaised(time=5, error={}, traceback="x" * 3_000_000)
    folder = job_that_said(tmp_path, error, over(5, "failed", 4, "The data must stay."))
    ending = outcome_of(folder, 4, last_events(folder, since=1.0))
    assert (ending.event, ending.reason, ending.exit_code) == ("end_failed", "The data must stay.", 4)


SILENT = "the worker ended without a word"


@pytest.mark.parametrize(
    ("code", "event", "reason"),
    [
        (None, "lost", LOST_REASON),
        (-9, "lost", f"{SILENT}: it was killed by SIGKILL; if no user did that, the machine ran out of memory"),
        (-11, "lost", f"{SILENT}: it was killed by SIGSEGV; look at its log"),
        (0, "lost", f"{SILENT}, as if all were done; look at its log"),
        (75, "end_stopped", "it was asked to stop"),
        (11, "end_failed", "The disk must have space."),
    ],
)  # fmt: skip
def test_without_words_the_exit_code_tells(tmp_path, code, event, reason):
    folder = JobFolder(tmp_path)
    folder.log.write_text("Error: of long ago.\nsomething\nError: The disk must have space.\nmore\n")
    ending = outcome_of(folder, code, last_events(folder, since=0.0))
    assert (ending.event, ending.reason) == (event, reason)


def test_an_exit_code_without_any_trace(tmp_path):
    reason = "the worker ended with exit code 1 and did not say why; look at its log"
    assert outcome_of(JobFolder(tmp_path), 1, None).reason == reason


def test_a_folder_that_is_not_there_is_told_too(tmp_path):
    ending = outcome_of(JobFolder(tmp_path / "gone"), None, None)
    assert ending.reason == f"the worker ended without a word, and its folder {tmp_path / 'gone'} is not there"


# ---- one supervisor


def test_one_supervisor_at_a_time(tmp_path):
    first = SupervisorLock(tmp_path / "new")
    with pytest.raises(JobError, match=r"One studio at a time starts the jobs of .* \(received: process \d+ does so"):
        SupervisorLock(tmp_path / "new")
    first.close()
    SupervisorLock(tmp_path / "new").close()
