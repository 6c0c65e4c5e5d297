"""Real workers that do not stop, and processes that run away: all of it ends, and the job can be resumed."""

import os
import signal
from pathlib import Path

import psutil
import pytest
from jobs_studio import paced

from tests.waiting import PROCESS_S, wait_until
from ziggurat.jobs import StopGrace
from ziggurat.layout import JobFolder

SHORT = StopGrace(stop_s=1.0, kill_s=1.0)


def deaf(how):
    return [{"name": "jobs_test_deaf", "options": {"after_step": 6, "how": how}}]


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("how", ["loop", pytest.param("c", marks=pytest.mark.nightly)])
def test_a_hung_worker_is_ended_and_its_job_resumed(new_studio, undisturbed, how):
    studio = new_studio(places=1, grace=SHORT)
    folder = studio.train("job", callbacks=[*paced(0.0), *deaf(how)])
    studio.submit("next", studio.job("job").spec | {"callbacks": paced(0.0)})
    checkpoints = JobFolder(folder).checkpoints
    wait_until((checkpoints / "step-00000004").is_dir, PROCESS_S, what="its first checkpoint")
    pid = wait_until(lambda: studio.job("job").pid, PROCESS_S, what="its process")
    studio.supervisor.stop("job", "stopped by ann")
    job = studio.wait_for("job", "stopped")
    assert (job.reason, job.exit_code) == (
        "stopped by ann, by force: its worker did not end when it was asked to",
        -signal.SIGKILL,
    )
    assert not is_alive(pid)
    assert (checkpoints / "step-00000004").is_dir()
    studio.wait_for("next", "done")  # the queue goes on
    JobFolder(folder).spec.write_text(JobFolder(folder).spec.read_text().replace('"after_step": 6', '"after_step": -1'))
    studio.supervisor.resume("job")
    studio.wait_for("job", "done")
    assert studio.curves("job") == undisturbed


@pytest.mark.nightly
def test_another_studio_ends_a_hung_worker_too(new_studio):
    first = new_studio(grace=SHORT)
    folder = first.train("job", callbacks=[*paced(0.0), *deaf("loop")])
    pid = first.wait_for_step(folder, 4)
    first.supervisor.close()
    second = new_studio(grace=SHORT)
    second.supervisor.stop("job", "stopped by ann")
    assert second.wait_for("job", "stopped").reason.startswith("stopped by ann, by force")
    assert not is_alive(pid)


@pytest.mark.parametrize("end", ["done", "stopped", "killed", "deleted"])
def test_a_process_that_ran_away_ends_with_its_job(new_studio, tmp_path, end):
    studio = new_studio()
    escape = [{"name": "jobs_test_escape", "options": {"file": str(tmp_path / "away")}}]
    folder = studio.train("job", callbacks=[*paced(0.0 if end == "done" else 0.2), *escape])
    wait_until((tmp_path / "away").exists, PROCESS_S, what="the process that runs away")
    away = int((tmp_path / "away").read_text())
    assert end == "done" or is_alive(away)
    if end == "stopped":
        studio.supervisor.stop("job")
    elif end == "killed":
        os.kill(studio.wait_for_step(folder, 1), signal.SIGKILL)
    elif end == "deleted":
        studio.supervisor.delete("job", force=True)
    if end != "deleted":
        studio.wait_for("job", {"killed": "failed"}.get(end, end))
    assert not is_alive(away)
    assert Path(folder).exists() == (end != "deleted")
