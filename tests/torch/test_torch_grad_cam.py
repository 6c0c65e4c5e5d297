"""Grad-CAM on PyTorch finds the place that decides the class, before a softmax, and says what it cannot do."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch_jobs import digit_pictures, task_job

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.trained import TrainedTorch
from ziggurat.dataflow.images import encode_image
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import UnknownNameError, UsageError
from ziggurat.worker.inference.handlers import WarmModel
from ziggurat.worker.inference.views import grad_cam, heat_of, resized

SIDE_PX, PATCH_PX, CLASSES = 32, 8, 4

LENET = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, padding=2)
        self.conv2 = nn.Conv2d(8, 16, 5, padding=2)
        self.fc1 = nn.Linear(16 * 8 * 8, 32)
        self.fc2 = nn.Linear(32, nclasses)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x * 0.0125)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))
"""
TOWER = """
class UserModel(Tower):
    def build(self):
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        )
        self.fc1 = nn.Linear(16 * 8 * 8, 32)
        self.fc2 = nn.Linear(32, self.nclasses)

    @model_property
    def inference(self):
        x = self.features(self.x * 0.0125)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""
SOFTMAX = LENET.replace("return self.fc2(", "return torch.softmax(self.fc2(").replace(
    "flatten(1))))", "flatten(1)))), 1)"
)
SOFTMAX += """
    def loss(self, output, y):
        return F.nll_loss(output.log(), y)
"""
MIXED = LENET.replace("return self.fc2(", "net = self.fc2(")
MIXED += "        return 0.5 * net.softmax(1) + 0.5 * net.softmax(1)\n"
MIXED += "\n    def loss(self, output, y):\n        return F.nll_loss(output.log(), y)\n"
FROZEN = LENET.replace("        self.fc1 =", "        self.conv1.requires_grad_(False)\n        self.fc1 =")
DENSE = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(1024, nclasses)

    def forward(self, x):
        return self.fc1(x.flatten(1) / 255)
"""
DETACHED = LENET.replace("x.flatten(1)", "x.flatten(1).detach()")


def patches(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return noise with a bright patch, its quarter as the class, and the patches' corners."""
    random = np.random.default_rng(seed)
    images = random.uniform(0, 60, (count, SIDE_PX, SIDE_PX, 1)).astype(np.float32)
    labels = random.integers(0, CLASSES, count)
    half = SIDE_PX // 2
    corners = np.stack([labels // 2, labels % 2], axis=1) * half + random.integers(1, half - PATCH_PX, (count, 2))
    for image, (top, left) in zip(images, corners, strict=True):
        image[top : top + PATCH_PX, left : left + PATCH_PX] += 180
    return images, labels.astype(np.int64), corners


def request(text: str) -> ProgramRequest:
    fields: dict[str, Any] = {"batch_size": 32, "optimizer": "adam", "learning_rate": 0.002, "seed": 5}
    return ProgramRequest(network="net.py", network_text=text, **class_arrays((SIDE_PX, SIDE_PX, 1), CLASSES), **fields)


@functools.cache
def opened(text: str, steps: int = 0) -> TrainedTorch:
    program = TorchBackend().build(request(text))
    for step in range(steps):
        images, labels, _ = patches(32, seed=step)
        program.step([images, labels], ())
    return TrainedTorch(request(text), program.state())


@pytest.mark.parametrize(
    ("text", "layers", "usual"),
    [
        (LENET, ["conv1", "relu", "max_pool2d", "conv2", "relu_1", "max_pool2d_1"], "relu_1"),
        (TOWER, [f"features.{number}" for number in range(6)], "features.4"),
    ],
)
def test_the_hottest_place_lies_in_the_deciding_patch(text: str, layers: list[str], usual: str) -> None:
    network = opened(text, steps=120)
    assert network.map_layers() == (layers, usual)
    images, labels, corners = patches(30, seed=9_999)
    found = network.predict(images)["probabilities"].argmax(axis=1)
    assert (found == labels).mean() > 0.95
    hits = 0
    for image, number, (top, left) in zip(images, found, corners, strict=True):
        maps, gradients = network.maps_and_gradients(image[None], usual, int(number))
        assert maps.shape == gradients.shape == (1, 16, 16, 16)
        heat = resized(heat_of(maps[0], gradients[0])[0], (SIDE_PX, SIDE_PX))
        row, column = np.unravel_index(heat.argmax(), heat.shape)
        hits += top - 3 <= row < top + PATCH_PX + 3 and left - 3 <= column < left + PATCH_PX + 3
    assert hits >= 27


def test_gradients_are_those_of_the_score() -> None:
    network = opened(LENET)
    images = patches(3, seed=1)[0]
    maps, gradients = network.maps_and_gradients(images, "max_pool2d_1", 2)
    module: Any = network.network.module
    tail = torch.from_numpy(maps).permute(0, 3, 1, 2).contiguous().requires_grad_(True)
    hidden = torch.relu(torch.nn.functional.linear(tail.flatten(1), module.fc1.weight, module.fc1.bias))
    score = torch.nn.functional.linear(hidden, module.fc2.weight, module.fc2.bias)[:, 2]
    (expected,) = torch.autograd.grad(score.sum(), tail)
    np.testing.assert_allclose(gradients, expected.permute(0, 2, 3, 1).numpy(), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("text", [SOFTMAX, MIXED])
def test_the_score_stands_before_a_softmax(text: str) -> None:
    images = patches(2, seed=1)[0]
    network = opened(text)
    assert network.map_layers()[1] == "relu_1"
    _, gradients = network.maps_and_gradients(images, "conv2", 1)
    _, expected = opened(LENET).maps_and_gradients(images, "conv2", 1)
    if text == SOFTMAX:
        np.testing.assert_allclose(gradients, expected, rtol=1e-4, atol=1e-8)
    else:  # the logarithm of a share: the gradient of the logit less that of the mean logit
        assert np.abs(gradients).max() > 0
        assert np.isfinite(gradients).all()


def test_frozen_layers_have_gradients_too() -> None:
    _, gradients = opened(FROZEN).maps_and_gradients(patches(1, seed=1)[0], "conv1", 0)
    assert np.abs(gradients).max() > 0


def test_what_cannot_be_shown_is_told() -> None:
    assert opened(DENSE).map_layers() == ([], "")
    images = patches(1, seed=1)[0]
    with pytest.raises(UnknownNameError, match="Did you mean `conv2`"):
        opened(LENET).maps_and_gradients(images, "conv3", 0)
    with pytest.raises(UsageError, match=r"a gradient from the score of a class back to the layer `conv1`"):
        opened(DETACHED).maps_and_gradients(images, "conv1", 0)


def test_a_job_shows_its_heat_and_its_layers(tmp_path: Path) -> None:
    from ziggurat.worker.inference.views import activations

    model = WarmModel(Path(task_job("classification", tmp_path)))
    asked = {"pictures": [("digit.png", encode_image(digit_pictures()[0][0], "png"))]}
    found = grad_cam(model, {**asked, "class": "3"})
    assert (found["class"], found["layer"]) == ("3", "relu")
    assert found["layers"] == ["conv1", "norm1", "relu", "max_pool2d"]
    assert np.shape(found["heat"]) == (24, 24)
    shown = activations(model, asked)
    assert [each["name"] for each in shown["activations"]][:4] == ["mul", "conv1", "norm1", "relu"]
    assert "model/conv1.weight" in [each["name"] for each in shown["weights"]]
    model.close()
