"""Threads of jobs on PyTorch: chosen once, written into the spec, kept by a resume, and part of its arithmetic."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.layout import JobFolder
from ziggurat.settings import THREADS_VARIABLE
from ziggurat.specs import parse_spec, save_spec

NETWORK = """
import numpy as np

class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(64, nclasses)
        self.scale = float(1 + 0 * np.random.rand()) + 0 * float(torch.rand(1))

    def forward(self, x):
        return self.fc1(x.flatten(1) * (self.scale / 16))
"""
CORES = len(os.sched_getaffinity(0))


def new_job(folder: Path, **fields: Any) -> JobFolder:
    spec: dict[str, Any] = {
        "kind": "train",
        "version": 1,
        "backend": "torch",
        "network": {"source": "file", "path": "net.py", "text": NETWORK},
        "data": "digits",
        "preprocessing": {"size": [8, 8]},
        "epochs": 1,
        "steps_per_epoch": 3,
        "batch_size": 8,
    }
    folder.mkdir()
    save_spec(parse_spec(spec | fields), JobFolder(folder).spec)
    return JobFolder(folder)


def train(job: JobFolder, **variables: str) -> None:
    command = [sys.executable, "-m", "ziggurat.worker", str(job.path)]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def spec_of(job: JobFolder) -> dict[str, Any]:
    return json.loads(job.spec.read_text())


def change(job: JobFolder, **fields: Any) -> None:
    """Change the spec; a field of None is left out."""
    content = {name: value for name, value in (spec_of(job) | fields).items() if value is not None}
    job.spec.write_text(json.dumps(content))


def said(job: JobFolder, kind: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, job.events.read_text().splitlines()) if line["type"] == kind]


def test_threads_are_chosen_once_and_a_resume_keeps_them(tmp_path: Path):
    job = new_job(tmp_path / "job")
    train(job, **{THREADS_VARIABLE: "4"})
    assert spec_of(job).get("threads") == 1  # the network is small
    change(job, epochs=2)
    train(job, **{THREADS_VARIABLE: "1"})
    assert [each["values"]["threads"] for each in said(job, "arithmetic")] == [1, 1]
    assert [each["text"] for each in said(job, "arithmetic")] == ["", "Exact: same state, data and arithmetic."]


def test_a_resume_on_another_node_keeps_the_threads(tmp_path: Path):
    job = new_job(tmp_path / "job")
    train(job)
    # What a worker writes into the spec stays on its node; the studio sends its own.
    change(job, epochs=2, threads=None)
    train(job, OMP_NUM_THREADS=str(CORES))
    assert [each["values"]["threads"] for each in said(job, "arithmetic")] == [1, 1]


def test_other_threads_at_a_resume_are_told(tmp_path: Path):
    job = new_job(tmp_path / "job", threads=1)
    train(job)
    change(job, epochs=2, threads=2 * CORES)
    train(job)
    text = f"Same state and data, other arithmetic: threads 1 → {2 * CORES}."
    assert text in [each["text"] for each in said(job, "message")]
    slower = (
        f"It computes with {2 * CORES} threads on {CORES} core{'s' if CORES > 1 else ''}: slower, with the same bits."
    )
    assert slower in [each["text"] for each in said(job, "message")]
    assert said(job, "arithmetic")[1]["changed"] == {"threads": [1, 2 * CORES]}


def test_a_job_that_began_without_threads_keeps_the_default(tmp_path: Path):
    job = new_job(tmp_path / "job")
    train(job)
    change(job, epochs=2, threads=None)
    job.threads.unlink()
    train(job, OMP_NUM_THREADS=str(CORES))
    assert "threads" not in spec_of(job)
    assert said(job, "arithmetic")[1]["values"]["threads"] == CORES


def test_the_choice_draws_nothing_at_random(tmp_path: Path):
    states = []
    for name, fields in (("given", {"threads": 1}), ("chosen", {})):
        job = new_job(tmp_path / name, **fields)
        train(job, **{THREADS_VARIABLE: "2"})
        newest = CheckpointStore(job.checkpoints, writable=False).latest()
        assert newest is not None
        states.append(newest[1])
    assert states[0].meta["random"] == states[1].meta["random"]
    for name, array in states[0].arrays.items():
        np.testing.assert_array_equal(array, states[1].arrays[name], err_msg=name)


@pytest.mark.parametrize(
    ("batch_size", "most", "devices", "threads"),
    [(64, 4, (), 1), (10_000_000, 4, (), 4), (10_000_000, 4, ("cpu:0", "cpu:1"), 2), (64, 1, (), 1)],
)
def test_large_steps_get_the_threads_of_the_job(batch_size: int, most: int, devices: tuple[str, ...], threads: int):
    arrays = class_arrays((8, 8, 1), 10)
    request = ProgramRequest(network="net.py", network_text=NETWORK, batch_size=batch_size, devices=devices, **arrays)
    assert TorchBackend().choose_threads(request, most) == threads
