"""Networks whose inference differs from their training: an input of its own, a scaled one, and one that fails."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from tensorflow_jobs import digit_pictures, quick_job, save_pictures

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.errors import ConfigurationError, NetworkCodeError
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict

NOISE, CLASSES = 5, 10

CONDITIONAL = """
class UserModel(Tower):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        rows = tf.shape(self.x)[0]
        if self.is_inference:
            self.x = tf.reshape(self.x, [rows, 5 + 10])
            self.z, self.code = self.x[:, :5], self.x[:, 5:]
        else:
            self.images = self.x / 255.0
            self.z, self.code = tf.random_normal([rows, 5]), tf.one_hot(self.y, 10)
        net = slim.fully_connected(tf.concat([self.z, self.code], 1), 784, activation_fn=tf.nn.sigmoid, scope='made')
        self.made = tf.reshape(net, [rows, 28, 28, 1])

    @model_property
    def inference(self):
        return self.made

    @model_property
    def loss(self):
        self.summaries.append(tf.summary.scalar('largest', tf.reduce_max(self.made)))
        return digits.mse_loss(self.made, self.images)
"""

SCALED = """
class UserModel(Tower):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.x = self.x / 255.0

    @model_property
    def inference(self):
        return self.x * tf.get_variable('one', (), tf.float32, tf.ones_initializer())

    @model_property
    def loss(self):
        return digits.mse_loss(self.inference, self.x)
"""

UNTRIED = SCALED.replace(
    "        return self.x *", "        if self.is_inference:\n            self.gone\n        return self.x *"
)


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(quick_job(tmp_path_factory.mktemp("gan") / "job", CONDITIONAL, steps=1))


def values(job: str, **request: object) -> np.ndarray:
    found = predict({"folder": job, **request})
    return np.array([each["outputs"]["output"]["values"] for each in found["predictions"]])


def test_a_network_generates_from_an_input_of_its_own(generator: str) -> None:
    made = values(generator, count=3, seed=7)
    assert made.shape == (3, 28, 28, 1)
    np.testing.assert_array_equal(made, values(generator, count=3, seed=7))
    rows = np.zeros((2, NOISE + CLASSES))
    rows[0, NOISE], rows[1, NOISE + 3] = 1, 1
    zero, three = values(generator, count=2, inputs={"x": rows.tolist()})
    assert np.abs(zero - three).max() > 1e-3


def test_an_image_is_refused_where_a_network_predicts_from_noise(generator: str, tmp_path: Path) -> None:
    paths = save_pictures(tmp_path, digit_pictures()[0][:1])
    with pytest.raises(ConfigurationError, match=r"The input `x` of this network is missing: .*`--count`.*\(15,\)"):
        predict({"folder": generator, "images": paths})


def test_an_input_scaled_in_place_is_scaled_in_predictions(tmp_path: Path) -> None:
    job = str(quick_job(tmp_path / "job", SCALED))
    pictures = digit_pictures()[0][:2]
    made = values(job, images=save_pictures(tmp_path, pictures))
    np.testing.assert_allclose(made, pictures / 255, atol=1e-6)


def test_failing_inference_keeps_no_training_nor_evaluation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        job = str(quick_job(tmp_path / "job", UNTRIED, steps=1))
    assert "The network cannot predict" in caplog.text
    assert evaluate({"folder": job, "split": "val"})["scalars"]["cost"] == pytest.approx(0, abs=1e-6)
    with pytest.raises(NetworkCodeError, match="gone"):
        predict({"folder": job, "images": save_pictures(tmp_path, digit_pictures()[0][:1])})
