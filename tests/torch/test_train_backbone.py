"""The script that makes the weights that come with Ziggurat, on made-up files in the format of Fashion-MNIST."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from safetensors.numpy import load_file

from tools.compare_fine_tuning import Images, draw
from tools.train_backbone import train_backbone
from ziggurat.zoo.public_weights import public_weights

pytestmark = pytest.mark.torch


@pytest.mark.nightly
def test_backbone_script_writes_the_packaged_kind_of_file(tmp_path):
    random = np.random.default_rng(0)
    labels = np.arange(200) % 10
    images = (random.integers(0, 256, (200, 28, 28)), labels)
    draw(Images(images, images), 0, 0, tmp_path / "data")
    for path in (tmp_path / "data").glob("val-*"):
        path.rename(path.with_name(path.name.replace("val", "t10k")))
    file, accuracy = train_backbone(tmp_path / "data", tmp_path / "out", ["--epochs=1", "--steps-per-epoch=2"])
    packaged, made = load_file(public_weights("convnet-fashion").packaged_path), load_file(file)

    digits = hashlib.sha256(file.read_bytes()).hexdigest()
    assert file.name == f"convnet-fashion-mnist-{digits[:8]}.safetensors"
    assert 0 <= accuracy <= 1
    assert {name: (each.shape, each.dtype) for name, each in made.items()} == {
        name: (each.shape, each.dtype) for name, each in packaged.items()
    }
