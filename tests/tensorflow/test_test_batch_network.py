"""Test batches of TensorFlow networks: a rate for the guide's auto-encoder, errors at their line, shipped facts."""

from __future__ import annotations

import pytest

from ziggurat.errors import NetworkCodeError
from ziggurat.settings import Settings
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.bootstrap import open_studio
from ziggurat.workspace.studio.measurements import Measurements
from ziggurat.workspace.tasks import run_task
from ziggurat.workspace.training_estimates import facts_of

pytestmark = pytest.mark.tensorflow

_SPEC = {"kind": "train", "version": 1, "data": "digits", "backend": "tensorflow"}

# The auto-encoder of "Getting Started With TensorFlow In DIGITS": at the usual rate its loss is soon not finite.
_AUTO_ENCODER = """
class UserModel(Tower):
    @model_property
    def inference(self):
        image_dim = self.input_shape[0] * self.input_shape[1]
        with slim.arg_scope([slim.fully_connected],
                            weights_initializer=tf.contrib.layers.xavier_initializer(),
                            weights_regularizer=slim.l2_regularizer(0.0005)):
            model = tf.reshape(self.x, shape=[-1, image_dim])
            model = slim.fully_connected(model, 300, scope='fc1')
            model = slim.fully_connected(model, 50, scope='fc2')
            model = slim.fully_connected(model, 300, scope='fc3')
            model = slim.fully_connected(model, image_dim, activation_fn=None, scope='fc4')
            return tf.reshape(model, shape=[-1] + list(self.input_shape))

    @model_property
    def loss(self):
        return digits.mse_loss(tf.reshape(self.x, shape=[-1] + list(self.input_shape)), self.inference)
"""


@pytest.fixture
def studio(tmp_path):
    with open_studio(Settings(workspace=tmp_path / "workspace"), start=False) as opened:
        yield opened


def own(text):
    return {**_SPEC, "network": {"source": "file", "path": "mine.py", "text": text}}


@pytest.mark.nightly
def test_a_rate_for_the_auto_encoder_of_the_guide(studio):
    spec = own(_AUTO_ENCODER)
    found = studio.training.test_batch(JobRequest(spec=spec))

    rate = found["rate"]
    assert not rate["own"]["finite"], "0.01 is too much for it"
    assert 1e-8 < rate["suggested"] < rate["largest_finite"] < 0.01
    checked = studio.training.preflight(JobRequest(spec=spec), describe=False)
    (warning,) = [each for each in checked["findings"] if each["name"] == "rate"]
    assert (warning["level"], warning["fix"]["fields"]["learning_rate"]) == ("warning", rate["suggested"])
    again = studio.training.test_batch(JobRequest(spec={**spec, "learning_rate": rate["suggested"]}))
    assert again["rate"]["own"]["finite"]


def test_a_broken_network_fails_at_its_line(studio):
    broken = _AUTO_ENCODER.replace("slim.fully_connected(model, 50", "slim.fully_conected(model, 50")
    with pytest.raises(NetworkCodeError) as error:
        studio.training.test_batch(JobRequest(spec=own(broken)))

    line = 1 + broken.splitlines().index("            model = slim.fully_conected(model, 50, scope='fc2')")
    assert error.value.details["line"] == line


def test_a_standard_network_is_measured(studio):
    found = studio.training.test_batch(JobRequest(spec={**_SPEC, "network": "lenet"}), find_rate=False)

    assert found["checkpoint_bytes"] > 4 * 431_080
    assert found["largest_batch"] >= 64
    assert found["validation_s"] > 0


@pytest.mark.parametrize(
    ("network", "shape"), [("lenet", [28, 28, 1]), ("mobilenet_v2", [64, 64, 3]), ("unet_small", [64, 64, 3])]
)
def test_shipped_facts_are_those_of_the_networks(tmp_path, network, shape):
    described = run_task("describe", {"network": network, "input_shape": shape, "classes": 10})

    assert Measurements(tmp_path / "none").facts("tensorflow", network, shape, 10) == facts_of(described)
