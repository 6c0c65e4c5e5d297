"""TensorFlow says nothing while it starts, and nothing of the layers that the contract allows; its errors are shown."""

import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import build_job_graph
from ziggurat.backends.tensorflow.runtime import native_log_held_to
from ziggurat.engine.backend import ProgramRequest, class_arrays

pytestmark = pytest.mark.usefixtures("cold_starts")

SAID = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    b"I0000 00:00:1795338367.876459   15562 port.cc:153] oneDNN custom operations are on.\n"
    b"W0000 00:00:1795338367.876459   15562 gpu_device.cc:7] Could not find something.\n"
    b"E0000 00:00:1795338367.876459   15562 cuda_platform.cc:52] failed call to cuInit\n"
    b"F0000 00:00:1795338367.876459   15562 cpu_feature_guard.cc:1] It needs AVX instructions.\n"
    b"what a person wrote\n"
)

# Each function here has a deprecation of its own in TensorFlow, and each is in the contract of a network file.
LAYERS = """
class UserModel(Tower):
    @model_property
    def inference(self):
        net = tf.layers.conv2d(self.x / 255.0, 4, 3)
        net = tf.layers.batch_normalization(net, training=self.is_training)
        net = tf.layers.separable_conv2d(tf.layers.conv2d_transpose(net, 4, 3), 4, 3)
        net = tf.layers.average_pooling2d(tf.layers.max_pooling2d(net, 2, 2), 2, 2)
        net = slim.conv2d(net, 4, [3, 3], normalizer_fn=slim.batch_norm)
        net = slim.batch_norm(net, fused=False, is_training=self.is_training)
        net = slim.flatten(net) + tf.layers.dense(tf.layers.flatten(net), 1)
        net = tf.layers.Dropout(0.3)(tf.layers.dropout(net, 0.3), training=self.is_training)
        cells = [tf.nn.rnn_cell.BasicLSTMCell(8), tf.contrib.rnn.GRUCell(8), tf.contrib.rnn.LSTMCell(8)]
        outputs, _ = tf.nn.static_rnn(tf.contrib.rnn.MultiRNNCell(cells), [net, net], dtype=tf.float32)
        return tf.layers.Dense(self.nclasses)(outputs[-1])

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


def train(folder: Path, *words: str, **environment: str) -> tuple[str, str]:
    """Train with ``ziggurat train``; return standard error and ``log.txt``."""
    variables = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"} | environment
    command = [sys.executable, "-m", "ziggurat", "train", *words, "--data", "digits", "--backend", "tensorflow"]
    command += ["--epochs", "1", "--out", str(folder)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr, (folder / "log.txt").read_text()


def test_training_lenet_says_nothing_of_tensorflow(tmp_path: Path) -> None:
    said, log = train(tmp_path / "job", "--network", "lenet")
    lines = [line for line in said.replace("\r", "\n").splitlines() if line and not line.startswith("epoch 1/1")]
    assert lines == [f"Job folder: {tmp_path / 'job'}"]
    assert log == ""


@pytest.mark.nightly
def test_a_level_that_the_user_set_counts(tmp_path: Path) -> None:
    said, _ = train(tmp_path / "job", "--network", "lenet", TF_CPP_MIN_LOG_LEVEL="0")
    assert re.search(r"\.cc:\d+\]", said)


def test_layers_of_the_contract_warn_of_nothing() -> None:
    request = ProgramRequest(network="net.py", network_text=LAYERS, **class_arrays((28, 28, 1), 10), batch_size=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert build_job_graph(request).train_values["cost"].shape == ()


@pytest.mark.parametrize(("level", "left"), [("0", range(6)), ("1", range(2, 6)), ("2", range(3, 6)), ("3", [4, 5])])
def test_lines_below_the_level_are_left_out(level: str, left: list[int], capfd: pytest.CaptureFixture) -> None:
    with native_log_held_to(level):
        os.write(2, SAID)
    os.write(2, b"later\n")
    assert (
        capfd.readouterr().err.encode() == b"".join(SAID.splitlines(keepends=True)[line] for line in left) + b"later\n"
    )


@pytest.mark.nightly
def test_last_words_before_a_crash_are_shown() -> None:
    script = (
        "import os\nfrom ziggurat.backends.tensorflow.runtime import native_log_held_to\n"
        f"with native_log_held_to('2'):\n    os.write(2, {SAID!r})\n    os.abort()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -signal.SIGABRT
    assert done.stderr == b"".join(SAID.splitlines(keepends=True)[3:])
