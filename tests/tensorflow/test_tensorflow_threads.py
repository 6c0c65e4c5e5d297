"""Threads of jobs on TensorFlow: chosen once, written into the spec, and part of the arithmetic."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import session_config
from ziggurat.engine.backend import ProgramRequest
from ziggurat.layout import JobFolder
from ziggurat.settings import THREADS_VARIABLE
from ziggurat.specs import parse_spec, save_spec


def test_a_job_gets_the_threads_that_it_may_use(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job")
    job.path.mkdir()
    spec = {"kind": "train", "version": 1, "backend": "tensorflow", "network": "lenet", "data": "digits"}
    save_spec(parse_spec({**spec, "epochs": 1, "steps_per_epoch": 2, "preprocessing": {"size": [28, 28]}}), job.spec)
    command = [sys.executable, "-m", "ziggurat.worker", str(job.path)]
    environment = {**os.environ, THREADS_VARIABLE: "3"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(job.spec.read_text()).get("threads") == 3
    lines = [json.loads(line) for line in job.events.read_text().splitlines()]
    (values,) = [line["values"] for line in lines if line["type"] == "arithmetic"]
    assert (values["threads"], values["devices"], values["precision"]) == (3, "cpu", "float32")
    assert values["framework"].startswith("TensorFlow 2.")


def test_threads_of_a_request_are_those_of_the_session() -> None:
    assert session_config(ProgramRequest(threads=3)).intra_op_parallelism_threads == 3
    assert session_config(ProgramRequest(options={"intra_threads": 2})).intra_op_parallelism_threads == 2
    assert session_config(ProgramRequest()).intra_op_parallelism_threads == 0
