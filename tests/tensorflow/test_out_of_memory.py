"""A job whose network asks for more memory than there is ends as failed, and says what to do."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.calls import explained
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import TrainingError
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec
from ziggurat.workspace.job_folders import job_status

pytestmark = pytest.mark.usefixtures("cold_starts")

NETWORK = """
class UserModel(Tower):
    @model_property
    def inference(self):
        net = slim.fully_connected(slim.flatten(self.x / 255.0), 8, scope='fc1')
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope='fc2')

    @model_property
    def loss(self):
        huge = tf.fill([tf.shape(self.x)[0], 1000000, 1000000], tf.reduce_mean(self.inference))
        return digits.classification_loss(self.inference, self.y) + tf.reduce_mean(huge)
"""


def failed(folder: Path, text: str) -> dict[str, Any]:
    """Let a worker fail at a job; return its error as the event tells it."""
    network = {"source": "file", "path": "mine.py", "text": text}
    spec = {"kind": "train", "version": 1, "backend": "tensorflow", "network": network, "data": "digits"}
    spec |= {"epochs": 1, "batch_size": 32, "validation": {"every_epochs": 0}, "monitors": ["events"]}
    folder.mkdir()
    save_spec(parse_spec(spec, source="a test"), JobFolder(folder).spec)
    command = [sys.executable, "-m", "ziggurat.worker", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 6, done.stderr
    events = [json.loads(line) for line in JobFolder(folder).events.read_text().splitlines()]
    assert events[-1]["type"] == "attempt_ended"
    assert events[-1]["outcome"] == "failed"
    return next(each["error"] for each in events if each["type"] == "error")


def test_a_step_that_needs_too_much(tmp_path: Path) -> None:
    error = failed(tmp_path / "job", NETWORK)
    line = NETWORK[: NETWORK.index("huge = ")].count("\n") + 1
    assert (error["error"], error["rule"]) == (
        "training",
        "The step must fit in the device's memory: it is out of memory.",
    )
    assert error["received"].startswith(
        f"mine.py, line {line}: OOM when allocating tensor with shape[32,1000000,1000000]"
    )
    assert error["advice"].startswith("Batch 32 asks for 128 TB at once; ")
    assert error["details"]["memory"]["suggested_batch_size"] == 0
    assert error["details"]["memory"]["asked_bytes"] == 4 * 32 * 10**12
    status = job_status(tmp_path / "job", time.time())
    assert status.state == "failed"
    assert "it is out of memory" in status.reason


def test_variables_that_need_too_much() -> None:
    text = NETWORK.replace("huge = tf.fill(", "huge = tf.get_variable('huge', [10**7, 10**6]) * 1.0 # ")
    request = {"network": "mine.py", "network_text": text, **class_arrays((28, 28, 1), 10)}
    program = TensorFlowBackend().build(ProgramRequest(**request, batch_size=32, optimizer="sgd"))
    with pytest.raises(TrainingError) as caught:
        program.declare(("cost",))
    assert str(caught.value).startswith(
        "The network's variables must fit in the device's memory: it is out of memory (received: mine.py, line 10: "
        "OOM when allocating tensor with shape[10000000,1000000]"
    )
    assert caught.value.advice == "Make the network smaller: fewer or narrower layers."


def test_a_constant_that_is_too_large_to_be_made() -> None:
    error = tf.errors.InvalidArgumentError(None, None, "Cannot parse tensor from proto: dtype: DT_FLOAT")
    told = explained(error, "mine.py", doing="start")
    assert isinstance(told, TrainingError)
    assert "it is out of memory (received: mine.py: Cannot parse tensor from proto" in str(told)
