"""Fixtures of the shell tests: in-process calls of ``ziggurat``, and a tiny worker."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ziggurat.cli.application import Application
from ziggurat.cli.main import main

# Does what a worker does at its edges: reads the spec, writes events and a heartbeat, ends when it is asked to.
# The job's name says how it behaves.
TINY_WORKER = """
import argparse, os, signal, socket, sys, threading, time
from pathlib import Path
from ziggurat.entities import Heartbeat, write_heartbeat
from ziggurat.errors import DataError
from ziggurat.events import *
from ziggurat.layout import JobFolder
from ziggurat.specs import load_spec

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--end-with", type=int)
given = parser.parse_args()
folder, asked = JobFolder(given.folder), []
signal.signal(signal.SIGTERM, lambda number, frame: asked.append("received SIGTERM"))
spec = load_spec(folder.spec)
events = EventFile(folder.events)
attempt = sum(isinstance(event, AttemptStarted) for event in read_events(folder.events)[0]) + 1

def beat(step):
    write_heartbeat(folder.heartbeat, Heartbeat(
        pid=os.getpid(), host=socket.gethostname(), time=time.time(), phase="training", epoch=1, global_step=step,
        step_began=time.time()))

def end(outcome, code, reason, step):
    events.write(AttemptEnded(
        time=time.time(), outcome=outcome, exit_code=code, reason=reason, global_step=step, epoch=(step + 1) // 2))
    sys.exit(code)

beat(0)
events.write(AttemptStarted(time=time.time(), attempt=attempt, pid=os.getpid(), host=socket.gethostname(),
    backend=spec.backend, release="0", max_epoch=spec.epochs, steps_per_epoch=2))
events.write(ScalarLogged(time=time.time(), tag="cost", value=0.5, step=1, epoch=1))
print("tiny worker at work", f"color={os.environ.get('ZIGGURAT_COLOR')}", f"parent={given.end_with}", flush=True)
if spec.name == "fails":
    error = DataError("The data must be there.", received="nothing", advice="Bring some.")
    events.write(ErrorRaised(time=time.time(), error=error.as_dict(), step=1))
    end("failed", error.exit_code, str(error), 1)
if spec.name == "diverges":
    events.write(DivergenceNoticed(time=time.time(), state="diverged", tag="cost", value=8e30, learning_rate=1e30,
        step=6, epoch=3, noticed_step=6))
if spec.name == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
if spec.name == "waits":
    for _ in range(600):
        beat(1)
        if asked or folder.stop_request.exists():
            end("stopped", 75, asked[0] if asked else folder.stop_request.read_text().strip(), 1)
        threading.Event().wait(0.05)
events.write(EpochEnded(time=time.time(), epoch=spec.epochs, global_step=2 * spec.epochs, duration_s=0.1))
end("done", 0, "all epochs are done", 2 * spec.epochs)
"""


@dataclass
class Answer:
    """What one call of ``ziggurat`` gave."""

    code: int
    out: str
    err: str

    @property
    def content(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output as lines of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(autouse=True)
def quiet_environment(tmp_path, monkeypatch):
    """No settings of the person who tests."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "NO_COLOR", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tiny_worker(tmp_path):
    """The file of the tiny worker."""
    path = tmp_path / "tiny_worker.py"
    path.write_text(TINY_WORKER)
    return path


@pytest.fixture
def ziggurat(capfd, tiny_worker):
    """Call ``ziggurat`` with words; the tiny worker trains."""

    def call(*words: object) -> Answer:
        capfd.readouterr()
        application = Application(worker_command=[sys.executable, str(tiny_worker)])
        code = main([str(word) for word in words], application)
        captured = capfd.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def job(tmp_path) -> Path:
    """A folder with a spec that nobody began to execute."""
    folder = tmp_path / "job"
    folder.mkdir()
    content = {"kind": "train", "version": 1, "name": "mine", "network": "mlp", "data": "digits", "epochs": 3}
    (folder / "spec.json").write_text(json.dumps(content))
    return folder
