"""The backbone of the extra ``backbones``: its file becomes the weights of a network that knows ImageNet's classes."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

import cv2
import torch
from published_networks import network
from sklearn.datasets import load_sample_image

from ziggurat.worker.commands.pretrained_weights import convert_weights
from ziggurat.zoo.public_weights import public_weights
from ziggurat.zoo.weight_files import file_sha256, load_weights_file

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        not public_weights("efficientnet_lite0").is_here, reason="the extra `backbones` is not installed"
    ),
]

CLASSES = {"china.jpg": {698, 663, 442}, "flower.jpg": {985}}
"""Photograph → numbers of classes of ImageNet: palace, monastery, bell cote; daisy."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    entry = public_weights("efficientnet_lite0")
    out = tmp_path_factory.mktemp("lite0") / "weights.safetensors"
    assert file_sha256(entry.packaged_path) == entry.sha256
    found = convert_weights({"file": str(entry.packaged_path), "out": str(out), "network": entry.network})
    assert found["arrays"] == 296
    return load_weights_file(Path(out))


@pytest.mark.parametrize("name", CLASSES)
def test_photographs_get_their_classes(weights, name):
    photograph = load_sample_image(name)[:, 106:533]
    image = cv2.resize(photograph, (224, 224), interpolation=cv2.INTER_AREA).astype(np.float32)
    model = network("efficientnet_lite0", 1000, [3, 224, 224]).eval()
    model.load_state_dict({key: torch.from_numpy(np.array(value)) for key, value in weights.items()})
    with torch.no_grad():
        scores = model(torch.from_numpy(image).permute(2, 0, 1)[None])[0]
    assert int(scores.argmax()) in CLASSES[name]
