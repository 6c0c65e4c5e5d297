"""A worker whose fence a later one has raised ends, and writes nothing more into the folder."""

import pytest
from worker_jobs import end_of, events_of, steps_of, wait_for_step

from ziggurat.atomic import EXIT_SUPERSEDED, ProcessLock, raise_fence, read_fence
from ziggurat.errors import JobError
from ziggurat.events import AttemptEnded
from ziggurat.layout import JobFolder


def pausing(**options):
    return {"callbacks": [{"name": "test_pause", "options": {"at_step": -1, "for_s": 0.0, "each_s": 0.0, **options}}]}


def test_it_ends_as_soon_as_a_later_worker_takes_its_folder(workers, new_job):
    job = new_job(**pausing(each_s=0.1))
    folder = JobFolder(job)
    number = raise_fence(folder.fence, 1)
    worker = workers.start(job, "--fence", str(number))
    wait_for_step(job, 3)
    raise_fence(folder.fence)
    folder.stop_request.write_text("for the later one\n")
    size, saved = folder.events.stat().st_size, steps_of(job)
    assert worker.wait() == EXIT_SUPERSEDED
    assert "A later worker has taken" in worker.said
    assert (folder.events.stat().st_size, steps_of(job)) == (size, saved)
    assert folder.stop_request.exists(), "it is not its own"


def test_one_that_hangs_in_a_step_ends_too(workers, new_job):
    job = new_job(**pausing(at_step=3, for_s=600.0))
    folder = JobFolder(job)
    worker = workers.start(job, "--fence", str(raise_fence(folder.fence, 1)))
    wait_for_step(job, 3)
    raise_fence(folder.fence)
    assert worker.wait() == EXIT_SUPERSEDED
    assert events_of(job, AttemptEnded) == []


def test_one_that_comes_too_late_does_not_begin(workers, new_job):
    job = new_job()
    number = raise_fence(JobFolder(job).fence, 1)
    raise_fence(JobFolder(job).fence)
    assert workers.start(job, "--fence", str(number)).wait() == EXIT_SUPERSEDED
    assert not JobFolder(job).events.exists()


def test_the_lock_of_a_lost_machine_keeps_out_no_later_one(workers, new_job):
    job = new_job()
    with ProcessLock(JobFolder(job).lock, JobError, "a lock"):
        assert workers.start(job).wait() == JobError.exit_code
        assert workers.start(job, "--fence", str(raise_fence(JobFolder(job).fence, 1))).wait() == 0
    assert end_of(job).outcome == "done"


def test_one_that_the_shell_starts_takes_the_folder(workers, new_job):
    job = new_job()
    assert raise_fence(JobFolder(job).fence, 7) == 7
    assert workers.start(job).wait() == 0
    assert (read_fence(JobFolder(job).fence) or {})["number"] == 8
    assert end_of(job).outcome == "done"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"number": "x"}'])
def test_what_is_no_fence_keeps_nobody_out(workers, new_job, content):
    job = new_job()
    JobFolder(job).fence.write_text(content)
    assert workers.start(job).wait() == 0
