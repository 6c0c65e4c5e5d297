"""What the heartbeat tells: at work, hung in a step, waiting for data, silent."""

import signal
import time

import pytest
from worker_jobs import STEPS, end_of, messages_of, wait_for_step

from tests.waiting import PROCESS_S, wait_until
from ziggurat.entities import Pulse, judge_pulse, read_heartbeat
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec
from ziggurat.workspace.job_folders import job_status


def pausing(**options):
    """Return the change of a spec that lets training pause after steps."""
    return {"callbacks": [{"name": "test_pause", "options": options}]}


def pulse_of(job, **limits):
    """Return what the newest heartbeat says now."""
    heartbeat = read_heartbeat(JobFolder(job).heartbeat)
    assert heartbeat is not None
    return judge_pulse(heartbeat, time.time(), **limits)


def test_a_worker_at_work_is_alive(workers, new_job):
    job = new_job(**pausing(each_s=0.05))
    worker = workers.start(job)
    heartbeat = wait_for_step(job, 3)
    assert (heartbeat.pid, heartbeat.phase) == (worker.pid, "training")
    assert heartbeat.usual_step_s > 0.05
    assert pulse_of(job) is Pulse.ALIVE
    assert worker.wait() == 0
    assert read_heartbeat(JobFolder(job).heartbeat).time <= end_of(job).time  # it beats no longer
    assert messages_of(job) == []


def dataset_job(folder, pictures):
    folder.mkdir()
    return {"kind": "dataset", "source": str(pictures), "format": "class_folders", "near_duplicates": False}


def program_job(folder, _pictures):
    JobFolder(folder).program.mkdir(parents=True)
    (JobFolder(folder).program / "train.py").write_text("print('hello')\n")
    return {"kind": "program", "script": "train.py"}


@pytest.mark.parametrize("made", [dataset_job, program_job])
def test_worker_without_training_beats_no_more_at_its_end(workers, tmp_path, pictures, made):
    job = tmp_path / "job"
    spec = made(job, pictures)
    save_spec(parse_spec({"version": 1, "heartbeat_s": 0.0001, **spec}), JobFolder(job).spec)
    assert workers.execute(job) == 0
    assert read_heartbeat(JobFolder(job).heartbeat).time <= end_of(job).time


def _hung_steps(job):
    """Return what was said of steps; the start may take long as well on a machine that is busy."""
    return [text for text in messages_of(job) if text.startswith("No step")]


def test_a_hung_step_is_said_with_the_stacks_of_all_threads(workers, new_job):
    job = new_job(hung_after_s=0.5, backend="test_hangs_at_step_4")
    worker = workers.start(job)
    (message,) = wait_until(lambda: _hung_steps(job), PROCESS_S, what="the message")
    assert message.startswith("No step was completed in the last ")
    assert " s, after 3 steps; the usual step takes 0." in message
    assert message.endswith(" s. The stacks of all threads are in log.txt.")
    assert pulse_of(job, hung_after_s=0.5) is Pulse.HUNG
    assert job_status(job, time.time()).health == "hung"
    log = JobFolder(job).log.read_text()
    assert "worker_plugins.py" in log  # where it hangs
    assert "in step" in log
    assert message in log
    assert message in worker.said
    assert "worker_plugins.py" not in worker.said  # what people watch is no heap of stacks
    heartbeat = read_heartbeat(JobFolder(job).heartbeat)
    assert heartbeat is not None
    wait_until(lambda: read_heartbeat(JobFolder(job).heartbeat).time > heartbeat.time + 1.0)  # two limits later
    assert _hung_steps(job) == [message]  # once a step
    worker.signal(signal.SIGKILL)
    worker.wait()
    assert job_status(job, time.time()).health == "lost"


def test_a_step_that_waits_for_its_batch_says_so(workers, new_job, tmp_path):
    options = {"before_step": STEPS, "file": str(tmp_path / "stalled")}
    job = new_job(hung_after_s=0.5, callbacks=[{"name": "test_stalled_data", "options": options}])
    worker = workers.start(job)
    (message,) = wait_until(lambda: _hung_steps(job), PROCESS_S, what="the message")
    assert f" s, after {STEPS - 1} steps; the usual step takes " in message
    assert " s. It waits for a batch. The stacks of all threads are in log.txt." in message
    worker.signal(signal.SIGKILL)
    worker.wait()


def test_a_worker_that_nothing_runs_in_is_silent(workers, new_job):
    job = new_job(**pausing(each_s=0.05))
    worker = workers.start(job)
    wait_for_step(job, 2)
    worker.signal(signal.SIGSTOP)
    wait_until(lambda: pulse_of(job, silent_after_s=2.0) is Pulse.SILENT, PROCESS_S, what="its silence")
    assert pulse_of(job) is Pulse.ALIVE  # by the limits of every day it is too early to tell
    in_an_hour = job_status(job, time.time() + 3600)
    assert (in_an_hour.state, in_an_hour.health) == ("running", "silent")
    worker.signal(signal.SIGCONT)
    assert worker.wait() == 0
    assert end_of(job).outcome == "done"
