"""Asking a worker to end: by signals, by a file, by the death of its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from worker_jobs import STEPS, differences, end_of, events_of, outcome_of, steps_of, wait_for_step

from tests.waiting import PROCESS_S, wait_until
from ziggurat.cli.main import main
from ziggurat.entities import EXIT_STOPPED, read_heartbeat
from ziggurat.events import AttemptEnded, AttemptStarted
from ziggurat.layout import JobFolder

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def pausing(at_step=-1, for_s=0.0, each_s=0.0):
    """Return the change of a spec that lets training pause after steps."""
    options = {"at_step": at_step, "for_s": for_s, "each_s": each_s}
    return {"callbacks": [{"name": "test_pause", "options": options}]}


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_saves_at_the_step_under_way(workers, new_job, number):
    job = new_job(**pausing(at_step=3, for_s=2.0))
    worker = workers.start(job)
    assert wait_for_step(job, 3).global_step == 3
    worker.signal(number)
    assert worker.wait() == EXIT_STOPPED
    end = end_of(job)
    assert (end.outcome, end.exit_code, end.reason) == ("stopped", 75, f"received {number.name}")
    assert steps_of(job)[-1] == end.global_step
    assert end.global_step in (3, 4)  # at once, or after one step more
    assert worker.said == ""


def test_the_same_signal_again_ends_it_at_once(workers, new_job):
    job = new_job(**pausing(at_step=5, for_s=600.0))
    worker = workers.start(job)
    wait_for_step(job, 5)
    worker.signal(signal.SIGTERM)
    wait_until(lambda: not catches(worker.pid, signal.SIGTERM), what="the first signal to arrive")
    assert worker.is_alive()  # it waits for the end of the step
    worker.signal(signal.SIGTERM)
    assert worker.wait() == -signal.SIGTERM
    assert events_of(job, AttemptEnded) == []
    assert steps_of(job) == [4]


def test_idle_threads_of_a_callback_hold_up_no_end(workers, new_job):
    worker = workers.start_command(new_job(callbacks=[{"name": "test_pool"}]))
    assert worker.wait(60) == 0
    assert "the end was noted" in worker.said


def test_a_signal_in_the_set_up_ends_it_before_any_work(workers, new_job):
    job = new_job(backend="test_slow_to_build")
    worker = workers.start(job, environment={"TEST_BUILD_S": "1.5"})
    wait_until(lambda: read_heartbeat(JobFolder(job).heartbeat), PROCESS_S, what="the first heartbeat")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == EXIT_STOPPED
    assert (end_of(job).outcome, end_of(job).reason) == ("stopped", "received SIGTERM")
    assert events_of(job, AttemptStarted) == []
    assert steps_of(job) == []
    assert workers.execute(job) == 0


def test_a_signal_before_the_worker_has_its_modules_is_kept(workers, job):
    worker = workers.start_command(job)
    wait_until(lambda: catches(worker.pid, signal.SIGTERM), PROCESS_S, what="the worker to listen")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == EXIT_STOPPED
    assert end_of(job).outcome == "stopped"


def test_a_signal_while_the_data_stands_still(workers, new_job, tmp_path, data):
    def stalled(file):
        options = {"before_step": STEPS + 3, "file": str(file)}
        return new_job(callbacks=[{"name": "test_stalled_data", "options": options}])

    (tmp_path / "there").touch()
    whole, job = stalled(tmp_path / "there"), stalled(tmp_path / "stalled")
    assert workers.execute(whole) == 0
    worker = workers.start(job)
    wait_until((tmp_path / "stalled").exists, PROCESS_S, what="the data to stand still")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == EXIT_STOPPED
    assert steps_of(job)[-1] == STEPS + 2
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), outcome_of(whole)) == []


@pytest.mark.parametrize("command", [[], ["--reason", "the day is over"]])
def test_ziggurat_stop(workers, new_job, command, capsys):
    job = new_job(epochs=500, **pausing(each_s=0.02))
    worker = workers.start(job)
    wait_for_step(job, 2)
    assert main(["stop", str(job), *command]) == 0
    assert worker.wait() == EXIT_STOPPED
    assert end_of(job).reason == ("the day is over" if command else "asked to stop by `ziggurat stop`")
    assert steps_of(job)[-1] == end_of(job).global_step
    assert not JobFolder(job).stop_request.exists()
    assert "asked to save and end" in capsys.readouterr().out


def test_a_request_that_is_there_before_the_worker_counts(workers, job):
    JobFolder(job).stop_request.write_text("")
    assert workers.execute(job) == EXIT_STOPPED
    assert end_of(job).reason == "asked to stop"
    assert workers.execute(job) == 0  # the request was obeyed, and is gone


def test_stopped_without_saving_where_the_spec_says_so(workers, new_job):
    job = new_job(on_stop="leave")
    assert workers.execute(job, "term:6") == EXIT_STOPPED
    assert steps_of(job) == [4]


def test_a_worker_of_a_killed_parent_ends_with_a_checkpoint(workers, new_job):
    job = new_job(epochs=500, **pausing(each_s=0.02))
    mine = job.parent / "mine"
    command = [sys.executable, "-m", "ziggurat", "train", str(JobFolder(job).spec), "--out", str(mine)]
    with parent_process(command, workers) as parent:
        pid = wait_for_step(mine, 2).pid
        parent.send_signal(signal.SIGKILL)
        killed_at = time.time()
        parent.wait()
    wait_until(lambda: not is_alive(pid), PROCESS_S, what="the end of the worker")
    end = end_of(mine)
    assert (end.outcome, end.reason) == ("stopped", "the process that started the worker is gone")
    assert end.time - killed_at < 5
    assert steps_of(mine)[-1] == end.global_step > 0


def test_a_worker_of_its_own_goes_on_when_its_parent_is_killed(workers, new_job):
    job = new_job(**pausing(each_s=0.1))
    command = ["sh", "-c", '"$0" -m ziggurat.worker "$1" & wait', sys.executable, str(job)]
    with parent_process(command, workers) as parent:
        wait_for_step(job, 1)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    end = wait_until(lambda: events_of(job, AttemptEnded), PROCESS_S, what="its end")[0]
    assert (end.outcome, end.exit_code, end.global_step) == ("done", 0, 2 * STEPS)


def test_no_process_is_left_behind(workers, new_job, pictures):
    job = new_job(data=pictures, preprocessing={"size": 8, "channels": 1}, **pausing(each_s=0.1))
    for number, code in ((signal.SIGTERM, EXIT_STOPPED), (signal.SIGKILL, -9)):
        worker = workers.start(job)
        wait_for_step(job, 1)
        worker.signal(number)
        assert worker.wait() == code
        wait_until(lambda: group_of(worker.pid) == [], PROCESS_S, what="the end of its group")  # noqa: B023


def parent_process(command, workers):
    """Start a process that starts a worker."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env=workers.environment, **quiet)


def catches(pid, number):
    """Return whether a process has a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line for line in lines if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> number - 1 & 1


def is_alive(pid):
    """Return whether a process is there and no zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def group_of(group):
    """Return the living processes of a process group."""
    members = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and is_alive(process.pid):
                members.append(process.pid)
        except ProcessLookupError:
            continue
    return members
