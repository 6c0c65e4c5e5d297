"""A disk that is full: its error, its exit code, and everything that was there is there still."""

import json
import os
import subprocess
import time

import pytest
from worker_jobs import differences, end_of, error_of, events_of, make_job, outcome_of, steps_of

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities import EXIT_STOPPED
from ziggurat.events import AttemptEnded
from ziggurat.jobs.outcome import last_events
from ziggurat.layout import JobFolder
from ziggurat.workspace.job_folders import job_status

WIDE = {"backend_options": {"hidden": 500, "dropout": 0.3}}
"""A network whose checkpoint is by far the largest file of its job: 250 KB."""


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder):
    """Leave no free byte; return the file that does it."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return path


def test_a_checkpoint_that_no_longer_fits(workers, new_job):
    whole, job = new_job(**WIDE), new_job(**WIDE)
    assert workers.execute(whole) == 0
    assert workers.execute(job, "term:3") == EXIT_STOPPED
    worker = workers.start(job, largest_file_bytes=100_000)
    assert worker.wait() == 11
    error = error_of(job)
    assert error.error["error"] == "storage"
    assert error.error["message"] == (
        f"A checkpoint must be written to {JobFolder(job).checkpoints} (received: File too large (errno 27)). "
        "Free space or mend the folder's rights, then resume the job: the last checkpoint is whole."
    )
    assert worker.said.endswith(f"\nError: {error.error['message']}\n")
    assert "Traceback" not in worker.said
    assert (end_of(job).outcome, end_of(job).exit_code) == ("failed", 11)
    assert steps_of(job) == [3]
    assert [path.name for path in JobFolder(job).checkpoints.iterdir()] == ["step-00000003"]  # and no half one
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), outcome_of(whole)) == []


def test_events_that_no_longer_fit(workers, job):
    assert workers.execute(job, "kill:5") == -9
    taken = JobFolder(job).events.stat().st_size
    worker = workers.start(job, largest_file_bytes=taken + 800)
    assert worker.wait() == 11
    assert f"must be written to {JobFolder(job).events} (received: File too large (errno 27))." in worker.said
    assert workers.execute(job) == 0
    lines = JobFolder(job).events.read_bytes().splitlines()
    assert all(json.loads(line)["type"] for line in lines)  # the half line of the full disk is gone


@pytest.mark.parametrize("moment", [1, 4, 6, 9])
def test_a_file_system_without_space(workers, data, small_disk, tmp_path, moment):
    whole = make_job(tmp_path / "whole", data, **WIDE)
    assert workers.execute(whole) == 0
    job = make_job(small_disk / "job", data, **WIDE)
    assert workers.execute(job, f"term:{moment}") == EXIT_STOPPED
    before = steps_of(job)
    filler = fill(small_disk)
    worker = workers.start(job)
    assert worker.wait() == 11
    assert "No space left on device (errno 28)" in worker.said
    assert "Traceback" not in worker.said
    assert steps_of(job) == before
    os.unlink(filler)
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), outcome_of(whole)) == []


@pytest.mark.parametrize("moment", [1, 6])
def test_the_cause_is_known_although_no_event_fits(workers, data, small_disk, moment):
    job = make_job(small_disk / "job", data, **WIDE)
    assert workers.execute(job, f"term:{moment}") == EXIT_STOPPED
    fill(small_disk)
    began = time.time()
    assert workers.start(job).wait() == 11
    assert events_of(job, AttemptEnded)[-1].time < began  # the file of events took none
    words = last_events(JobFolder(job), since=began)
    assert words is not None
    assert (words.outcome, words.exit_code) == ("failed", 11)
    assert "No space left on device (errno 28)" in words.reason
    status = job_status(job, time.time())
    assert (status.state, status.reason) == ("failed", words.reason)


def test_a_folder_that_may_not_be_written_to(workers, job):
    JobFolder(job).lock.mkdir()  # for root, rights alone are no hindrance
    worker = workers.start(job)
    assert worker.wait() == 11
    assert worker.said == (
        f"Error: A worker locks its folder by the file {JobFolder(job).lock} (received: Is a directory (errno 21)). "
        "Free space on the disk or mend the folder's rights.\n"
    )


def test_a_file_in_place_of_the_checkpoints(workers, job):
    JobFolder(job).checkpoints.write_text("")
    assert workers.execute(job) == 11
    assert error_of(job).error["error"] == "storage"
    assert CheckpointStore(JobFolder(job).checkpoints, writable=False).list() == []
