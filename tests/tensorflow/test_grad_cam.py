"""Grad-CAM finds the place that decides the class, in either order of axes, and says what it cannot do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from grad_cam_networks import LENET, LENET_CHANNELS_FIRST, PATCH_PX, SIDE_PX, opened, patches, trained_arrays
from tensorflow_jobs import AUTOENCODER, digit_pictures, lenet_job, quick_job

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.export.gradients import class_scores
from ziggurat.backends.tensorflow.export.provider import TrainedTower
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow.images import encode_image
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.capabilities import SupportsGradients
from ziggurat.errors import ConfigurationError, NetworkCodeError, NonFiniteError, UsageError
from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool
from ziggurat.worker.inference.handlers import WarmModel
from ziggurat.worker.inference.views import grad_cam, heat_of, resized

_CLASS_3: dict[str, Any] = {"class": "3"}  # a word of the language, so it cannot stand before an `=`
_NOSE: dict[str, Any] = {"class": "nose"}

_HEAD = """
class UserModel(Tower):
    @model_property
    def inference(self):
{body}

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""

POOLED = _HEAD.format(
    body="""
        net = slim.conv2d(self.x, 6, [3, 3], scope='conv')
        net = tf.reduce_mean(net, [1, 2], keep_dims=True, name='pool')
        return slim.fully_connected(slim.flatten(net), self.nclasses, activation_fn=None, scope='fc')"""
)
DENSE = _HEAD.format(
    body="""
        return slim.fully_connected(slim.flatten(self.x / 255.0), self.nclasses, activation_fn=None, scope='fc')"""
)
UNNAMED = _HEAD.format(
    body="""
        kernel = tf.get_variable('kernel', [3, 3, 1, 4])
        second = tf.get_variable('second', [3, 3, 4, 4])
        net = tf.nn.relu(tf.nn.conv2d(self.x, kernel, 1, 'SAME'))
        net = tf.nn.relu(tf.nn.conv2d(net, second, 1, 'SAME'))
        net = tf.nn.max_pool2d(net, 2, 2, 'VALID')
        return slim.fully_connected(slim.flatten(net), self.nclasses, activation_fn=None, scope='fc')"""
)


@contextmanager
def fresh(text: str, **changes: Any) -> Iterator[TrainedTower]:
    """Give a network with its first weights."""
    fields = {"network": "net.py", "network_text": text, **class_arrays((SIDE_PX, SIDE_PX, 1), 4)}
    request = ProgramRequest(**{**fields, **changes})
    program = TensorFlowBackend().build(request)
    arrays = dict(program.state())
    program.close()
    tower = TrainedTower(request, arrays)
    yield tower
    tower.close()


@contextmanager
def warm(folder: Path) -> Iterator[WarmModel]:
    """Give an open job."""
    model = WarmModel(folder)
    yield model
    model.close()


def asked(**fields: Any) -> dict[str, Any]:
    """Return a request about a digit."""
    return {"pictures": [("digit.png", encode_image(digit_pictures()[0][0], "png"))], **fields}


def heats(network: TrainedTower, pictures: np.ndarray, layer: str) -> list[np.ndarray]:
    """Return, for the likeliest class of each image, the heat of its pixels."""
    numbers = network.predict(pictures)["probabilities"].argmax(axis=1)
    found = []
    for picture, number in zip(pictures, numbers, strict=True):
        maps, gradients = network.maps_and_gradients(picture[None], layer, int(number))
        found.append(resized(heat_of(maps[0], gradients[0])[0], (SIDE_PX, SIDE_PX)))
    return found


# ---- what it finds


def test_the_hottest_place_lies_in_the_deciding_patch() -> None:
    pictures, labels, corners = patches(40, seed=9_999)
    network = opened(LENET, trained_arrays(LENET))
    assert isinstance(network, SupportsGradients)
    assert network.map_layers() == (["conv1", "pool1", "conv2", "pool2"], "conv2")
    assert (network.predict(pictures)["probabilities"].argmax(axis=1) == labels).mean() > 0.95

    hits = 0
    for heat, (top, left) in zip(heats(network, pictures, "conv2"), corners, strict=True):
        assert heat.shape == (SIDE_PX, SIDE_PX)
        assert heat.min() >= 0
        assert 0.9 < heat.max() <= 1
        row, column = np.unravel_index(heat.argmax(), heat.shape)
        hits += top <= row < top + PATCH_PX and left <= column < left + PATCH_PX
    assert hits >= 37  # 3 of 40 by chance; 39 or 40 were found
    network.close()


def test_channels_first_finds_the_same() -> None:
    pictures, _, _ = patches(4, seed=77)
    arrays = trained_arrays(LENET)
    last, first = opened(LENET, arrays), opened(LENET_CHANNELS_FIRST, arrays)
    try:
        first.predict(pictures)
    except NetworkCodeError as error:
        if "only supports NHWC" not in str(error):
            raise
        pytest.skip(f"This processor cannot: {error}")
    names, usual = first.map_layers()
    assert (names[:4], usual) == (["conv1", "pool1", "conv2", "pool2"], "conv2")
    for name in names[:4]:
        for one, other in zip(
            last.maps_and_gradients(pictures, name, 2), first.maps_and_gradients(pictures, name, 2), strict=True
        ):
            assert one.shape == other.shape
            assert one == pytest.approx(other, abs=1e-4)
        for one, other in zip(heats(last, pictures, name), heats(first, pictures, name), strict=True):
            assert one == pytest.approx(other, abs=1e-4)
    (turned,) = names[4:]  # back to channels last, before the dense layers
    for one, other in zip(heats(first, pictures, "pool2"), heats(first, pictures, turned), strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    last.close()
    first.close()


def test_before_a_pooled_head_it_is_the_class_activation_map() -> None:
    pictures, _, _ = patches(1, seed=3)
    with fresh(POOLED) as network:
        assert network.map_layers() == (["conv"], "conv")  # the pooled maps have one place only
        maps, gradients = network.maps_and_gradients(pictures, "conv", 1)
        layers = network.layer_outputs(pictures)
    assert (maps == layers["conv"]).all()
    # The head is linear in the means of the maps, so each place has the same gradient.
    assert gradients == pytest.approx(np.broadcast_to(gradients[:, :1, :1], gradients.shape), abs=1e-9)
    mean = layers["conv"].mean(axis=(1, 2))
    score = (gradients[:, 0, 0] * mean).sum() * SIDE_PX**2
    assert score == pytest.approx(layers["output"][0, 1], rel=1e-4)  # biases begin at 0


def test_gradients_are_those_of_the_score_before_the_softmax() -> None:
    pictures, _, _ = patches(1, seed=4)
    softmax = POOLED.replace("scope='fc')", "scope='fc')\n        return tf.reshape(tf.nn.softmax(logits), [-1, 4])")
    softmax = softmax.replace("return slim.fully_connected", "logits = slim.fully_connected")
    with fresh(POOLED, seed=7) as plain, fresh(softmax, seed=7) as squashed:
        wanted, found = (each.maps_and_gradients(pictures, "conv", 2) for each in (plain, squashed))
    assert np.abs(wanted[1]).max() > 0
    assert found[0] == pytest.approx(wanted[0])
    assert found[1] == pytest.approx(wanted[1])


def test_without_logits_the_score_is_the_log_probability() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        heads = tf.constant([[1.0, 2.0]]), tf.constant([[0.0, 3.0]])
        mixed = tf.add_n([tf.nn.softmax(each) for each in heads]) / 2.0
        scores, probabilities = session.run([class_scores(mixed, 2), mixed])
    assert scores == pytest.approx(np.log(probabilities))


def test_the_usual_layer_is_the_last_convolution_unpooled() -> None:
    with fresh(UNNAMED) as network:
        names, usual = network.map_layers()
        assert names == ["Conv2D", "Relu", "Conv2D_1", "Relu_1", "MaxPool2d"]
        assert usual == "Relu_1"


def test_the_graph_grows_once_for_each_layer() -> None:
    pictures, _, _ = patches(2, seed=5)
    with fresh(POOLED) as network:
        graph = network._session.graph
        before = len(graph.get_operations())
        network.predict(pictures)
        assert len(graph.get_operations()) == before
        network.maps_and_gradients(pictures, "conv", 0)
        grown = len(graph.get_operations())
        network.maps_and_gradients(pictures[:1], "conv", 3)
        assert before < grown == len(graph.get_operations())


# ---- what is asked of a warm network


@pytest.mark.nightly
def test_a_warm_process_tells_it_by_class_and_layer(tmp_path: Path) -> None:
    name, content = asked()["pictures"][0]
    with InferencePool(INFERENCE_COMMAND, os.environ) as pool:
        said = pool.predict(lenet_job(), None, [(name, content)], 10)["predictions"][0]
        found = pool.grad_cam(lenet_job(), None, (name, content))
        other = pool.grad_cam(lenet_job(), None, (name, content), layer="pool1", **_CLASS_3)
        with pytest.raises(ConfigurationError, match="`nose` is not a known class of this network"):
            pool.grad_cam(lenet_job(), None, (name, content), **_NOSE)
        with pytest.raises(
            ConfigurationError, match=r"`fc1` is not a known layer with maps\. Known: conv1, conv2, pool1"
        ):
            pool.grad_cam(lenet_job(), None, (name, content), layer="fc1")
    best = said["classes"][0]
    assert (found["class"], found["number"]) == (best["class"], best["number"])
    assert found["probability"] == pytest.approx(best["probability"])
    assert (found["layer"], found["layers"]) == ("conv2", ["conv1", "pool1", "conv2", "pool2"])
    assert (np.shape(found["heat"]), np.shape(other["heat"])) == ((6, 6), (10, 10))
    assert np.max(found["heat"]) == 1.0
    assert np.min(found["heat"]) >= 0.0
    assert (other["class"], other["number"], other["layer"]) == ("3", 3, "pool1")
    for png in (found["png"], found["heat_png"]):  # cropped to 24 pixels, each of which is shown by 11
        shown = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
        assert shown is not None
        assert shown.shape == (264, 264, 3)


@pytest.mark.parametrize(
    ("network", "rule"),
    [
        (DENSE, "This network has no layer with maps for Grad-CAM: what a convolution gives, before the dense layers"),
        (AUTOENCODER, "This network does not give one number for each class, and Grad-CAM is for those that do"),
    ],
)
def test_a_network_that_has_no_maps_or_classes_is_refused(tmp_path: Path, network: str, rule: str) -> None:
    with warm(quick_job(tmp_path / "job", network)) as model, pytest.raises(UsageError, match=rule):
        grad_cam(model, asked())


def test_one_picture_is_asked_about_and_numbers_are_finite(tmp_path: Path) -> None:
    broken = POOLED.replace("self.x, 6", "self.x / 0.0, 6").replace("scope='conv'", "activation_fn=None, scope='conv'")
    with warm(quick_job(tmp_path / "job", broken)) as model:
        with pytest.raises(UsageError, match="one image"):
            grad_cam(model, {"pictures": asked()["pictures"] * 2})
        with pytest.raises(NonFiniteError, match="The layer `conv` gives NaN or infinities"):
            grad_cam(model, asked())


def test_a_layer_without_a_gradient_is_named(tmp_path: Path) -> None:
    cut = POOLED.replace("net = tf.reduce_mean(net,", "net = tf.stop_gradient(net)\n        net = tf.reduce_mean(net,")
    with (
        warm(quick_job(tmp_path / "job", cut)) as model,
        pytest.raises(UsageError, match=r"a gradient .* layer `conv`"),
    ):
        grad_cam(model, asked(layer="conv"))
