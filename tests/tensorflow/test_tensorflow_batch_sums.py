"""Losses that are divided by something else than the number of rows: two towers equal one on the same batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tensorflow_networks import batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.engine.backend import ArraySpec, ProgramRequest, class_arrays

CLASSES = """
class UserModel(Tower):
    @model_property
    def inference(self):
        return tf.layers.dense(tf.reshape(self.x, [-1, 64]) * 0.0125, self.nclasses)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""

PIXELS = """
class UserModel(Tower):
    @model_property
    def inference(self):
        return tf.layers.conv2d(self.x * 0.0125, self.nclasses, 3, padding="same")

    @model_property
    def loss(self):
        numbers = tf.cast(self.y, tf.float32)[:, None, None]
        shade = self.x[..., 0]
        labels = tf.where(shade > 3.0 * numbers, numbers + tf.zeros_like(shade), 255 * tf.ones_like(shade))
        return digits.segmentation_loss(self.inference, labels)
"""

BOXES = """
class UserModel(Tower):
    @model_property
    def predictions(self):
        points, sizes = digits.anchor_points(32, 32)
        net = tf.layers.dense(tf.reshape(self.x, [-1, 32 * 32]) * 0.01, len(points) * 7)
        net = tf.reshape(net, [-1, len(points), 7])
        distances = tf.exp(tf.clip_by_value(net[..., :4], -3.0, 3.0)) * sizes
        return tf.concat([points - distances[..., :2], points + distances[..., 2:]], axis=2), net[..., 4:], points

    @model_property
    def inference(self):
        boxes, logits, _ = self.predictions
        return tf.concat([boxes, tf.sigmoid(logits)], axis=2)

    @model_property
    def loss(self):
        boxes, logits, points = self.predictions
        return digits.detection_loss(boxes, logits, self.y, points)
"""

OBJECTS = {
    "inputs": {"x": ArraySpec((32, 32, 1))},
    "targets": {"y": ArraySpec((1, 4, 16), classes=3, has_objects=True)},
}


def batches_of_boxes() -> list[list[np.ndarray]]:
    """Return three batches of 4 images with 3, 2, 0 and 0 objects."""
    random = np.random.default_rng(0)
    found = []
    for _ in range(3):
        y = np.zeros((4, 1, 4, 16), np.float32)
        for sample, count in enumerate((3, 2, 0, 0)):
            y[sample, 0, 0, :2] = count, 16
            for row in y[sample, 0, 1 : 1 + count]:
                row[:4] = (*random.uniform(0, 12, 2), *random.uniform(8, 18, 2))
                row[5] = random.integers(0, 3)
        found.append([random.uniform(0, 255, (4, 32, 32, 1)).astype(np.float32), y])
    return found


def trained(text: str, given: Sequence[Any], towers: int, fields: Any) -> tuple[list[float], dict[str, np.ndarray]]:
    devices = tuple(f"cpu:{number}" for number in range(towers))
    request = ProgramRequest(
        network="n.py", network_text=text, devices=devices, optimizer="sgd", learning_rate=0.05, seed=1, **fields
    )
    program = TensorFlowBackend().build(request)
    costs = [float(program.step(batch, ("cost",))["cost"]) for batch in given]
    state = dict(program.state())
    program.close()
    return costs, {name: array for name, array in state.items() if name.startswith("model/")}


@pytest.mark.parametrize("text", [CLASSES, PIXELS, BOXES], ids=["classes", "pixels", "boxes"])
@pytest.mark.parametrize("parts", [1, 2])
def test_two_towers_equal_one(text: str, parts: int) -> None:
    if text is BOXES:
        given, fields = batches_of_boxes(), {**OBJECTS, "batch_size": 4}
    else:
        weights = tuple(1.0 + number for number in range(10))
        given, fields = batches(3, 32), {**class_arrays((8, 8, 1), 10), "batch_size": 32, "class_weights": weights}
    fields["gradient_accumulation_steps"] = parts
    costs, one = trained(text, given, 1, fields)
    others, two = trained(text, given, 2, fields)
    np.testing.assert_allclose(others, costs, rtol=1e-5)
    assert list(two) == list(one)
    for name, array in one.items():
        np.testing.assert_allclose(two[name], array, atol=2e-6, err_msg=name)
