"""A training on TensorFlow starts from pretrained weights of the workspace, which have PyTorch's names and axes."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from safetensors.numpy import save_file

from ziggurat.entities.pretrained_weights import PretrainedWeights
from ziggurat.layout import WeightsFiles
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.zoo.names import to_torch
from ziggurat.zoo.weights_folder import WeightsFolder

pytestmark = pytest.mark.tensorflow


def test_published_weights_are_taken_by_name_on_tensorflow(tmp_path, caplog):
    content = {"kind": "train", "version": 1, "backend": "tensorflow", "network": "resnet18", "data": "digits"}
    shape = {"preprocessing": {"size": [72, 72], "channels": 3}, "batch_size": 4}
    spec = parse_spec({**content, **shape}, source="the test")
    assert isinstance(spec, TrainSpec)
    backend, data = load_backend("tensorflow"), data_of(spec)
    first = backend.build(program_request(spec, data, backend))
    published = to_torch({name: array for name, array in first.state().items() if name.startswith("model/")})
    first.close()
    published["fc.weight"], published["fc.bias"] = np.ones((1000, 512), np.float32), np.ones(1000, np.float32)
    folder = WeightsFolder(tmp_path / "weights")
    with folder.adding() as partial:
        save_file(published, WeightsFiles(partial).arrays)
        folder.place(partial, PretrainedWeights(name="resnet18", title="ResNet-18", network="resnet18"))
    tuned = spec.model_copy(update={"pretrained": "weights:resnet18", "seed": 5})
    caplog.set_level(logging.INFO)
    program = backend.build(program_request(tuned, data, backend, [folder.path]))
    state = to_torch({name: array for name, array in program.state().items() if name.startswith("model/")})
    program.close()

    assert "1000 classes there, 10 here: the last layer starts fresh." in caplog.text
    assert state["fc.weight"].shape == (10, 512)
    assert set(state) == set(published)
    for name in set(published) - {"fc.weight", "fc.bias"}:
        np.testing.assert_array_equal(state[name], published[name], err_msg=name)
