"""Models that were trained elsewhere: exported programs, ONNX models and TorchScript are inspected and predict."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch import nn

from ziggurat.backends.torch.foreign import open_foreign_model
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError
from ziggurat.worker.commands.foreign import inspect_model, predict_with_model


class Net(nn.Module):
    """Takes images (N, 1, 8, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.fc(image.flatten(1))


class TwoHeads(nn.Module):
    """Two inputs, two outputs."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return left + right, left * right


def program(module: nn.Module, *examples: torch.Tensor) -> torch.export.ExportedProgram:
    shapes = tuple({0: torch.export.Dim.DYNAMIC} for _ in examples)
    return torch.export.export(module.eval(), examples, dynamic_shapes=shapes)


@pytest.fixture(scope="module")
def net() -> nn.Module:
    torch.manual_seed(0)
    return Net()


def saved(net: nn.Module, folder: Path, ending: str) -> Path:
    path = folder / f"model{ending}"
    example = torch.zeros(2, 1, 8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if ending == ".pt2":
            torch.export.save(program(net, example), path)
        elif ending == ".onnx":
            pytest.importorskip("onnxscript", reason="onnxscript is not installed")
            pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
            torch.onnx.export(
                program(net, example), (example,), path, input_names=["image"], output_names=["output"], verbose=False
            )
        else:
            torch.jit.trace(net, example).save(str(path))
    return path


@pytest.mark.parametrize(("ending", "kind"), [(".pt2", "pt2"), (".onnx", "onnx"), (".pt", "torchscript")])
def test_a_model_gives_what_it_gave_elsewhere(
    net: nn.Module, tmp_path: Path, ending: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = saved(net, tmp_path, ending)
    found = inspect_model({"model": str(path)})
    assert (found["kind"], [each["name"] for each in found["inputs"]]) == (kind, ["image"])
    assert [(each["name"], each["readers"]) for each in found["outputs"]] == [("output", 0)]
    shape = found["inputs"][0]["shape"]
    assert shape == (None if kind == "torchscript" else (None, 1, 8, 8))
    assert ("TorchScript is deprecated" in caplog.text) == (kind == "torchscript")
    images = np.random.default_rng(0).normal(size=(3, 1, 8, 8)).astype(np.float32)
    np.save(tmp_path / "images.npy", images)
    with torch.no_grad():
        expected = net(torch.from_numpy(images)).numpy()
    predicted = predict_with_model({"model": str(path), "files": [str(tmp_path / "images.npy")]})
    (one,) = predicted["predictions"]
    assert one["outputs"]["output"]["shape"] == (3, 3)
    np.testing.assert_allclose(one["outputs"]["output"]["values"], expected, rtol=1e-5, atol=1e-6)


def test_an_image_is_fitted_to_the_input(net: nn.Module, tmp_path: Path) -> None:
    from PIL import Image

    Image.fromarray(np.full((16, 16), 51, np.uint8)).save(tmp_path / "gray.png")
    path = saved(net, tmp_path, ".pt2")
    asked = {"model": str(path), "files": [str(tmp_path / "gray.png")], "scale": 1 / 255}
    (one,) = predict_with_model(asked)["predictions"]
    with torch.no_grad():
        expected = net(torch.full((1, 1, 8, 8), 0.2)).numpy()
    np.testing.assert_allclose(one["outputs"]["output"]["values"], expected, rtol=1e-4, atol=1e-5)


def test_several_inputs_and_outputs_have_their_names(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(program(TwoHeads(), torch.ones(2, 3), torch.ones(2, 3)), path)
    model = open_foreign_model(path)
    assert [each.name for each in model.inputs()] == ["left", "right"]
    assert [each.name for each in model.outputs()] == ["output", "output_1"]
    two, three = np.full((4, 3), 2.0), np.full((4, 3), 3.0)
    found = model.predict({"left": two, "right": three}, ["output_1"])
    assert list(found) == ["output_1"]
    np.testing.assert_array_equal(found["output_1"], np.full((4, 3), 6.0))
    with pytest.raises(DataError, match=r"received: ValueError: nothing for right\)\. Its inputs are: left"):
        model.predict({"left": two}, ["output"])
    with pytest.raises(UnknownNameError, match="Did you mean `output_1`"):
        model.predict({"left": two, "right": three}, ["output_2"])
    with pytest.raises(DataError, match="in their shapes"):
        model.predict({"left": two, "right": np.ones((4, 5))}, ["output"])
    with pytest.raises(ConfigurationError, match="must be named"):
        predict_with_model({"model": str(path), "files": []})
    model.close()


@pytest.mark.parametrize("ending", [".pt2", ".onnx", ".pt"])
def test_damaged_and_missing_files_are_told(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"model{ending}"
    with pytest.raises(DataError, match="no such file"):
        open_foreign_model(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"must be an exported program of PyTorch \(\.pt2\), an ONNX model"):
        open_foreign_model(path)


def test_weights_alone_are_no_model(net: nn.Module, tmp_path: Path) -> None:
    torch.save(net.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(DataError, match="A file of weights alone is no model: start a job from it"):
        open_foreign_model(tmp_path / "weights.pt")
