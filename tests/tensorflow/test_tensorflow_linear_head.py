"""TensorFlow networks give the inputs of their head, and take a head that was fitted to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.export.provider import TensorFlowTasks
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.capabilities import GivesFeatures, TakesLinearHead
from ziggurat.engine.fine_tuning import FineTuningRequest
from ziggurat.errors import ConfigurationError

NETWORK = """
class UserModel(Tower):
    @model_property
    def inference(self):
        net = slim.conv2d(self.x, 4, [3, 3], scope="conv")
        net = slim.dropout(tf.reduce_mean(net, [1, 2]), 0.5, is_training=self.is_training)
        {body}

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""
_SLIM = "slim.fully_connected(net, self.nclasses, activation_fn=None, scope='fc'{more})"
LINEAR = NETWORK.format(body=f"return {_SLIM.format(more='')}")
OWN = NETWORK.format(
    body="""with tf.variable_scope("fc"):
            weight = tf.get_variable("weights", [4, self.nclasses])
            bias = tf.get_variable("biases", [self.nclasses])
            return tf.identity(tf.matmul(net, weight) + bias)"""
)
SOFTMAX = NETWORK.format(body=f"return tf.nn.log_softmax({_SLIM.format(more='')})")
UNBIASED = NETWORK.format(body=f"return {_SLIM.format(more=', biases_initializer=None')}")
MAPS = NETWORK.format(
    body="""net = slim.conv2d(net[:, None, None], self.nclasses, [1, 1], activation_fn=None, scope="fc")
        return tf.reduce_mean(net, [1, 2])"""
)


def request(text: str, **fields: Any) -> ProgramRequest:
    chosen: dict[str, Any] = {**class_arrays((8, 8, 1), 3), "learning_rate": 0.01, "batch_size": 8, **fields}
    return ProgramRequest(network="net.py", network_text=text, **chosen)


@contextmanager
def built(text: str, **fields: Any) -> Iterator[TensorFlowProgram]:
    """Give a program that is ready to train."""
    program = TensorFlowBackend().build(request(text, **fields))
    with closing(program):
        program.declare([])
        yield program


def samples(count: int = 8) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    return random.random((count, 8, 8, 1), np.float32), random.integers(0, 3, count)


@pytest.mark.parametrize("text", [LINEAR, OWN])
def test_the_head_of_the_features_gives_the_logits(text: str) -> None:
    x, _ = samples()
    with built(text) as program:
        arrays = program.state()
        with closing(TensorFlowTasks().open_trained(request(text), arrays)) as network:
            assert isinstance(network, GivesFeatures)
            features = network.features(x)
            logits = features @ arrays["model/fc/weights"] + arrays["model/fc/biases"]
            assert (features.shape, features.dtype) == ((8, 4), np.float32)
            np.testing.assert_allclose(logits, network.predict(x)["output"], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(program.features(x), features, rtol=1e-6)


def test_a_head_without_vectors_is_refused() -> None:
    with (
        built(MAPS) as program,
        pytest.raises(ConfigurationError, match=r"one fully connected layer(.|\n)*0 products by model/fc/weights"),
    ):
        program.features(samples()[0])


@pytest.mark.parametrize("fields", [{}, {"ema_decay": 0.5}, {"fine_tuning": FineTuningRequest(head="fc.")}])
def test_a_program_takes_a_fitted_head(fields: dict[str, Any]) -> None:
    x, y = samples()
    weights, bias = np.arange(12, dtype=np.float32).reshape(4, 3), np.float32([1, 2, 3])
    with built(LINEAR, **fields) as program:
        assert isinstance(program, TakesLinearHead)
        program.step([x, y], ())
        program.set_head(weights, bias)
        expected = program.features(x) @ weights + bias
        np.testing.assert_allclose(program.evaluate([x, y], ["output"])["output"], expected, rtol=1e-5, atol=1e-5)
        program.step([x, y], ())  # it trains on from there
        np.testing.assert_allclose(program.state()["model/fc/weights"], weights, atol=0.05)


@pytest.mark.parametrize(("text", "received"), [(SOFTMAX, "outputs by LogSoftmax"), (UNBIASED, "outputs by MatMul")])
def test_only_the_last_step_of_a_network_can_be_fitted(text: str, received: str) -> None:
    with built(text) as program:
        before = program.state()["model/fc/weights"]
        with pytest.raises(ConfigurationError, match=received):
            program.set_head(np.zeros((4, 3), np.float32), np.zeros(3, np.float32))
        np.testing.assert_array_equal(program.state()["model/fc/weights"], before)
