"""Both frameworks give the same outputs for the same published weights, through the one name map."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from published_networks import network, shapes_of
from published_weights import images, made_up

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("tf_slim") is None, reason="TensorFlow or tf-slim is not installed"),
]

CLASSES = 10
CASES = [
    ("resnet18", (32, 32, 3)),
    ("resnet18", (71, 80, 3)),
    ("resnet18", (28, 28, 1)),
    ("resnet34", (32, 32, 3)),
    ("resnet50", (66, 71, 3)),
    ("vgg16", (256, 64, 3)),
    ("mobilenet_v2", (32, 32, 3)),
    ("mobilenet_v2", (71, 80, 3)),
    ("efficientnet_b0", (32, 32, 1)),
    ("efficientnet_b0", (71, 80, 3)),
    ("efficientnet_lite0", (32, 32, 1)),
    ("efficientnet_lite0", (71, 80, 3)),
    ("convnext_tiny", (40, 75, 3)),
    ("vit_small", (40, 64, 3)),
]
"""(H, W, C): small images and those beyond 64 px, and sides that strides do not divide."""

TRAINED = ("resnet18", (32, 32, 3))


def model_of(name, shape):
    """Return the PyTorch network with made-up weights."""
    height, width, channels = shape
    with torch.device("meta"):
        model = network(name, CLASSES, [channels, height, width])
    model = model.to_empty(device="cpu")
    for key, value in network_buffers(name, channels).items():
        setattr(model, key, value)
    model.load_state_dict({key: torch.from_numpy(value) for key, value in made_up(shapes_of(model)).items()})
    return model


def network_buffers(name, channels):
    """Return the constants of a network, which its state does not hold."""
    small = network("resnet18", 2, [channels, 32, 32])
    return {} if name in ("vit_small", "efficientnet_lite0") else {"mean": small.mean, "std": small.std}


@pytest.fixture(scope="module")
def on_tensorflow(tmp_path_factory):
    """The arrays of ``published_on_tensorflow`` for all cases."""
    folder = tmp_path_factory.mktemp("agreement")
    cases = []
    for name, shape in CASES:
        height, width, channels = shape
        with torch.device("meta"):
            shapes = shapes_of(network(name, CLASSES, [channels, height, width]))
        cases.append({"network": name, "shape": shape, "shapes": shapes, "trains": (name, shape) == TRAINED})
    (folder / "cases.json").write_text(json.dumps(cases))
    script = Path(__file__).parent / "published_on_tensorflow.py"
    command = [sys.executable, str(script), str(folder / "cases.json"), str(folder / "found.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(folder / "found.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_outputs_of_both_frameworks_agree(name, shape, on_tensorflow):
    x = torch.from_numpy(images(shape)).permute(0, 3, 1, 2)
    with torch.no_grad():
        expected = model_of(name, shape).eval()(x).numpy()
    found = on_tensorflow[f"{CASES.index((name, shape))}:output"]
    assert found.shape == expected.shape == (2, CLASSES)
    assert np.ptp(expected[0] - expected[1]) > 1e-3 * np.abs(expected).max(), "the images matter"
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_averages_of_batch_norm_move_alike(on_tensorflow):
    name, shape = TRAINED
    model = model_of(name, shape).train()
    with torch.no_grad():
        model(torch.from_numpy(images(shape)).permute(0, 3, 1, 2))
    state = {key: value.numpy() for key, value in model.state_dict().items()}
    found = {key.partition(":")[2]: value for key, value in on_tensorflow.items() if key.startswith("0:")}
    assert [key for key in found if key != "output"] == list(state)
    for key in state:
        if key.endswith(("running_mean", "running_var")):
            assert np.abs(state[key] - made_up({key: state[key].shape})[key]).max() > 1e-3, "it moves"
            np.testing.assert_allclose(found[key], state[key], rtol=2e-4, atol=1e-5)
