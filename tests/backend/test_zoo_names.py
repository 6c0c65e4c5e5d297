"""The map between names of weights on PyTorch and of variables on TensorFlow."""

import numpy as np
import pytest

from ziggurat.errors import CheckpointError
from ziggurat.zoo.names import to_tensorflow, to_torch

NORM = ("weight", "bias", "running_mean", "running_var")


def state():
    """A state of PyTorch with every kind of array, in PyTorch's order."""
    rng = np.random.default_rng(0)
    shapes = {"layer1.0.conv1.weight": (4, 3, 5, 7), **{f"layer1.0.bn1.{each}": (4,) for each in NORM}}
    shapes |= {"layer1.0.bn1.num_batches_tracked": (), "depthwise.weight": (6, 1, 3, 3), "scale": (4, 1, 1)}
    shapes |= {"fc.weight": (10, 4), "fc.bias": (10,)}
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return arrays | {"layer1.0.bn1.num_batches_tracked": np.zeros((), np.int64)}


def test_to_tensorflow_names_by_slashes_and_turns_kernels():
    arrays = state()
    found = to_tensorflow(arrays)
    assert {name: value.shape for name, value in found.items()} == {
        "model/layer1/0/conv1/weight": (5, 7, 3, 4),
        **{f"model/layer1/0/bn1/{each}": (4,) for each in NORM},
        "model/depthwise/weight": (3, 3, 1, 6),
        "model/scale": (4, 1, 1),
        "model/fc/weight": (4, 10),
        "model/fc/bias": (10,),
    }
    kernel = found["model/layer1/0/conv1/weight"]
    assert kernel[4, 6, 2, 3] == arrays["layer1.0.conv1.weight"][3, 2, 4, 6]
    assert found["model/depthwise/weight"][2, 1, 0, 5] == arrays["depthwise.weight"][5, 0, 2, 1]
    assert found["model/fc/weight"][3, 9] == arrays["fc.weight"][9, 3]
    assert kernel.flags.c_contiguous


def test_to_torch_gives_back_what_came():
    arrays = state()
    found = to_torch(to_tensorflow(arrays))
    assert list(found) == list(arrays)
    for name, value in arrays.items():
        np.testing.assert_array_equal(found[name], value)
        assert (found[name].dtype, found[name].flags.c_contiguous) == (value.dtype, True)


def test_networks_with_names_of_slim_are_mapped_both_ways():
    state_of = {"conv1a.weight": (32, 1, 3, 3), **{f"conv1a.norm.{each}": (32,) for each in NORM}}
    state_of |= {"conv1a.norm.num_batches_tracked": (), "logits.weight": (10, 128), "logits.bias": (10,)}
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in state_of.items()}
    arrays["conv1a.norm.num_batches_tracked"] = np.zeros((), np.int64)
    found = to_tensorflow(arrays, "convnet")
    back = to_torch({**found, "model/conv1a/BatchNorm/gamma/Momentum": np.zeros(32)}, "convnet")

    assert {name: value.shape for name, value in found.items()} == {
        "model/conv1a/weights": (3, 3, 1, 32),
        "model/conv1a/BatchNorm/gamma": (32,),
        "model/conv1a/BatchNorm/beta": (32,),
        "model/conv1a/BatchNorm/moving_mean": (32,),
        "model/conv1a/BatchNorm/moving_variance": (32,),
        "model/logits/weights": (128, 10),
        "model/logits/biases": (10,),
    }
    np.testing.assert_array_equal(found["model/conv1a/BatchNorm/beta"], arrays["conv1a.norm.bias"])
    assert list(back) == list(arrays)
    for name, value in arrays.items():
        np.testing.assert_array_equal(back[name], value)


def test_to_tensorflow_takes_keys_of_checkpoints():
    assert list(to_tensorflow({"model/layer1.0.conv1.weight": np.zeros((1, 1, 1, 1))})) == [
        "model/layer1/0/conv1/weight"
    ]


def test_to_torch_drops_what_belongs_to_a_training():
    arrays = {
        "global_step": np.int64(3),
        "ziggurat/learning_rate": np.float32(0.1),
        "train/beta1_power": np.float32(0.9),
        "model/fc/weight": np.zeros((4, 10)),
        "model/fc/weight/Momentum": np.zeros((4, 10)),
    }
    assert list(to_torch(arrays)) == ["fc.weight"]


@pytest.mark.parametrize("key", ["conv1/weight", "model/layer1/0/conv1/weight", "layer1..weight", ""])
def test_to_tensorflow_refuses_what_is_no_key(key):
    with pytest.raises(CheckpointError, match="has no name with dots, as those of PyTorch: `layer1"):
        to_tensorflow({key: np.zeros(1)})


def test_to_tensorflow_refuses_a_weight_that_comes_twice():
    with pytest.raises(CheckpointError, match="comes twice, with and without"):
        to_tensorflow({"fc.bias": np.zeros(1), "model/fc.bias": np.zeros(1)})


@pytest.mark.parametrize("name", ["conv1/weight", "model/conv1/weights", "model/bn/moving_mean", "model/fc.weight"])
def test_to_torch_refuses_names_without_a_counterpart(name):
    with pytest.raises(CheckpointError, match=r"PyTorch's name behind `model/`") as error:
        to_torch({"model/fc/bias": np.zeros(1), name: np.zeros(1)})
    assert f"received: {name})." in str(error.value)
    assert error.value.details == {"names": [name]}


def test_to_torch_lists_the_first_foreign_names():
    with pytest.raises(CheckpointError, match=r"model/4/weights and 2 more"):
        to_torch({f"model/{number}/weights": np.zeros(1) for number in range(7)})


@pytest.mark.parametrize("convert", [to_tensorflow, to_torch])
def test_name_map_refuses_values_that_are_no_numbers(convert):
    name = {to_tensorflow: "fc.weight", to_torch: "model/fc/weight"}[convert]
    with pytest.raises(CheckpointError, match=f"The weight {name} is a str, not an array of numbers"):
        convert({name: "weights"})


@pytest.mark.parametrize("convert", [to_tensorflow, to_torch])
def test_name_map_refuses_what_has_no_weights(convert):
    with pytest.raises(CheckpointError, match="must be at least one"):
        convert({})
