"""The weights that come with Ziggurat are loaded by name on both frameworks, and give the same there."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from backbone import SIZE, clothes, program_of, weights_in
from safetensors.numpy import load_file
from torch.nn import functional

from tools.compare_fine_tuning import Images, draw
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
def same_classes(tmp_path_factory) -> str:
    """Data with the classes of the weights."""
    return data_in(tmp_path_factory.mktemp("same") / "new", public_weights("convnet-fashion").classes)


@pytest.fixture(scope="module")
def three_classes(tmp_path_factory) -> str:
    """Data with three other classes."""
    return data_in(tmp_path_factory.mktemp("three") / "new", ["a", "b", "c"])


@pytest.fixture(scope="module")
def on_tensorflow(weights, same_classes, three_classes, tmp_path_factory) -> dict[str, np.ndarray]:
    """What ``backbone_on_tensorflow`` returns."""
    script, path = Path(__file__).with_name("backbone_on_tensorflow.py"), tmp_path_factory.mktemp("found") / "found.npz"
    command = [sys.executable, str(script), str(weights), same_classes, three_classes, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(path) as found:
        return dict(found)


def data_in(folder: Path, classes: Sequence[str]) -> str:
    """Return a folder of idx files with eight images of each class."""
    folder.mkdir()
    labels = np.arange(8 * len(classes)) % len(classes)
    images = (np.random.default_rng(0).integers(0, 256, (len(labels), SIZE, SIZE)), labels)
    draw(Images(images, images), 0, 0, folder / "data")
    (folder / "data" / "classes.txt").write_text("\n".join(classes))
    return str(folder / "data")


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


def test_torch_gives_what_the_file_says(arrays, weights, same_classes):
    program = program_of("torch", weights, same_classes)
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


@pytest.mark.nightly
@needs_tensorflow
def test_tensorflow_gives_the_same_outputs(weights, same_classes, on_tensorflow):
    program = program_of("torch", weights, same_classes)
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
