"""Building a network has a time limit; the error says where it hung."""

import time

import pytest
from worker_jobs import end_of, error_of, events_of

from ziggurat.events import AttemptEnded
from ziggurat.jobs.outcome import outcome_of
from ziggurat.layout import JobFolder
from ziggurat.workspace.job_folders import job_status


def test_a_network_that_never_returns_fails(workers, new_job):
    job = new_job(backend="test_slow_to_build")
    worker = workers.start(job, environment={"TEST_BUILD_S": "600", "ZIGGURAT_BUILD_LIMIT_S": "1"})
    assert worker.wait() == 5
    end, error = end_of(job), error_of(job)
    assert (end.outcome, end.exit_code) == ("failed", 5)
    assert end.reason.startswith("Building the network did not end within `build_limit_s`, 1 s: it was still at ")
    assert "worker_plugins.py, line " in end.reason
    assert 'select.select([], [], [], float(os.environ.get("TEST_BUILD_S", "0")))' in end.reason
    assert error.error["details"]["file"].endswith("worker_plugins.py")
    assert "in build" in error.traceback
    assert "in build" in JobFolder(job).log.read_text()
    assert job_status(job, time.time()).state == "failed"


def test_a_network_that_returns_in_time_trains(workers, new_job):
    job = new_job(backend="test_slow_to_build")
    worker = workers.start(job, environment={"TEST_BUILD_S": "0", "ZIGGURAT_BUILD_LIMIT_S": "60"})
    assert worker.wait() == 0


@pytest.mark.nightly
def test_code_of_c_that_never_returns_is_ended_too(workers, new_job):
    job = new_job(backend="test_stuck_in_c")
    worker = workers.start(job, environment={"ZIGGURAT_BUILD_LIMIT_S": "1"})
    assert worker.wait() == 1
    assert events_of(job, AttemptEnded) == []
    JobFolder(job).log.write_text(worker.said)  # where the output of a studio's worker goes
    reason = outcome_of(JobFolder(job), 1, None).reason
    assert reason.startswith("building the network took longer than `build_limit_s` allows: it hung at ")
    assert "worker_plugins.py, line " in reason
