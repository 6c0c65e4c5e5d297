"""Exports of PyTorch networks give what the networks give, and predict by their own ``predict.py``."""

from __future__ import annotations

import csv
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch_jobs import JOBS, digit_pictures, quick_job, save_pictures, task_job

from tests.unit.datasets.small_task_datasets import COLUMNS, picture, row, shapes, text
from ziggurat.backends.torch.export.formats import FORMATS
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.serving.manifest import check_export
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.exporting import export
from ziggurat.worker.commands.prediction import predict

METRICS = {
    "classification": "accuracy",
    "image-to-image": "PSNR",
    "segmentation": "mean IoU",
    "regression": "RMSE",
    "classification of rows": "accuracy",
    "classification of texts": "accuracy",
    "multi-label": "mean AP",
    "free": "",
    "pairs": "accuracy of pairs",
    "detection": "mAP 50:95",
}
BESIDE = {"MODEL_CARD.md", "labels.txt", "mean.npy", "model.json", "parity.json", "predict.py", "preprocessing.json"}
BESIDE |= {"task.json", "self-test.npz", "export-manifest.json", "standalone_samples.py"}
MODEL = {
    "pt2": {"model.pt2"},
    "onnx": {"model.onnx"},
    "safetensors": {"model.safetensors", "network.py", "network.json", "standalone_boxes.py", "standalone_network.py"},
}
ALONE = """
import runpy, sys
for name in {blocked!r}:
    sys.modules[name] = None
sys.argv = {argv!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def needed(name: str) -> None:
    if name == "onnx":
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        pytest.importorskip("onnxscript", reason="onnxscript is not installed")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return name → folder; a job is made when it is asked for."""

    class Jobs(dict[str, str]):
        def __missing__(self, name: str) -> str:
            self[name] = task_job(name, tmp_path_factory.mktemp("job"))
            return self[name]

    return Jobs()


def inputs(name: str, folder: Path) -> list[str]:
    """Write inputs for a job; return the files."""
    data = JOBS[name][0]
    if data == "digits":
        return save_pictures(folder, digit_pictures()[0][:2])
    if data == "shapes":
        return save_pictures(folder, np.stack([shapes(200)[:50], shapes(201)[:50]]))
    if data in ("masks", "labels"):
        return save_pictures(folder, np.stack([picture(200), picture(201)]))
    if data == "texts":
        (folder / "texts.txt").write_text("".join(f"{text(number)}\n" for number in range(200, 203)))
        return [str(folder / "texts.txt")]
    with (folder / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[column.name for column in COLUMNS], row(200), row(201)])
    return [str(folder / "rows.csv")]


def approximately(value: Any) -> Any:
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-4, abs=1e-4)
    if isinstance(value, dict) and "box" in value:  # rounded to hundredths
        others = {name: approximately(each) for name, each in value.items() if name != "box"}
        return {**others, "box": pytest.approx(value["box"], abs=0.011)}
    if isinstance(value, dict):
        return {name: approximately(each) for name, each in value.items()}
    return [approximately(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, marks=pytest.mark.nightly if (name, form) == ("detection", "pt2") else ())
        for name in JOBS
        for form in FORMATS
    ],
)
def test_an_export_holds_and_predicts_the_same(
    jobs: dict[str, str], name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needed(form)
    out, files = tmp_path / "out", inputs(name, tmp_path)
    found = export({"folder": jobs[name], "format": form, "out": str(out)})
    report = found["parity"]
    assert report["holds"], report
    assert report["relative_difference"] <= report["tolerance"] == 1e-5
    assert report["metric"] == METRICS[name]
    if METRICS[name]:
        least = 1e-3 if name == "detection" else 0
        assert report["metric_after"] == pytest.approx(report["metric_before"], rel=1e-5, abs=least)
    else:
        assert report["metric_after"] is None
    assert MODEL[form] <= set(found["files"])
    described = json.loads((out / "model.json").read_text())
    is_inside = form != "safetensors" and name != "classification of texts"
    assert described["preprocessing"] == ("inside" if is_inside else "beside")
    main = runpy.run_path(str(out / "predict.py"), run_name="predict")["main"]
    capsys.readouterr()
    assert main(["--self-test", "--json"]) == 0
    tested = json.loads(capsys.readouterr().out)
    assert len(tested["differences"]) == described["self_test"]["samples"] == 16
    check_export(out)
    assert main([*files, "--json", "--out", str(tmp_path / "made")]) == 0
    predicted = json.loads(capsys.readouterr().out)["predictions"]
    images = [each.pop("picture", "") for each in predicted]
    assert all(bool(each) == (name in ("detection", "segmentation", "image-to-image", "free")) for each in images)
    if name == "free":  # the noise depends on the place of a sample in its batch
        assert [each["size"] for each in predicted] == [[28, 28]] * 2
        return
    expected = predict({"folder": jobs[name], "images": files})["predictions"]
    if name == "segmentation":  # masks of predict.py have the size of the network, not that of the file
        assert [each.pop("size") for each in predicted] == [[8, 8]] * len(files)
        assert [each.pop("size") for each in expected] == [[16, 16]] * len(files)
    assert predicted == approximately(expected)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "network"), [("detection", "detector_lite0"), ("segmentation", "unet_lite0")])
def test_a_network_on_a_backbone_is_exported(name: str, network: str, tmp_path: Path) -> None:
    job = task_job(name, tmp_path, steps=2, network=network)
    for form in FORMATS:
        needed(form)
        report = export({"folder": job, "format": form, "out": str(tmp_path / form)})["parity"]
        assert report["holds"], report


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
def test_detections_are_compared_box_by_box(jobs: dict[str, str], form: str, tmp_path: Path) -> None:
    needed(form)
    out = tmp_path / "out"
    report = export({"folder": jobs["detection"], "format": form, "out": str(out)})["parity"]
    described = json.loads((out / "model.json").read_text())
    card = (out / "MODEL_CARD.md").read_text()
    if form == "safetensors":  # weights give the boxes and scores of the network
        assert (report["boxes"], described["outputs"]) == (None, {"output": [None, 84, 7]})
        assert "| boxes" not in card
        return
    assert described["outputs"] == {"detections": [None, 100, 6]}
    assert report["boxes"] > report["samples"]
    assert report["boxes_apart"] <= report["boxes"] / 1000
    assert abs(report["metric_before"] - report["metric_after"]) <= 1e-3
    assert f"| boxes | {report['boxes']} |" in card
    if form == "onnx":
        model = pytest.importorskip("onnx", reason="onnx is not installed").load(out / "model.onnx")
        assert [each.op_type for each in model.graph.node].count("NonMaxSuppression") == 1


def test_the_files_and_shapes_of_an_export(jobs: dict[str, str], tmp_path: Path) -> None:
    needed("onnx")
    for form, files in MODEL.items():
        found = export({"folder": jobs["classification"], "format": form, "out": str(tmp_path / form)})
        assert set(found["files"]) == BESIDE | files
        assert (found["parity"]["samples"], found["split"]) == (100, "val")
    described = json.loads((tmp_path / "onnx" / "model.json").read_text())
    assert described["input"] == {"shape": [None, 28, 28, 1], "dtype": "float32", "images": 1}
    assert described["outputs"] == {"output": [None, 10], "probabilities": [None, 10]}
    card = (tmp_path / "pt2" / "MODEL_CARD.md").read_text()
    assert "| format | PyTorch exported program, `model.pt2` |" in card
    assert f"with PyTorch {torch.__version__}." in card
    weights = json.loads((tmp_path / "safetensors" / "network.json").read_text())
    assert (weights["nclasses"], weights["input_shape"]) == (10, [1, 24, 24])
    from safetensors.numpy import load_file

    assert set(load_file(tmp_path / "safetensors" / "model.safetensors")) == {
        *("conv1.weight", "conv1.bias", "fc1.weight", "fc1.bias", "norm1.weight", "norm1.bias"),
        *("norm1.running_mean", "norm1.running_var", "norm1.num_batches_tracked"),
    }


@pytest.mark.parametrize("form", FORMATS)
def test_the_preprocessing_may_stand_beside(jobs: dict[str, str], form: str, tmp_path: Path) -> None:
    needed(form)
    out, request = tmp_path / "out", {"folder": jobs["regression"], "format": form, "preprocessing": "beside"}
    assert export({**request, "out": str(out)})["parity"]["holds"]
    described = json.loads((out / "model.json").read_text())
    assert (described["preprocessing"], described["input"]["dtype"]) == ("beside", "float32")


@pytest.mark.parametrize("form", FORMATS)
def test_predict_py_needs_no_ziggurat(jobs: dict[str, str], form: str, tmp_path: Path) -> None:
    needed(form)
    files = inputs("pairs", tmp_path)
    export({"folder": jobs["pairs"], "format": form, "out": str(tmp_path / "out")})
    blocked = ("ziggurat", "tensorflow", "cv2", *(["torch"] if form == "onnx" else []))
    code = ALONE.format(blocked=blocked, argv=[str(tmp_path / "out" / "predict.py"), *files, "--json"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["predictions"]
    assert found == approximately(predict({"folder": jobs["pairs"], "images": files})["predictions"])


def test_masks_are_cropped_as_their_images_are(jobs: dict[str, str], tmp_path: Path) -> None:
    report = export({"folder": jobs["segmentation"], "format": "pt2", "out": str(tmp_path / "out")})["parity"]
    assert report["metric_before"] == pytest.approx(evaluate({"folder": jobs["segmentation"]})["mean_iou"], rel=1e-6)
    described = json.loads((tmp_path / "out" / "model.json").read_text())
    assert (described["input"]["shape"], described["outputs"]["output"]) == ([None, 16, 16, 3], [None, 8, 8, 2])


BRANCHES = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(784, nclasses)

    def forward(self, x):
        x = x.flatten(1)
        if x.sum() > 100:
            x = x / 255
        return self.fc1(x)
"""


def test_a_network_that_cannot_be_exported_names_its_line(tmp_path: Path) -> None:
    needed("onnx")
    job = str(quick_job(tmp_path / "job", BRANCHES))
    line = BRANCHES[: BRANCHES.index("if x.sum")].count("\n") + 1
    for form in ("pt2", "onnx"):
        with pytest.raises(ConfigurationError, match=f"format `{form}` cannot hold this network: ") as caught:
            export({"folder": job, "format": form, "out": str(tmp_path / form)})
        assert f"net.py, line {line}, `if x.sum() > 100:`: " in str(caught.value)
        assert not (tmp_path / form).exists()
    assert export({"folder": job, "format": "safetensors", "out": str(tmp_path / "out")})["parity"]["holds"]


FIXED = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 784))
        self.fc1 = nn.Linear(784, nclasses)

    def forward(self, x):
        return self.fc1(x.flatten(1) / 255 + self.token.expand(int(len(x)), -1))
"""


def test_the_number_of_samples_stays_open(tmp_path: Path) -> None:
    job = str(quick_job(tmp_path / "job", FIXED))
    with pytest.raises(ConfigurationError, match=r"it makes a constant of the number of samples"):
        export({"folder": job, "format": "pt2", "out": str(tmp_path / "fixed")})
    other = str(quick_job(tmp_path / "other", FIXED.replace("int(len(x))", "len(x)")))
    assert export({"folder": other, "format": "pt2", "out": str(tmp_path / "open")})["parity"]["samples"] == 100


def test_an_unknown_format_names_the_nearest(jobs: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"`onx` is not a known export format\. Did you mean `onnx`\?"):
        export({"folder": jobs["classification"], "format": "onx", "out": str(tmp_path / "out")})


def test_weights_go_on_in_a_program_of_ones_own(jobs: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    export({"folder": jobs["classification"], "format": "safetensors", "out": str(out)})
    module = runpy.run_path(str(out / "standalone_network.py"))["load_module"](out / "model.safetensors")
    assert isinstance(module, torch.nn.Module)
    assert not module.training
    loss = torch.nn.functional.cross_entropy(module(torch.rand(4, 1, 24, 24)), torch.arange(4))
    loss.backward()
    assert module.conv1.weight.grad.abs().sum() > 0
