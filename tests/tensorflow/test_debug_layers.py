"""A debugged network lists every layer that its file calls, in order, with the line; summaries are left out."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.cli.main import main
from ziggurat.settings import load_settings
from ziggurat.workspace.tasks import Tasks

NETWORK = """
import tensorflow.contrib.slim as other

def block(net):
    return tf.nn.relu(tf.layers.conv2d(net, 4, 3, name='block') + 1.0)

class UserModel(Tower):
    @model_property
    def inference(self):
        kernel = tf.get_variable('kernel', [3, 3, 1, 4], initializer=tf.truncated_normal_initializer(stddev=0.3))
        net = tf.nn.conv2d(self.x / 255.0, kernel, strides=[1, 1, 1, 1], padding='SAME', name='first')
        net = tf.nn.max_pool(net, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='SAME')
        net = block(net)
        net = tf.layers.batch_normalization(net, training=self.is_training)
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, activation_fn=tf.nn.relu):
            net = slim.repeat(net, 2, slim.conv2d, 8, [3, 3], scope='twice')
        net = tf.contrib.layers.conv2d(net, 4, [3, 3], scope='contrib')
        tf.image_summary('old', self.x, max_images=2)
        self.summaries.append(tf.summary.image('images', self.x))
        self.summaries.append(tf.summary.histogram('net', net))
        net = tf.matmul(other.flatten(net), tf.zeros([576, 6]))
        net = tf.layers.Dense(7, name='object')(net)
        left, right = tf.split(net, [3, 4], axis=1)
        net = tf.cond(tf.reduce_any(net > 1e9), lambda: tf.exp(net), lambda: tf.tanh(net))
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope='fc')

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("network") / "mine.py"
    path.write_text(NETWORK)
    return Tasks(load_settings({})).debug(str(path), batch_size=4)


def test_every_call_is_listed_in_order_with_its_line(found: dict[str, Any]) -> None:
    lines = NETWORK.splitlines()
    listed = [
        (each["layer"], each["scope"], each["shape"], lines[each["line"] - 1].strip()) for each in found["layers"]
    ]
    short = [(layer, scope, shape) for layer, scope, shape, _line in listed]
    assert short == [
        ("tf.nn.conv2d", "first", [4, 28, 28, 4]),
        ("tf.nn.max_pool", "", [4, 14, 14, 4]),
        ("tf.layers.conv2d", "block", [4, 12, 12, 4]),
        ("tf.nn.relu", "", [4, 12, 12, 4]),
        ("tf.layers.batch_normalization", "", [4, 12, 12, 4]),
        ("slim.conv2d", "twice_1", [4, 12, 12, 8]),
        ("slim.conv2d", "twice_2", [4, 12, 12, 8]),
        ("tf.contrib.layers.conv2d", "contrib", [4, 12, 12, 4]),
        ("slim.flatten", "", [4, 576]),
        ("tf.matmul", "", [4, 6]),
        ("Dense", "object", [4, 7]),
        ("tf.split", "", [4, 3]),
        ("tf.split", "", [4, 4]),
        ("tf.tanh", "", [4, 7]),
        ("tf.cond", "", [4, 7]),
        ("slim.fully_connected", "fc", [4, 10]),
    ]
    for layer, _scope, _shape, line in listed:
        name = layer.rsplit(".", 1)[-1]
        assert name in line or (name == "flatten" and "other.flatten" in line)


def test_mean_and_deviation_are_those_of_the_output(found: dict[str, Any]) -> None:
    layers = {each["scope"] or each["layer"]: each for each in found["layers"]}
    assert layers["tf.layers.batch_normalization"]["mean"] == pytest.approx(0, abs=1e-4)
    assert layers["tf.layers.batch_normalization"]["deviation"] == pytest.approx(1, abs=0.3)
    # The ReLU gets the output plus 1; with some random weights a few of these are below 0, and become 0.
    assert -1e-4 <= layers["tf.nn.relu"]["mean"] - (layers["block"]["mean"] + 1) < 0.1
    assert (layers["tf.matmul"]["mean"], layers["tf.matmul"]["deviation"]) == (0, 0)


def test_summaries_are_left_out_with_a_note(found: dict[str, Any]) -> None:
    names = ("tf.image_summary", "tf.summary.image", "tf.summary.histogram", "tf.summary.scalar")
    places = [f"{name} (line {NETWORK[: NETWORK.index(f'{name}(')].count(chr(10)) + 1})" for name in names]
    assert found["notes"] == [f"Summaries are made in training only; left out here: {', '.join(places)}."]
    assert found["loss"] == pytest.approx(2.302585, abs=1e-4)


def test_the_table_has_the_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(NETWORK)
    assert main(["debug", str(tmp_path / "mine.py"), "--batch-size", "2"]) == 0
    text = capfd.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    assert ["line", "layer", "scope", "output", "mean", "deviation"] in rows
    line = str(NETWORK[: NETWORK.index("tf.nn.conv2d")].count("\n") + 1)
    assert [line, "tf.nn.conv2d", "first", "(2,", "28,", "28,", "4)"] in [row[:7] for row in rows]
    assert "Summaries are made in training only" in text
