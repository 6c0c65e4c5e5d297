"""What a LeNet's layers give, as DIGITS shows it: behavior 91."""

import os
from pathlib import Path

import numpy as np
import pytest
from tensorflow_jobs import digit_pictures, lenet_job, save_pictures

from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool
from ziggurat.worker.commands.trained import open_network, open_trained_job
from ziggurat.worker.inference.views import ShowsLayers


def test_each_layer_gives_what_the_network_computes() -> None:
    job = open_trained_job(lenet_job())
    x = job.images.finish(digit_pictures()[0][:3])
    with open_network(job) as network:
        assert isinstance(network, ShowsLayers)
        layers, outputs = network.layer_outputs(x), network.predict(x)
    assert {name: value.shape for name, value in layers.items()} == {
        "mul": (3, 24, 24, 1),
        "conv1": (3, 20, 20, 20),
        "pool1": (3, 10, 10, 20),
        "conv2": (3, 6, 6, 50),
        "pool2": (3, 3, 3, 50),
        "Flatten": (3, 450),
        "fc1": (3, 500),
        "dropout1": (3, 500),
        "fc2": (3, 10),
        "output": (3, 10),
        "probabilities": (3, 10),
    }
    assert all((layers[name] == outputs[name]).all() for name in outputs)
    assert (layers["fc2"] == layers["output"]).all()
    assert (layers["Flatten"] == layers["pool2"].reshape(3, -1)).all()
    blocks = layers["conv1"].reshape(3, 10, 2, 10, 2, 20)
    assert (layers["pool1"] == np.max(blocks, axis=(2, 4))).all()


def test_they_are_shown_with_figures_and_pictures(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    (path,) = save_pictures(tmp_path, digit_pictures()[0][:1])
    with InferencePool(INFERENCE_COMMAND, os.environ) as pool:
        found = pool.activations(lenet_job(), None, ("digit", Path(path).read_bytes()))
    shown = {each["name"]: each for each in found["activations"]}
    assert shown["conv1"]["shape"] == [20, 20, 20]
    assert sum(shown["conv1"]["histogram"]["counts"]) == 20**3
    assert all(each["png"] for each in shown.values())
