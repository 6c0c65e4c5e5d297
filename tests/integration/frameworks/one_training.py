"""Train a small network 20 steps from given weights on one framework, and print its costs as JSON; run as a program."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.learning_rate import LearningRateSchedule
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


def main(framework: str, optimizer: str) -> None:
    text, first = {"tensorflow": (TENSORFLOW, weights()), "torch": (TORCH, for_torch(weights()))}[framework]
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
        learning_rate=0.1 if optimizer == "momentum" else 0.01,
        weight_decay=0.001,
        gradient_clip=1.0,
        pretrained=first,
    )
    costs = Costs()
    schedule = LearningRateSchedule("cosine", request.learning_rate)
    Trainer(open_backend(framework).build(request), batches, callbacks=[schedule, costs]).train(EPOCHS)
    print(json.dumps(costs.seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
