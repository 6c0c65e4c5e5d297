"""A training on PyTorch starts from pretrained weights of the workspace that were published as a file of PyTorch."""

from __future__ import annotations

import logging

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from published_networks import network, shapes_of
from published_weights import made_up

from ziggurat.settings import load_settings
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.workspace.weights import NewWeights
from ziggurat.workspace.workspace import open_folders

pytestmark = pytest.mark.torch


def test_a_training_starts_from_a_published_file(tmp_path, caplog):
    published = made_up(shapes_of(network("resnet18", 1000, [3, 224, 224])))
    torch.save({name: torch.from_numpy(array) for name, array in published.items()}, tmp_path / "resnet18-00000000.pth")
    weights = open_folders(
        load_settings({"ZIGGURAT_WORKSPACE": str(tmp_path / "workspace"), "HOME": str(tmp_path)})
    ).weights
    entry = weights.add(tmp_path / "resnet18-00000000.pth", NewWeights(name="resnet18", network="resnet18"))
    assert (entry.arrays, entry.parameters, entry.class_count) == (122, 11_689_512 + 9_620, 1000)

    content = {"kind": "train", "version": 1, "backend": "torch", "network": "resnet18", "data": "digits"}
    shape = {"preprocessing": {"size": [72, 72], "channels": 3}, "batch_size": 4}
    spec = parse_spec({**content, **shape, "pretrained": "weights:resnet18"}, source="the test")
    assert isinstance(spec, TrainSpec)
    backend = load_backend("torch")
    caplog.set_level(logging.INFO)
    program = backend.build(program_request(spec, data_of(spec), backend, [weights.folder.path]))
    state = program.state()

    assert "1000 classes there, 10 here: the last layer starts fresh." in caplog.text
    assert "started fresh: model/fc.weight, model/fc.bias." in caplog.text
    assert state["model/fc.weight"].shape == (10, 512)
    taken = [name for name in published if not name.startswith("fc.")]
    assert len(taken) == 120
    for name in taken:
        np.testing.assert_array_equal(state[f"model/{name}"], published[name], err_msg=name)
    program.close()
