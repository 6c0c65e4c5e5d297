"""The weights that come with Ziggurat are loaded by name on both frameworks, and give the same there."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from backbone import clothes, program_of, weights_in
from safetensors.numpy import load_file
from torch.nn import functional

from ziggurat.zoo.public_weights import public_weights

pytestmark = pytest.mark.torch
needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tf_slim") is None, reason="TensorFlow or tf-slim is not installed"
)


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    return load_file(public_weights("convnet-fashion").packaged_path)


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    """The folder of weights of a workspace."""
    return weights_in(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def three_classes(tmp_path_factory) -> str:
    """A folder with three classes of small images."""
    folder = tmp_path_factory.mktemp("three")
    rng = np.random.default_rng(0)
    for name in "abc":
        (folder / name).mkdir()
        for number in range(8):
            cv2.imwrite(str(folder / name / f"{number}.png"), rng.integers(0, 255, (28, 28)).astype(np.uint8))
    return str(folder)


@pytest.fixture(scope="module")
def on_tensorflow(weights, three_classes, tmp_path_factory) -> dict[str, np.ndarray]:
    """What ``backbone_on_tensorflow`` returns."""
    script, path = Path(__file__).with_name("backbone_on_tensorflow.py"), tmp_path_factory.mktemp("found") / "found.npz"
    command = [sys.executable, str(script), str(weights), three_classes, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(path) as found:
        return dict(found)


def logits_of(arrays: dict[str, np.ndarray], images: np.ndarray) -> np.ndarray:
    """Return the logits by the formula of the network, from the file alone."""
    given = {name: torch.from_numpy(array) for name, array in arrays.items()}
    net = torch.from_numpy(images).permute(0, 3, 1, 2) / 64
    for layer in ("conv1a", "conv1b", "conv2a", "conv2b", "conv3a", "conv3b"):
        net = functional.conv2d(net, given[f"{layer}.weight"], padding=1)
        mean, var, gamma, beta = (
            given[f"{layer}.norm.{each}"][:, None, None] for each in ("running_mean", "running_var", "weight", "bias")
        )
        net = ((net - mean) / torch.sqrt(var + 0.001) * gamma + beta).clamp(min=0)
        net = functional.max_pool2d(net, 2) if layer.endswith("b") else net
    return (net.mean((2, 3)) @ given["logits.weight"].T + given["logits.bias"]).numpy()


def test_torch_gives_what_the_file_says(arrays, weights):
    program = program_of("torch", weights)
    found = program.predict(clothes())[0]
    program.close()
    expected = logits_of(arrays, clothes())
    assert np.ptp(expected.argmax(1)) > 0, "the images matter"
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_torch_starts_a_fresh_layer_for_three_classes(arrays, weights, three_classes, caplog):
    caplog.set_level(logging.INFO)
    program = program_of("torch", weights, three_classes)
    state = program.state()
    program.close()
    assert "10 classes there, 3 here: the last layer starts fresh." in caplog.text
    assert "started fresh: model/logits.weight, model/logits.bias." in caplog.text
    assert state["model/logits.weight"].shape == (3, 128)
    for name in set(arrays) - {"logits.weight", "logits.bias"}:
        np.testing.assert_array_equal(state[f"model/{name}"], arrays[name], err_msg=name)


@needs_tensorflow
def test_tensorflow_gives_the_same_outputs(weights, on_tensorflow):
    program = program_of("torch", weights)
    expected = program.predict(clothes())[0]
    program.close()
    assert on_tensorflow["output"].shape == expected.shape == (8, 10)
    np.testing.assert_allclose(on_tensorflow["output"], expected, rtol=0, atol=1e-4)


@needs_tensorflow
def test_tensorflow_starts_a_fresh_layer_for_three_classes(arrays, on_tensorflow):
    state = {name.partition(":")[2]: value for name, value in on_tensorflow.items() if name.startswith("three:")}
    assert set(state) == set(arrays)
    assert state["logits.weight"].shape == (3, 128)
    for name in set(arrays) - {"logits.weight", "logits.bias"}:
        if not name.endswith("num_batches_tracked"):
            np.testing.assert_array_equal(state[name], arrays[name], err_msg=name)
