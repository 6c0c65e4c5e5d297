"""The state of a job is found from the files of its folder, whoever wrote them and whatever became of him."""

import os
import socket
import time
from dataclasses import replace

import pytest

from ziggurat.entities import Heartbeat, write_heartbeat
from ziggurat.entities.baselines import JobBaseline, JobBaselines, write_baselines
from ziggurat.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointRemoved,
    CheckpointSaved,
    EpochEnded,
    ErrorRaised,
    EventFile,
    Progress,
    ScalarLogged,
)
from ziggurat.layout import JobFolder
from ziggurat.workspace.job_folders import job_status

NOW = 1_000_000.0
NO_PROCESS = 2**22 + 1  # above the largest process number of Linux


def started(attempt=1, step=0, checkpoint="", at=NOW - 100):
    return AttemptStarted(
        time=at,
        attempt=attempt,
        pid=1,
        host="elsewhere",
        backend="null",
        release="0",
        global_step=step,
        max_epoch=3,
        steps_per_epoch=10,
        checkpoint=checkpoint,
    )


def ended(outcome="done", code=0, step=30, at=NOW - 10):
    return AttemptEnded(time=at, outcome=outcome, exit_code=code, reason="a reason", global_step=step, epoch=3)


def scalar(tag, value, step):
    return ScalarLogged(time=NOW - 50, tag=tag, value=value, step=step, epoch=1 + step // 10)


@pytest.fixture
def write(job):
    """Plant events and a heartbeat in the job's folder, and return its state."""

    def plant(*events, age_s=None, host="elsewhere", pid=1, phase="training", step=5, step_age_s=0.0, now=NOW):
        EventFile(job / "events.jsonl").write(*events)
        if age_s is not None:
            beat = Heartbeat(
                pid=pid,
                host=host,
                time=now - age_s,
                phase=phase,
                epoch=1,
                global_step=step,
                step_began=now - step_age_s,
            )
            write_heartbeat(job / "heartbeat.json", beat)
        return job_status(job, now)

    return plant


def test_a_job_that_nobody_began_is_queued(write, job):
    status = write()
    assert (status.state, status.health, status.attempt, status.can_resume) == ("queued", "", 0, True)
    assert (status.name, status.kind, status.max_epoch, status.folder) == ("mine", "train", 3, str(job))
    assert (status.pid, status.exit_code, status.heartbeat_age_s) == (None, None, None)


@pytest.mark.parametrize(
    ("outcome", "code", "can_resume"), [("done", 0, False), ("stopped", 75, True), ("failed", 4, True)]
)
def test_an_attempt_that_ended_says_how(write, outcome, code, can_resume):
    status = write(started(), ended(outcome, code), age_s=11)
    assert (status.state, status.health, status.exit_code, status.reason) == (outcome, "", code, "a reason")
    assert (status.can_resume, status.is_active, status.pid) == (can_resume, False, None)
    assert (status.global_step, status.total_steps, status.epoch) == (30, 30, 3)


HEARTBEATS = {
    "alive": ({"age_s": 1}, "running", "alive"),
    "alive and asked": ({"age_s": 1, "phase": "stopping"}, "stopping", "alive"),
    "in one step for long": ({"age_s": 1, "step_age_s": 500}, "running", "hung"),
    "silent on another machine": ({"age_s": 60}, "running", "silent"),
    "its process is gone": ({"age_s": 1, "host": socket.gethostname(), "pid": NO_PROCESS}, "failed", "lost"),
    "its number is somebody else's": ({"age_s": 1, "host": socket.gethostname(), "pid": os.getpid()}, "failed", "lost"),
    "no heartbeat at all": ({}, "failed", "lost"),
}


@pytest.mark.parametrize(("beat", "state", "health"), HEARTBEATS.values(), ids=HEARTBEATS.keys())
def test_an_attempt_without_end_is_judged_by_its_heartbeat(write, beat, state, health):
    status = write(started(), **beat)
    assert (status.state, status.health) == (state, health)
    if health == "lost":
        assert status.reason == "the worker ended without a word: it was killed, or its machine went down"


def test_a_living_process_on_this_machine_is_running(write):
    status = write(started(), age_s=0, host=socket.gethostname(), pid=os.getpid(), now=time.time())
    assert (status.state, status.health, status.pid) == ("running", "alive", os.getpid())


def test_a_heartbeat_after_the_end_is_a_new_attempt(write):
    status = write(started(), ended("stopped", 75), age_s=1, phase="starting")
    assert (status.state, status.reason, status.exit_code) == ("running", "", None)


@pytest.mark.parametrize("host", ["elsewhere", socket.gethostname()])
def test_last_heartbeat_of_an_ended_attempt_is_no_new_one(write, host):
    begun = replace(started(), host=host, pid=NO_PROCESS)
    status = write(begun, ended("done"), age_s=9.999, host=host, pid=NO_PROCESS, phase="stopping")
    assert (status.state, status.health, status.reason) == ("done", "", "a reason")


def test_a_stop_request_shows_as_stopping(write, job):
    JobFolder(job).stop_request.write_text("enough")
    assert write(started(), age_s=1).state == "stopping"


def test_progress_is_told_while_it_runs(write):
    progress = Progress(
        time=NOW, epoch=2, global_step=12, total_steps=30, remaining_s=9.0, steps_per_s=2.0, data_wait_share=0.25
    )
    status = write(started(), EpochEnded(time=NOW, epoch=1, global_step=10, duration_s=1), progress, age_s=1, step=14)
    assert (status.global_step, status.epoch, status.total_steps) == (14, 2, 30)
    assert (status.time_left_s, status.steps_per_s, status.data_wait_share) == (9.0, 2.0, 0.25)


def test_a_failure_carries_its_error(write):
    error = {"error": "data", "message": "The data must be there."}
    status = write(started(), ErrorRaised(time=NOW, error=error), ended("failed", 4))
    assert status.as_dict()["error"] == error


def test_an_attempt_that_failed_before_it_began_is_failed(write):
    assert write(ended("failed", 3, step=0)).state == "failed"


def test_a_resumed_attempt_takes_back_what_no_longer_holds(write):
    saved = CheckpointSaved(time=NOW - 60, name="step-00000010", step=10, epoch=1, scalars={"cost": 0.5, "error": 0.2})
    later = CheckpointSaved(time=NOW - 55, name="step-00000020", step=20, epoch=2)
    status = write(
        started(),
        scalar("cost", 0.5, 10),
        saved,
        scalar("cost", 0.3, 20),
        scalar("only_later", 1.0, 20),
        later,
        started(2, step=10, checkpoint="step-00000010"),
        age_s=1,
        step=10,
    )
    assert status.scalars == {"cost": 0.5}
    assert (status.attempt, status.global_step, status.epoch, status.last_checkpoint) == (2, 10, 1, "step-00000010")


def test_a_checkpoint_that_was_removed_is_not_the_last(write):
    saved = [CheckpointSaved(time=NOW, name=name, step=step, epoch=1) for name, step in (("one", 1), ("two", 2))]
    assert write(started(), *saved, CheckpointRemoved(time=NOW, name="two"), ended()).last_checkpoint == "one"


@pytest.mark.parametrize("text", ["{", "[]", '{"epochs": "many", "hung_after_s": null}'])
def test_a_damaged_spec_still_has_a_state(write, job, text):
    (job / "spec.json").write_text(text)
    assert write().max_epoch == 0
    assert write(started(), ended()).state == "done"


def test_status_is_shown_as_text_and_as_lines_of_json(write, ziggurat, job):
    write(started(), scalar("cost", 0.25, 30), ended("stopped", 75))
    answer = ziggurat("status", job, job)
    assert answer.code == 0
    assert answer.out == 2 * (
        f"{job} mine: stopped, attempt 1\n"
        "  reason      a reason\n"
        "  progress    step 30 of 30, epoch 3 of 3\n"
        "  scalars     cost 0.25\n"
        f"  go on with  ziggurat resume {job}\n"
    )
    lines = ziggurat("status", job, job, "--json").lines
    assert [line["state"] for line in lines] == ["stopped", "stopped"]
    assert lines[0]["can_resume"] is True


def test_the_result_stands_beside_the_best_baseline(write, job, ziggurat):
    baselines = (JobBaseline(name="linear", title="linear regression", scores={"rmse": 2.231}),)
    found = JobBaselines(
        metric="rmse", mode="min", title="RMSE", value=2.171, checkpoint="step-00000030", baselines=baselines
    )
    write_baselines(JobFolder(job), found)
    assert write(started(), ended()).baselines == "RMSE 2.171 against 2.231 (linear regression)"
    assert "  baselines   RMSE 2.171 against 2.231 (linear regression)" in ziggurat("status", job).out
