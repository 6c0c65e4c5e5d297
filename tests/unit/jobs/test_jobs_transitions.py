"""Every state with every event: where it leads, and what is said where it leads nowhere."""

import pytest

from ziggurat.entities import JOB_STATES
from ziggurat.errors import JobError, UnknownNameError
from ziggurat.jobs.state_machine import EVENTS, GONE, TRANSITIONS, next_state, possible_events, states_before

LEGAL = """
(new)     submit      queued
queued    start       running
queued    adopt       running
queued    stop        stopped
queued    pause       stopped
queued    end_failed  failed
queued    delete      (new)
running   not_begun   queued
running   give_back   queued
running   stop        stopping
running   pause       stopping
running   end_done    done
running   end_stopped stopped
running   end_failed  failed
running   lost        failed
stopping  not_begun   stopped
stopping  stop        stopping
stopping  pause       stopping
stopping  end_done    done
stopping  end_stopped stopped
stopping  end_failed  failed
stopping  lost        failed
stopped   adopt       running
stopped   resume      queued
stopped   delete      (new)
failed    adopt       running
failed    resume      queued
failed    retry       queued
failed    delete      (new)
done      delete      (new)
"""
TABLE = {}
for line in LEGAL.split("\n")[1:-1]:
    before, happening, after = line.replace("(new)", "-").split()
    TABLE[before.replace("-", GONE), happening] = after.replace("-", GONE)

ALL = [(state, event) for state in (GONE, *JOB_STATES) for event in EVENTS]


@pytest.mark.parametrize(("state", "event"), ALL, ids=[f"{state or 'new'}-{event}" for state, event in ALL])
def test_every_pair(state, event):
    if (state, event) in TABLE:
        assert next_state(state, event) == TABLE[state, event]
    else:
        with pytest.raises(JobError, match="Only a job that is"):
            next_state(state, event, "7")


def test_all_states_have_a_row():
    assert set(TRANSITIONS) == {GONE, *JOB_STATES}


def test_a_refusal_says_what_is_possible():
    with pytest.raises(JobError) as error:
        next_state("done", "stop", "41")
    assert str(error.value) == (
        "Only a job that is queued or running or stopping can be stopped (received: job 41 is done). "
        "Possible now: delete."
    )
    assert error.value.details["possible"] == ["delete"]


def test_a_job_that_stops_is_waited_for():
    with pytest.raises(JobError, match=r"stopping\)\. Wait until its worker has saved and ended\. Possible now: stop"):
        next_state("stopping", "resume", "41")


def test_a_running_job_is_deleted_by_force_only():
    with pytest.raises(JobError, match="Stop it first, or delete it by force"):
        next_state("running", "delete", "41")


def test_unknown_names_are_told():
    with pytest.raises(UnknownNameError, match="Did you mean `pause`"):
        next_state("running", "paus")
    with pytest.raises(UnknownNameError, match="is not a known state of a job"):
        next_state("runing", "pause")


@pytest.mark.parametrize(
    ("state", "events"),
    [
        ("queued", ("stop", "pause", "delete")),
        ("running", ("stop", "pause")),
        ("stopping", ("stop", "pause")),
        ("stopped", ("resume", "delete")),
        ("failed", ("resume", "retry", "delete")),
        ("done", ("delete",)),
        ("no such state", ()),
    ],
)
def test_what_people_can_do(state, events):
    assert possible_events(state) == events


def test_states_before_an_event():
    assert states_before("resume") == ("failed", "stopped")
