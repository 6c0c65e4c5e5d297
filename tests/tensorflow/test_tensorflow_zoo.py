"""Every standard network builds, has the number of weights that its paper gives, and takes a finite step."""

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tests.nightly import some_nightly
from ziggurat.backends.tensorflow.backend import TensorFlowBackend, build_job_graph
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.backend import ArraySpec, ProgramRequest, class_arrays
from ziggurat.errors import UnknownNameError
from ziggurat.zoo import STANDARD_NETWORKS, network_path

WEIGHTS = {
    "lenet": 431_080,
    "alexnet": 62_378_344,
    "vgg16": 138_357_544,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "mobilenet_v2": 3_504_872,
    "efficientnet_b0": 5_288_548,
    "efficientnet_lite0": 4_652_008,
    "convnext_tiny": 28_589_128,
    "vit_small": 22_050_664,
}
"""With 1,000 classes at 224 x 224; LeNet with 10 at 28 x 28."""


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_number_of_weights(name: str) -> None:
    network = STANDARD_NETWORKS[name]
    classes = 10 if name == "lenet" else 1000
    graph = build_job_graph(ProgramRequest(network=name, **class_arrays(network.input_shape, classes))).graph
    variables = graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)
    assert sum(int(np.prod(variable.shape)) for variable in variables) == WEIGHTS[name]


SMALL_SHAPES = {"alexnet": (96, 96, 3), "vgg16": (32, 32, 3), "googlenet": (32, 32, 3), "lenet": (28, 28, 1)}


@pytest.mark.parametrize(
    "name",
    some_nightly(
        [each.name for each in STANDARD_NETWORKS.values() if each.input == "image" and each.task == "classification"],
        but=["lenet", "convnet", "resnet18", "mobilenet_v2", "vit_small"],
    ),
)
def test_a_step_of_every_classifier(name: str) -> None:
    shape = SMALL_SHAPES.get(name, (32, 32, 3))
    request = ProgramRequest(
        network=name, **class_arrays(shape, 3), batch_size=4, optimizer="momentum", learning_rate=1e-4
    )
    program = TensorFlowBackend().build(request)
    rng = np.random.default_rng(0)
    batch = [rng.uniform(0, 255, (4, *shape)).astype(np.float32), np.array([0, 1, 2, 0])]
    first = program.step(batch, ("cost", "accuracy", "output"))
    assert np.isfinite(first["cost"])
    assert first["output"].shape == (4, 3)
    assert first["output"].all(), "the logits have no ReLU: none is 0"
    assert np.isfinite(program.step(batch, ("cost",))["cost"])
    program.close()


def test_a_step_of_the_detector_on_efficientnet() -> None:
    y = ArraySpec((1, 2, 16), classes=3, has_objects=True)
    arrays = {"inputs": {"x": ArraySpec((33, 66, 3))}, "targets": {"y": y}}
    program = TensorFlowBackend().build(ProgramRequest(network="detector_lite0", batch_size=2, seed=1, **arrays))
    objects = np.zeros((2, *y.shape), np.float32)
    objects[:, 0, 0, :2] = 1, 16
    objects[:, 0, 1, :4] = 8, 8, 20, 16
    batch = [np.random.default_rng(0).uniform(0, 255, (2, 33, 66, 3)).astype(np.float32), objects]
    assert np.isfinite(program.step(batch, ("cost",))["cost"])
    (found,) = program.predict(batch[0])
    assert found.shape == (2, 5 * 9 + 3 * 5 + 2 * 3, 4 + 3), "cells of 8, 16 and 32 px, sides rounded up"
    program.close()


def test_the_autoencoder_learns_to_copy() -> None:
    program = TensorFlowBackend().build(
        ProgramRequest(
            network="autoencoder",
            inputs={"x": ArraySpec((8, 8, 1))},
            batch_size=16,
            optimizer="adam",
            learning_rate=0.003,
        )
    )
    pictures = np.random.default_rng(0).uniform(0, 255, (16, 8, 8, 1)).astype(np.float32)
    costs = [program.step([pictures], ("cost",))["cost"] for _ in range(150)]
    assert costs[-1] < 0.5 * costs[0]
    assert program.predict(pictures)[0].shape == (16, 8, 8, 1)


def test_the_siamese_network_shares_its_weights() -> None:
    program = TensorFlowBackend().build(
        ProgramRequest(
            network="siamese", **class_arrays((28, 28, 2), None), batch_size=8, optimizer="momentum", learning_rate=0.01
        )
    )
    pairs = np.random.default_rng(0).uniform(0, 255, (8, 28, 28, 2)).astype(np.float32)
    twins = np.repeat(pairs[..., :1], 2, axis=3)
    left, right = program.predict(twins)
    np.testing.assert_allclose(left, right, atol=1e-5)
    assert np.isfinite(program.step([pairs, np.arange(8) % 2], ("cost",))["cost"])


def test_the_regression_finds_the_line() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 1, 3, 1)).astype(np.float32)
    y = x.reshape(64, 3) @ np.array([1.0, -2.0, 0.5], np.float32) + 3
    program = TensorFlowBackend().build(
        ProgramRequest(
            network="regression",
            inputs={"x": ArraySpec((1, 3, 1))},
            targets={"y": ArraySpec()},
            batch_size=64,
            optimizer="sgd",
            learning_rate=0.1,
        )
    )
    for _ in range(200):
        program.step([x, y], ())
    state = program.state()
    np.testing.assert_allclose(state["model/linear/weights"].ravel(), [1, -2, 0.5], atol=1e-3)
    np.testing.assert_allclose(state["model/linear/biases"], [3], atol=1e-3)


def test_an_unknown_network_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean `resnet18`"):
        network_path("resnet-18", "tensorflow")
