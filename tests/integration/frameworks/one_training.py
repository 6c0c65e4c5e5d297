"""Train a small network 20 steps from given weights on one framework, and print its costs as JSON; run as a program."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.learning_rate import LearningRateSchedule
from ziggurat.engine.callbacks.setters import ScheduledHyperParamSetter
from ziggurat.engine.fine_tuning import FineTuningRequest
from ziggurat.engine.trainer import Trainer
from ziggurat.entities.backend_info import open_backend

TENSORFLOW = """
class UserModel(Tower):
    @model_property
    def inference(self):
        net = slim.conv2d(self.x / 255.0, 6, [3, 3], padding="VALID", scope="conv1")
        net = slim.max_pool2d(net, [2, 2], scope="pool1")
        return slim.fully_connected(slim.flatten(net), self.nclasses, activation_fn=None, scope="fc1")

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""

TORCH = """
class UserModel(Tower):
    def build(self):
        self.conv1 = nn.Conv2d(1, 6, 3)
        self.fc1 = nn.Linear(54, self.nclasses)

    @model_property
    def inference(self):
        net = F.max_pool2d(F.relu(self.conv1(self.x / 255.0)), 2)
        return self.fc1(net.flatten(1))

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""

NORMED_TENSORFLOW = """
def batch_norm(net, is_training):
    with tf.variable_scope("bn1"):
        channels = [net.shape[-1]]
        weight = tf.get_variable("weight", channels, initializer=tf.ones_initializer())
        bias = tf.get_variable("bias", channels, initializer=tf.zeros_initializer())
        mean = tf.get_variable("running_mean", channels, initializer=tf.zeros_initializer(), trainable=False)
        variance = tf.get_variable("running_var", channels, initializer=tf.ones_initializer(), trainable=False)
        if not is_training:
            return tf.nn.fused_batch_norm(net, weight, bias, mean, variance, epsilon=1e-5, is_training=False)[0]
        net, batch_mean, batch_variance = tf.nn.fused_batch_norm(net, weight, bias, epsilon=1e-5)
        for average, value in ((mean, batch_mean), (variance, batch_variance)):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(average, 0.1 * (average - value)))
        return net
""" + TENSORFLOW.replace(
    'scope="conv1")',
    'scope="conv1", activation_fn=None, biases_initializer=None)\n'
    "        net = tf.nn.relu(batch_norm(net, self.is_training))",
)

NORMED_TORCH = TORCH.replace(
    "nn.Conv2d(1, 6, 3)", "nn.Conv2d(1, 6, 3, bias=False)\n        self.bn1 = nn.BatchNorm2d(6)"
).replace("F.relu(self.conv1(self.x / 255.0))", "F.relu(self.bn1(self.conv1(self.x / 255.0)))")

TUNED = FineTuningRequest(backbone_rate=0.3, layer_decay=0.7)

STEPS_IN_EPOCH, EPOCHS = 10, 2


class Costs(Callback):
    """Keeps the cost of every step."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def declares(self) -> Sequence[str]:
        return ("cost",)

    def before_run(self) -> Sequence[str]:
        return ("cost",)

    def after_run(self, values: Mapping[str, Any]) -> None:
        self.seen.append(float(values["cost"]))


def weights() -> dict[str, np.ndarray]:
    """Return the first weights under TensorFlow's names, in its order of axes."""
    random = np.random.default_rng(3)
    return {
        "model/conv1/weights": random.normal(0, 0.3, (3, 3, 1, 6)).astype(np.float32),
        "model/conv1/biases": random.normal(0, 0.1, 6).astype(np.float32),
        "model/fc1/weights": random.normal(0, 0.1, (54, 10)).astype(np.float32),
        "model/fc1/biases": np.zeros(10, np.float32),
    }


def for_torch(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the same weights as PyTorch has them: channels come first, also in what is flattened."""
    rows = given["model/fc1/weights"].reshape(3, 3, 6, 10)
    return {
        "model/conv1.weight": given["model/conv1/weights"].transpose(3, 2, 0, 1),
        "model/conv1.bias": given["model/conv1/biases"],
        "model/fc1.weight": rows.transpose(3, 2, 0, 1).reshape(10, 54),
        "model/fc1.bias": given["model/fc1/biases"],
    }


def with_norm(given: Mapping[str, np.ndarray], separator: str) -> dict[str, np.ndarray]:
    """Return the weights with those of a batch norm whose statistics are not those of the data.

    It stands for the biases before it, whose gradients would be nothing but rounding: Adam makes large steps of it.
    """
    norm = {"weight": 1.1, "bias": 0.1, "running_mean": 0.2, "running_var": 0.5}
    return {
        **{name: array for name, array in given.items() if not name.startswith("model/conv1") or "weight" in name},
        **{f"model/bn1{separator}{name}": np.full(6, value, np.float32) for name, value in norm.items()},
    }


def main(framework: str, optimizer: str, how: str = "whole") -> None:
    """Train, and print the costs.

    Args:
        framework: backend that trains.
        optimizer: its name.
        how: ``whole`` for all layers alike, ``tuned`` for a frozen first epoch and rates by stage, with a batch norm.
    """
    text, first = {"tensorflow": (TENSORFLOW, weights()), "torch": (TORCH, for_torch(weights()))}[framework]
    tuned = None
    if how == "tuned":
        text, separator = {"tensorflow": (NORMED_TENSORFLOW, "/"), "torch": (NORMED_TORCH, ".")}[framework]
        first, tuned = with_norm(first, separator), TUNED
    random = np.random.default_rng(4)
    x = random.uniform(0, 255, (STEPS_IN_EPOCH * 16, 8, 8, 1)).astype(np.float32)
    y = random.integers(0, 8, len(x))
    x[np.arange(len(x)), y] = 255.0  # the bright row is the class
    batches = [[x[at : at + 16], y[at : at + 16]] for at in range(0, len(x), 16)]
    request = ProgramRequest(
        network="small.py",
        network_text=text,
        **class_arrays((8, 8, 1), 10),
        batch_size=16,
        optimizer=optimizer,
        learning_rate=(0.1 if optimizer == "momentum" else 0.01) * (1 if tuned is None else 0.5),
        weight_decay=0.001,
        gradient_clip=1.0,
        pretrained=first,
        fine_tuning=tuned,
    )
    costs = Costs()
    callbacks: list[Callback] = [LearningRateSchedule("cosine", request.learning_rate), costs]
    if tuned is not None:
        callbacks.insert(0, ScheduledHyperParamSetter("backbone_rate", [(0, 0.0), (1, 1.0)]))
    Trainer(open_backend(framework).build(request), batches, callbacks=callbacks).train(EPOCHS)
    print(json.dumps(costs.seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
