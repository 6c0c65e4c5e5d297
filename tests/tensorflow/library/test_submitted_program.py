"""A program on `ziggurat.tf` as a job: its folder, curves, stop, kill, and a resume that is exact."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities import EXIT_STOPPED
from ziggurat.events import AttemptEnded, AttemptStarted, effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

PROGRAM = """
import argparse, os, signal, threading
import numpy as np
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import TrainConfig, launch_train_with_config
from ziggurat.tf.model import ModelDesc
from ziggurat.tf.summary import add_moving_summary
from ziggurat.tf.trainers import SimpleTrainer


class Model(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec((None, 8), tf.float32, "x"), tf.TensorSpec((None,), tf.float32, "y")]

    def build_graph(self, x, y):
        weights = tf.get_variable("weights", [8, 1], initializer=tf.glorot_uniform_initializer(seed=1))
        cost = tf.reduce_mean(tf.square(tf.reshape(x @ weights, [-1]) - y), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        rate = tf.get_variable("learning_rate", initializer=0.01, trainable=False)
        return tf.train.AdamOptimizer(rate)


class Strike(Callback):
    def _trigger_step(self):
        for name, step in (("SIGTERM", given.stop), ("SIGKILL", given.kill)):
            if self.global_step == step and not os.path.exists(name):
                open(name, "w").close()
                os.kill(os.getpid(), getattr(signal, name))
                threading.Event().wait(0.2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--stop", type=int, default=0)
    parser.add_argument("--kill", type=int, default=0)
    given = parser.parse_args()
    logger.set_logger_dir("train_log/elsewhere")
    random = np.random.RandomState(0)
    points = [[random.rand(8).astype("f4"), np.float32(random.rand())] for _ in range(64)]
    flow = BatchData(DataFromList(points, shuffle=True), 8)
    launch_train_with_config(
        TrainConfig(dataflow=flow, model=Model(), callbacks=[Strike()], max_epoch=4), SimpleTrainer()
    )
    print("the rest, in", logger.get_logger_dir())
"""


def make_job(folder: Path, *arguments: str) -> JobFolder:
    """Make a job that runs the program."""
    job = JobFolder(folder)
    job.program.mkdir(parents=True)
    (job.program / "train.py").write_text(PROGRAM)
    content = {"kind": "program", "version": 1, "script": "train.py", "arguments": list(arguments), "seed": 3}
    save_spec(parse_spec(content), job.spec)
    return job


def execute(job: JobFolder) -> int:
    """Run one attempt in a worker; return its exit code."""
    command = [sys.executable, "-m", "ziggurat.worker", str(job.path)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ZIGGURAT_")}
    done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode


def curves_of(job: JobFolder):
    """Return tag → (step, value) of what holds and is no measurement."""
    found: dict[str, list[tuple[int, float]]] = {}
    for point in effective_scalars(read_events(job.events)[0]):
        if not point.tag.startswith(("Throughput", "StepTime")):
            found.setdefault(point.tag, []).append((point.step, point.value))
    return found


def newest_of(job: JobFolder):
    """Return the newest checkpoint."""
    newest = CheckpointStore(job.checkpoints, writable=False).latest()
    assert newest is not None
    return newest[0].name, newest[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> JobFolder:
    """A job that was never interrupted."""
    job = make_job(tmp_path_factory.mktemp("programs") / "whole")
    assert execute(job) == 0, job.log.read_text()
    return job


@pytest.mark.nightly
def test_a_program_stops_dies_and_resumes_exactly(tmp_path, whole):
    struck = make_job(tmp_path / "struck", "--stop", "11", "--kill", "21")
    assert [execute(struck) for _ in range(3)] == [EXIT_STOPPED, -signal.SIGKILL, 0]

    events = read_events(struck.events)[0]
    assert [each.global_step for each in events if isinstance(each, AttemptStarted)] == [0, 11, 16]
    assert [each.outcome for each in events if isinstance(each, AttemptEnded)] == ["stopped", "done"]
    assert struck.log.read_text().count("the rest") == 1

    (one, state), (other, resumed) = newest_of(whole), newest_of(struck)
    assert one == other == "step-00000032"
    assert state.arrays.keys() == resumed.arrays.keys()
    for name, array in state.arrays.items():
        np.testing.assert_array_equal(array, resumed.arrays[name], err_msg=name)
    assert state.meta["batches"] == resumed.meta["batches"]
    assert curves_of(whole) == curves_of(struck)


def test_a_program_has_the_folder_of_its_job(whole):
    job = whole
    log = job.log.read_text()
    assert f"the rest, in {job.path}" in log
    assert "This program was submitted" in log
    assert not (job.program / "train_log").exists()
    curves = curves_of(job)
    assert [step for step, _ in curves["cost"]] == [8, 16, 24, 32]
    assert [value for _, value in curves["learning_rate"]] == pytest.approx([0.01] * 5)
    assert any(job.tensorboard.iterdir())
    assert len([json.loads(line) for line in job.stats.read_text().splitlines()]) == 4
