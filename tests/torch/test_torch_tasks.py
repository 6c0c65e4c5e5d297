"""Trained PyTorch networks evaluate and predict as their program does, and show what their layers give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch_jobs import MASKS, PAIRS, PLAIN, task_job
from torch_networks import SMALL, TOWER, batches

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.tasks import TorchTasks
from ziggurat.backends.torch.trained import TrainedTorch
from ziggurat.engine.backend import ArraySpec, ProgramRequest, class_arrays
from ziggurat.engine.capabilities import (
    HasInferenceInputs,
    SupportsDebug,
    SupportsDescribe,
    SupportsExport,
    SupportsForeign,
    SupportsGradients,
    SupportsGraph,
    SupportsInference,
)
from ziggurat.errors import CheckpointError, ConfigurationError, UnknownNameError
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict

INPLACE = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Dropout(0.5))
        self.fc = nn.Linear(4 * 6 * 6, nclasses)

    def forward(self, x):
        return self.fc(self.block(x).flatten(1))
"""
NOISE = """
class UserModel(Tower):
    def build(self):
        self.fc = nn.Linear(5, 16)

    @model_property
    def inference(self):
        noise = self.inference_input("noise", torch.randn(len(self.x), 5))
        return self.fc(noise).reshape(-1, 1, 4, 4)

    @model_property
    def loss(self):
        return self.inference.square().mean()
"""


def request(text: str = SMALL, **fields: Any) -> ProgramRequest:
    chosen: dict[str, Any] = {**class_arrays((8, 8, 1), 10), "learning_rate": 0.01, "batch_size": 32, **fields}
    return ProgramRequest(network="net.py", network_text=text, **chosen)


def opened(asked: ProgramRequest, steps: int = 2) -> tuple[TrainedTorch, Any]:
    """Return a network with the weights of a program, and the program."""
    program = TorchBackend().build(asked)
    for batch in batches(steps, 32):
        program.step(batch, ())
    return TorchTasks().open_trained(asked, program.state()), program


def test_the_object_has_the_capabilities_it_is_named_for() -> None:
    tasks = TorchTasks()
    for offer in (SupportsInference, SupportsExport, SupportsDescribe, SupportsGraph, SupportsForeign, SupportsDebug):
        assert isinstance(tasks, offer)
    network, _ = opened(request())
    assert isinstance(network, SupportsGradients)
    assert isinstance(network, HasInferenceInputs)


@pytest.mark.parametrize("text", [SMALL, TOWER])
def test_evaluation_and_prediction_equal_the_programs(text: str) -> None:
    network, program = opened(request(text))
    x, y = batches(1, 32)[0]
    expected = program.evaluate([x, y], ("cost", "accuracy", "output", "probabilities"))
    found = network.evaluate(x, y)
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-7, err_msg=name)
    predicted = network.predict(x)
    assert list(predicted) == ["output", "probabilities"]
    np.testing.assert_allclose(predicted["probabilities"].sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(predicted["output"], network.predict(x)["output"])
    network.close()
    network.close()


def test_weights_of_another_network_are_refused() -> None:
    _, program = opened(request())
    with pytest.raises(CheckpointError, match=r"model/fc1\.weight has shape \(10, 128\) instead of \(7, 128\)"):
        TorchTasks().open_trained(request(**class_arrays((8, 8, 1), 7)), program.state())


def test_outputs_have_their_channels_last() -> None:
    spec = {"inputs": {"x": ArraySpec((8, 8, 1))}, "targets": {"y": ArraySpec((8, 8, 1), "int64", 3)}}
    asked = request(MASKS, **spec)
    network = TorchTasks().open_trained(asked, TorchBackend().build(asked).state())
    x = batches(1, 4)[0][0]
    assert network.predict(x)["output"].shape == (4, 8, 8, 3)
    assert not network.gives_class_scores
    assert network.map_layers() == ([], "")
    found = network.evaluate(x, np.zeros((4, 8, 8, 1), np.int64))
    assert {"output", "cost", "pixel_accuracy"} == set(found)


def test_several_outputs_are_numbered() -> None:
    spec = {"inputs": {"x": ArraySpec((8, 8, 2))}, "targets": {"y": ArraySpec((), "int64", 2)}}
    asked = request(PAIRS, **spec)
    network = TorchTasks().open_trained(asked, TorchBackend().build(asked).state())
    x = np.concatenate([batches(1, 4)[0][0]] * 2, axis=3)
    found = network.predict(x)
    assert {name: each.shape for name, each in found.items()} == {"output": (4, 6), "output_1": (4, 6)}
    np.testing.assert_array_equal(found["output"], found["output_1"])


def test_layers_show_what_they_gave() -> None:
    network, program = opened(request())
    x = batches(1, 3)[0][0]
    found = network.layer_outputs(x)
    assert list(found) == ["mul", "conv1", "relu", "max_pool2d", "fc1", "output", "probabilities"]
    module = program.network.module
    module.eval()
    with torch.no_grad():
        maps = module.conv1(torch.from_numpy(x).permute(0, 3, 1, 2) * 0.0125)
    np.testing.assert_allclose(found["conv1"], maps.permute(0, 2, 3, 1).numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["relu"], np.maximum(found["conv1"], 0))
    np.testing.assert_array_equal(found["fc1"], found["output"])


def test_what_is_written_over_later_is_shown_as_it_was() -> None:
    network, _ = opened(request(INPLACE))
    found = network.layer_outputs(batches(1, 3)[0][0])
    assert list(found) == ["block.0", "block.1", "fc", "output", "probabilities"]
    assert found["block.0"].min() < 0
    np.testing.assert_array_equal(found["block.1"], np.maximum(found["block.0"], 0))


def test_a_generator_may_be_given_its_noise() -> None:
    asked = request(NOISE, inputs={"x": ArraySpec((4, 4, 1))}, targets={})
    network = TorchTasks().open_trained(asked, TorchBackend().build(asked).state())
    x = np.zeros((3, 4, 4, 1), np.float32)
    assert network.inference_inputs() == {"noise": ArraySpec((5,), "float32")}
    noise = np.eye(3, 5, dtype=np.float32)
    weight = network.network.module.fc.weight.detach().numpy()
    bias = network.network.module.fc.bias.detach().numpy()
    found = network.predict(x, {"noise": noise})["output"]
    np.testing.assert_allclose(found.reshape(3, 16), (noise @ weight.T) + bias, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(network.predict(x)["output"], network.predict(x)["output"])
    with pytest.raises(ConfigurationError, match=r"has rows of shape \(5,\) \(received: an array of shape \(3, 4\)"):
        network.predict(x, {"noise": np.zeros((3, 4))})
    with pytest.raises(UnknownNameError, match="Did you mean `noise`"):
        network.predict(x, {"noises": noise})


def test_half_precision_predicts_in_it() -> None:
    asked = request(precision="bf16")
    network, program = opened(asked)
    x = batches(1, 8)[0][0]
    exact = TorchTasks().open_trained(request(), program.state()).predict(x)["probabilities"]
    found = network.predict(x)["probabilities"]
    assert found.dtype == np.float32
    assert 0 < np.abs(found - exact).max() < 0.02


def test_a_gpu_of_another_machine_is_not_needed() -> None:
    network, _ = opened(request())
    there = request(devices=("gpu:63", "gpu:64"))
    found = TorchTasks().open_trained(
        there, {f"model/{k}": v.numpy() for k, v in network.network.module.state_dict().items()}
    )
    x = batches(1, 2)[0][0]
    np.testing.assert_allclose(found.predict(x)["output"], network.predict(x)["output"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["classification", "regression", "classification of texts"])
def test_jobs_are_evaluated_by_their_folder(name: str, tmp_path: Path) -> None:
    folder = task_job(name, tmp_path)
    found = evaluate({"folder": folder})
    assert found["samples"] == (270 if name == "classification" else 40)
    measured = {"classification": "accuracy", "regression": "rmse"}.get(name, "accuracy")
    assert np.isfinite(found[measured])


def test_a_job_predicts_for_images(tmp_path: Path) -> None:
    from torch_jobs import digit_pictures, save_pictures

    folder, files = task_job("classification", tmp_path), save_pictures(tmp_path, digit_pictures()[0][:2])
    found = predict({"folder": folder, "images": files, "top": 10})["predictions"]
    assert [each["file"] for each in found] == files
    for each in found:
        assert sum(one["probability"] for one in each["classes"]) == pytest.approx(1, abs=1e-5)


def test_batch_norm_uses_its_averages() -> None:
    network, _ = opened(request(PLAIN))
    x = batches(1, 16)[0][0]
    together, alone = network.predict(x)["output"], network.predict(x[:1])["output"]
    np.testing.assert_allclose(together[:1], alone, rtol=1e-4, atol=1e-5)
