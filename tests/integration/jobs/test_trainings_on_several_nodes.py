"""A training over two nodes of a real Ray cluster: its curves are those of two devices here, also past a lost node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from jobs_studio import curves_of, paced, tiny_spec
from ray_machines import CLUSTER_S, ON_RAY, RayStudio, cluster_of, nodes_of

from ziggurat.entities import NewJob
from ziggurat.events import AttemptStarted, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import TrainSpec, parse_spec, save_spec
from ziggurat.workspace.new_jobs import train_needs

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [*ON_RAY, pytest.mark.timeout(900)]

NETWORK = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(64, 16)
        self.dropout = nn.Dropout(0.3)
        self.fc2 = nn.Linear(16, nclasses)

    def forward(self, x):
        return self.fc2(self.dropout(F.relu(self.fc1(x.flatten(1) * 0.0125))))
"""


def spec_of(workspace: Any, **changes: Any) -> TrainSpec:
    fields: dict[str, Any] = {
        "backend": "torch",
        "backend_options": {},
        "network": {"source": "file", "path": "net.py", "text": NETWORK},
        **changes,
    }
    found = parse_spec(tiny_spec(workspace, **fields))
    assert isinstance(found, TrainSpec)
    return found


def submit(studio: RayStudio, job_id: str, **changes: Any) -> JobFolder:
    """Put a training on two nodes into the queue."""
    folder = JobFolder(studio.workspace / "jobs" / job_id)
    folder.path.mkdir(parents=True)
    spec = spec_of(studio.workspace, nodes=2, **changes)
    save_spec(spec, folder.spec)
    studio.supervisor.submit(
        NewJob(
            id=job_id, kind="train", name=job_id, folder=os.fspath(folder.path), spec=spec.model_dump(mode="json"),
            created=time.time(), needs=train_needs(spec),
        )
    )  # fmt: skip
    return folder


def pid_of_rank_1(folder: JobFolder) -> int:
    started = [each for each in read_events(folder.of_rank(1).events)[0] if isinstance(each, AttemptStarted)]
    return started[-1].pid


def test_a_training_goes_on_without_a_lost_node(tmp_path, monkeypatch):
    for module in ("plan", "dispatcher"):
        monkeypatch.setattr(f"ziggurat.jobs.{module}.SETTLED_S", 3.0)
    with cluster_of(tmp_path, ("a", "b")) as machines:
        studio = RayStudio(machines)
        try:
            studio.wait_for_nodes("a", "b")
            folder = submit(studio, "together", callbacks=paced(0.5))
            studio.wait_for_step(folder.path, 10)
            pid = pid_of_rank_1(folder)
            lost = nodes_of(studio, "together")[1]
            machines.cluster.remove_node(machines.nodes[lost], allow_graceful=False)
            os.kill(pid, signal.SIGKILL)
            job = studio.ended("together", "done", "failed")
            assert (job.state, nodes_of(studio, "together")) == ("done", [{"a": "b", "b": "a"}[lost]]), job.reason
            attempts = studio.store.curves.attempts("together")
        finally:
            studio.close()
    assert [attempt.outcome for attempt in attempts] == ["lost", "done"]
    assert attempts[1].first_step >= 4, "it goes on from a checkpoint that had arrived"
    said = attempts[1].arithmetic.text
    assert said.startswith(f"Resumed on 1 of 2 processes: node {lost} is gone. Same state and data, other arithmetic")
    steps = [step for step, _ in curves_of(folder.path)["cost"]]
    assert steps == sorted(set(steps)), "no step is missing or there twice"


def test_two_nodes_train_like_two_devices_and_past_a_lost_node(tmp_path):
    with cluster_of(tmp_path, ("a", "b")) as machines:
        studio = RayStudio(machines)
        try:
            studio.wait_for_nodes("a", "b")
            folder = submit(studio, "together", callbacks=paced(1.0))
            studio.wait_for_step(folder.path, 10)
            assert nodes_of(studio, "together") == ["a", "b"]
            killed_at = time.time()
            machines.cluster.remove_node(machines.nodes["b"], allow_graceful=False)
            os.kill(pid_of_rank_1(folder), signal.SIGKILL)
            shape = {"num_cpus": 2, "object_store_memory": 80 << 20}
            machines.cluster.add_node(labels={"name": "c"}, **shape)
            job = studio.ended("together", "done", "failed")
            assert (job.state, nodes_of(studio, "together")) == ("done", ["a", "c"]), job.reason
            attempts = studio.store.curves.attempts("together")
            assert [attempt.outcome for attempt in attempts] == ["lost", "done"]
            assert attempts[1].first_step >= 4, "it goes on from a checkpoint that had arrived"
            print(f"the new attempt began {attempts[1].started - killed_at:.1f} s after the kill")

            stopped = submit(studio, "stopped", callbacks=paced(0.5))
            studio.wait_for_step(stopped.path, 6)
            studio.supervisor.pause("stopped", "paused by ann")
            job = studio.ended("stopped", "stopped")
            assert (job.reason, job.exit_code) == ("paused by ann", 75)
            studio.supervisor.resume("stopped")
            studio.ended("stopped")
        finally:
            studio.close()
        alone = JobFolder(tmp_path / "alone")
        alone.path.mkdir()
        save_spec(spec_of(machines.workspace, devices=["cpu:0", "cpu:1"]), alone.spec)
        subprocess.run([sys.executable, "-m", "ziggurat.worker", str(alone.path)], check=True, timeout=CLUSTER_S)
        expected = curves_of(alone.path)
        assert expected["validation_cost"]
        assert curves_of(folder.path) == expected
        assert curves_of(stopped.path) == expected
