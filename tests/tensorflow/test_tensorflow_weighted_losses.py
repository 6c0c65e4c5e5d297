"""Losses with class weights: validation over several batches and training in parts equal one large batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tensorflow_networks import batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.callbacks.validation import ScalarStats

PLAIN = """
class UserModel(Tower):
    @model_property
    def inference(self):
        return tf.layers.dense(tf.reshape(self.x, [-1, 64]) * 0.0125, self.nclasses)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""

REGULARIZED = PLAIN.replace("self.nclasses)", "self.nclasses, kernel_regularizer=slim.l2_regularizer(0.1))")

OWN = PLAIN.replace(
    "digits.classification_loss(self.inference, self.y)",
    "tf.losses.sparse_softmax_cross_entropy(labels=self.y, logits=self.inference)",
)

TWO_LOSSES = """
class UserModel(Tower):
    @model_property
    def sums(self):
        return tf.layers.dense(tf.reshape(self.x, [-1, 64]) * 0.0125, 1, name="sums")[:, 0]

    @model_property
    def inference(self):
        return tf.layers.dense(tf.reshape(self.x, [-1, 64]) * 0.0125, self.nclasses, name="classes")

    @model_property
    def loss(self):
        sums = digits.mse_loss(self.sums, tf.cast(self.y, tf.float32) / 10.0)
        classes = digits.classification_loss(self.inference, self.y)
        return [
            {"loss": loss, "vars": [each for each in tf.trainable_variables() if f"/{name}/" in each.name]}
            for name, loss in (("sums", sums), ("classes", classes))
        ]
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

FACTORS = tuple(float(number**2) for number in range(10))  # class 0 has the weight 0


def build(text: str, towers: int = 1, **fields: Any) -> Any:
    chosen: dict[str, Any] = {**class_arrays((8, 8, 1), 10), "batch_size": 24, "class_weights": FACTORS, **fields}
    devices = tuple(f"cpu:{number}" for number in range(towers))
    request = ProgramRequest(
        network="n.py",
        network_text=text,
        devices=devices,
        optimizer="momentum",
        learning_rate=0.05,
        seed=1,
        **chosen,
    )
    return TensorFlowBackend().build(request)


def rows(count: int) -> list[np.ndarray]:
    """Return digits ordered by class, so that batches have different sums of weights."""
    x, y = batches(1, count)[0]
    order = np.argsort(y, kind="stable")
    return [x[order], y[order]]


def validation_cost(program: Any, data: Sequence[np.ndarray], size: int) -> float:
    """Return the cost over all rows, in batches of a size."""
    stats = ScalarStats("cost")
    stats.before_inference()
    for first in range(0, len(data[0]), size):
        batch = [each[first : first + size] for each in data]
        stats.on_values(program.evaluate(batch, ("cost",)), batch)
    return stats.after_inference()["validation_cost"]


@pytest.mark.parametrize("text", [PLAIN, REGULARIZED, TWO_LOSSES, PIXELS], ids=["plain", "l2", "list", "pixels"])
def test_weighted_cost_does_not_depend_on_the_batch_size(text):
    program, data = build(text), rows(50)
    whole = float(program.evaluate(data, ("cost",))["cost"])
    assert [validation_cost(program, data, size) for size in (3, 16, 50)] == pytest.approx([whole] * 3, rel=1e-5)
    assert program.has_rival_losses() is (text is TWO_LOSSES)
    program.close()


def test_own_loss_counts_by_samples():
    program, data = build(OWN), rows(23)
    parts = [float(program.evaluate([each[s] for each in data], ("cost",))["cost"]) for s in (slice(16), slice(16, 23))]
    assert validation_cost(program, data, 16) == pytest.approx((16 * parts[0] + 7 * parts[1]) / 23, rel=1e-6)
    program.close()


def trained(text: str, towers: int, parts: int) -> dict[str, np.ndarray]:
    program = build(text, towers, gradient_accumulation_steps=parts, weight_decay=0.01)
    for _ in range(3):
        program.step(rows(24), ("cost",))
    state = dict(program.state())
    program.close()
    return {name: array for name, array in state.items() if name.startswith("model/")}


@pytest.mark.parametrize("text", [PLAIN, REGULARIZED, TWO_LOSSES, PIXELS], ids=["plain", "l2", "list", "pixels"])
@pytest.mark.parametrize(("towers", "parts"), [(1, 3), (2, 4)])
def test_weighted_parts_equal_the_whole_batch(text, towers, parts):
    whole, split = trained(text, 1, 1), trained(text, towers, parts)
    for name, values in whole.items():
        np.testing.assert_allclose(split[name], values, rtol=2e-4, atol=2e-6, err_msg=name)


def test_checkpoint_has_no_sums_of_weights():
    weighted, plain = (build(PLAIN, gradient_accumulation_steps=2, class_weights=each) for each in (FACTORS, ()))
    assert sorted(weighted.state()) == sorted(plain.state())
    weighted.close()
    plain.close()


def test_batch_of_weight_zero_changes_nothing():
    program = build(PLAIN, batch_size=8, gradient_accumulation_steps=2)
    x, y = batches(1, 8)[0]
    batch = [x, np.zeros_like(y)]
    before = program.state()["model/dense/kernel"]
    assert float(program.step(batch, ("cost",))["cost"]) == 0.0
    np.testing.assert_array_equal(program.state()["model/dense/kernel"], before)
    assert validation_cost(program, batch, 3) == 0.0
    program.close()
