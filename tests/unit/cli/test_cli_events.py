"""``events`` shows what happened, as lines for people or as the file's own JSON, also while it happens."""

import json
import math
import signal
import subprocess
import sys

import pytest

from ziggurat.events import AttemptEnded, AttemptStarted, EventFile, Message, ScalarLogged, encode_event

EVENTS = [
    AttemptStarted(time=1.0, attempt=1, pid=7, host="here", backend="null", release="0"),
    ScalarLogged(time=2.0, tag="cost", value=0.123456789, step=1, epoch=1),
    ScalarLogged(time=2.0, tag="error", value=math.nan, step=1, epoch=1),
    Message(time=3.0, level="warning", text="mind the gap"),
    AttemptEnded(time=4.0, outcome="done", exit_code=0, reason="all epochs are done", global_step=1, epoch=1),
]


@pytest.fixture
def told(job):
    """A job with a few events."""
    EventFile(job / "events.jsonl").write(*EVENTS)
    return job


def test_people_read_lines(ziggurat, told):
    lines = ziggurat("events", told).out.splitlines()
    assert len(lines) == 5
    assert lines[1].endswith("scalar           tag=cost value=0.123457 step=1 epoch=1")
    assert lines[3].endswith("message          level=warning text=mind the gap step=0")


def test_programs_read_the_lines_of_the_file(ziggurat, told):
    assert ziggurat("events", told, "--json").lines == [json.loads(encode_event(event)) for event in EVENTS]
    assert ziggurat("events", told, "--tag", "error", "--json").content["value"] == "NaN"


def test_types_and_tags_are_chosen(ziggurat, told):
    assert len(ziggurat("events", told, "--type", "scalar").out.splitlines()) == 2
    assert len(ziggurat("events", told, "--type", "scalar", "--type", "message").out.splitlines()) == 3
    assert [line["tag"] for line in ziggurat("events", told, "--tag", "cost", "--json").lines] == ["cost"]
    wrong = ziggurat("events", told, "--type", "scalr")
    assert wrong.code == 3
    assert wrong.err.startswith("Error: `scalr` is not a known type of event. Did you mean `scalar`?")


def test_an_event_of_a_newer_release_is_shown(ziggurat, job):
    (job / "events.jsonl").write_text('{"type":"weather","version":1,"time":5.0,"sky":"blue"}\n')
    assert "sky=blue" in ziggurat("events", job).out


def test_following_ends_with_the_job(ziggurat, told):
    assert len(ziggurat("events", told, "--follow").out.splitlines()) == 5


def test_following_waits_for_a_job_and_ends_on_ctrl_c(job):
    command = [sys.executable, "-m", "ziggurat", "events", str(job), "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        EventFile(job / "events.jsonl").write(EVENTS[1])
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["tag"] == "cost"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_following_sees_what_is_written_meanwhile(ziggurat, tmp_path):
    answer = ziggurat("train", "--network", "mlp", "--data", "digits", "--out", tmp_path / "job", "--detach")
    assert answer.code == 0
    types = [line["type"] for line in ziggurat("events", tmp_path / "job", "--follow", "--json").lines]
    assert types == ["attempt_started", "scalar", "epoch_ended", "attempt_ended"]
