"""A training over two nodes of Slurm, over stand-ins for its commands: its curves are those of two devices here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jobs_studio import curves_of, paced
from test_jobs_on_slurm import SlurmStudio, attempts
from test_trainings_on_several_nodes import pid_of_rank_1, spec_of, submit

from tests.slurm_stand_ins import Slurm
from tests.waiting import PROCESS_S
from ziggurat.events import AttemptEnded, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import save_spec

pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def slurm(tmp_path_factory):
    return Slurm(tmp_path_factory.mktemp("cluster"))


@pytest.fixture
def studio(workspace, slurm):
    made = SlurmStudio(workspace, slurm)
    yield made
    for job in slurm.jobs():
        slurm.scancel("--signal=KILL", "--full", job)
        slurm.scancel(job)
    made.close()


def outcomes(folder):
    return [event.outcome for event in read_events(folder.events)[0] if isinstance(event, AttemptEnded)]


def test_a_warned_training_on_nodes_goes_on_at_the_exact_step(studio, slurm, workspace, tmp_path):
    folder = submit(studio, "together", callbacks=paced(0.2))
    studio.wait_for_step(folder.path, 5)
    slurm.ends_as("100", "FAILED")
    slurm.scancel("--signal=TERM", "--batch", "100")
    job = studio.wait_for("together", "done", "failed")
    assert (job.state, slurm.jobs()) == ("done", ["100", "101"]), job.reason
    begun = attempts(folder.path)
    assert begun[1].global_step >= 5, "at the step of the warning, not at that of an earlier checkpoint"
    assert outcomes(folder) == ["stopped", "done"]
    assert outcomes(folder.of_rank(1)) == ["done", "done"], "it ends in order with rank 0"
    alone = JobFolder(tmp_path / "alone")
    alone.path.mkdir()
    save_spec(spec_of(workspace, devices=["cpu:0", "cpu:1"], callbacks=paced(0.0)), alone.spec)
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{workspace / 'plugins'}"}
    words = [sys.executable, "-m", "ziggurat.worker", str(alone.path)]
    subprocess.run(words, env=environment, check=True, timeout=PROCESS_S)
    assert curves_of(folder.path) == curves_of(alone.path)


@pytest.mark.nightly
def test_a_training_on_nodes_stops_and_fails_as_one(studio, slurm):
    folder = submit(studio, "together", callbacks=paced(0.2))
    studio.wait_for_step(folder.path, 3)
    studio.supervisor.pause("together", "paused by ann")
    job = studio.wait_for("together", "stopped")
    assert (job.reason, job.exit_code) == ("paused by ann", 75)
    studio.supervisor.resume("together")
    studio.wait_for_step(folder.path, 6)
    os.kill(pid_of_rank_1(folder), signal.SIGKILL)
    job = studio.wait_for("together", "failed")
    assert job.reason == "rank 1 on node c2 ended with exit code -9; its log may say why"
    studio.supervisor.resume("together")
    assert studio.wait_for("together", "done", "failed").state == "done"
