"""Networks and images whose class is decided by where a bright patch is, for the tests of Grad-CAM."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.export.provider import TrainedTower
from ziggurat.engine.backend import ProgramRequest, class_arrays

SIDE_PX, PATCH_PX = 32, 8
CLASSES = 4
"""The quarter in which the patch is."""

LENET = """
class UserModel(Tower):
    @model_property
    def inference(self):
        net = self.x * 0.0125
        with slim.arg_scope([slim.conv2d, slim.max_pool2d], data_format='NHWC'):
            net = slim.conv2d(net, 8, [5, 5], scope='conv1')
            net = slim.max_pool2d(net, [2, 2], scope='pool1')
            net = slim.conv2d(net, 16, [5, 5], scope='conv2')
            net = slim.max_pool2d(net, [2, 2], scope='pool2')
        net = slim.flatten(net)
        net = slim.fully_connected(net, 32, scope='fc1')
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope='fc2')

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""

LENET_CHANNELS_FIRST = (
    LENET.replace("net = self.x * 0.0125", "net = tf.transpose(self.x * 0.0125, (0, 3, 1, 2))")
    .replace("'NHWC'", "'NCHW'")
    .replace("slim.flatten(net)", "slim.flatten(tf.transpose(net, (0, 2, 3, 1)))")
)


def patches(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return images (N, 32, 32, 1) float32 of noise with a bright patch, their classes, and the patches' corners."""
    random = np.random.default_rng(seed)
    pictures = random.uniform(0, 60, (count, SIDE_PX, SIDE_PX, 1)).astype(np.float32)
    labels = random.integers(0, CLASSES, count)
    half = SIDE_PX // 2
    corners = np.stack([labels // 2, labels % 2], axis=1) * half + random.integers(1, half - PATCH_PX, (count, 2))
    for picture, (top, left) in zip(pictures, corners, strict=True):
        picture[top : top + PATCH_PX, left : left + PATCH_PX] += 180
    return pictures, labels.astype(np.int64), corners


def request_of(network: str, **changes: Any) -> ProgramRequest:
    """Return a request for a network file."""
    fields = {"batch_size": 32, "optimizer": "adam", "learning_rate": 0.002, "seed": 5}
    fields |= {**class_arrays((SIDE_PX, SIDE_PX, 1), CLASSES), "network": "net.py", "network_text": network}
    return ProgramRequest(**{**fields, **changes})


@functools.cache
def trained_arrays(network: str, steps: int = 150) -> dict[str, np.ndarray]:
    """Return the weights of a network that tells the quarters apart."""
    program = TensorFlowBackend().build(request_of(network))
    for step in range(steps):
        pictures, labels, _ = patches(32, seed=step)
        program.step([pictures, labels], ())
    arrays = dict(program.state())
    program.close()
    return arrays


def opened(network: str, arrays: dict[str, np.ndarray], **changes: Any) -> TrainedTower:
    """Return a network with weights."""
    return TrainedTower(request_of(network, **changes), arrays)
