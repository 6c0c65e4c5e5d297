"""Models of every task are exported in every format that can hold them, and predict without Ziggurat."""

from __future__ import annotations

import csv
import itertools
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from task_jobs import COLUMNS, JOBS, picture, row, shapes, task_job, text
from tensorflow_jobs import digit_pictures, save_pictures

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("tf2onnx", reason="tf2onnx is not installed")

from tests.nightly import some_nightly
from ziggurat.backends.tensorflow.export.formats import FORMATS
from ziggurat.errors import ConfigurationError
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.exporting import export, preprocessed
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.commands.trained import open_trained_job

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "export-and-prove-it.md"
METRICS = {
    "classification": "accuracy",
    "classification of rows": "accuracy",
    "classification of texts": "accuracy",
    "multi-label": "mean AP",
    "segmentation": "mean IoU",
    "regression": "RMSE",
    "image-to-image": "PSNR",
    "pairs": "accuracy of pairs",
    "free": "",
    "detection": "mAP 50:95",
}
BESIDE_ONLY = {("classification of rows", "tflite"), ("regression", "tflite")}
NEVER = {("free", "onnx"), ("free", "tflite")}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return name → folder; a job is made when it is asked for."""

    class Jobs(dict[str, str]):
        def __missing__(self, name: str) -> str:
            self[name] = task_job(name, tmp_path_factory.mktemp("job"))
            return self[name]

    return Jobs()


@pytest.mark.parametrize("name", some_nightly(JOBS, nightly=["detection", "free", "pairs"]))
def test_every_format_that_can_hold_a_task_does(jobs: dict[str, str], name: str, tmp_path: Path) -> None:
    for each in FORMATS:
        request = {"folder": jobs[name], "format": each, "out": str(tmp_path / each)}
        if (name, each) in NEVER:
            with pytest.raises(ConfigurationError, match=r"cannot hold this network: it has none for \w+"):
                export(request)
            assert not (tmp_path / each).exists()
            continue
        if (name, each) in BESIDE_ONLY:
            with pytest.raises(ConfigurationError, match=r"calculates in float32.*--preprocessing beside"):
                export(request)
            request["preprocessing"] = "beside"
        report = export(request)["parity"]
        assert report["holds"], report
        assert report["metric"] == METRICS[name]
        if METRICS[name]:
            least = 1e-3 if name == "detection" else 0
            assert report["metric_after"] == pytest.approx(report["metric_before"], rel=1e-5, abs=least)
        else:
            assert report["metric_after"] is None


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "network"), [("detection", "detector_lite0"), ("segmentation", "unet_lite0")])
def test_a_network_on_a_backbone_is_exported(name: str, network: str, tmp_path: Path) -> None:
    job = task_job(name, tmp_path, steps=2, network=network)
    for form in FORMATS:
        report = export({"folder": job, "format": form, "out": str(tmp_path / form)})["parity"]
        assert report["holds"], report


@pytest.mark.parametrize("name", ["classification of rows", "multi-label", "segmentation", "regression"])
def test_the_metric_is_that_of_an_evaluation(jobs: dict[str, str], name: str, tmp_path: Path) -> None:
    report = export({"folder": jobs[name], "format": "pb", "out": str(tmp_path / "out")})["parity"]
    found = evaluate({"folder": jobs[name]})
    assert report["samples"] == found["samples"] == 40
    job = open_trained_job(Path(jobs[name]))
    assert report["metric_before"] == pytest.approx(found[job.task.primary_metric.name], rel=1e-6)


def test_masks_are_cropped_as_their_images_are(tmp_path: Path) -> None:
    before = {"crop": 8, "mean": "pixel", "whitening": True}
    job = task_job("segmentation", tmp_path, preprocessing=before)
    report = export({"folder": job, "format": "onnx", "out": str(tmp_path / "out")})["parity"]
    assert report["holds"], report
    assert report["metric_before"] == pytest.approx(evaluate({"folder": job})["mean_iou"], rel=1e-6)
    described = json.loads((tmp_path / "out" / "model.json").read_text())
    assert (described["input"]["shape"], described["outputs"]["output"]) == ([None, 16, 16, 3], [None, 8, 8, 2])


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["savedmodel", "tflite"])
def test_detections_are_compared_box_by_box(jobs: dict[str, str], form: str, tmp_path: Path) -> None:
    report = export({"folder": jobs["detection"], "format": form, "out": str(tmp_path / "out")})["parity"]
    described = json.loads((tmp_path / "out" / "model.json").read_text())
    assert described["outputs"] == {"detections": [None, 100, 6]}
    assert report["boxes"] > report["samples"]
    assert report["boxes_apart"] <= report["boxes"] / 1000
    assert abs(report["metric_before"] - report["metric_after"]) <= 1e-3


def test_the_page_tells_which_format_holds_which_task() -> None:
    lines = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines]
    start = next(place for place, line in enumerate(cells) if line[0] == "task")
    formats = [cell.strip("`") for cell in cells[start][1:]]
    assert formats == list(FORMATS)
    found = {line[0]: dict(zip(formats, line[1:], strict=True)) for line in cells[start + 2 : start + 2 + len(JOBS)]}

    def word(pair: tuple[str, str]) -> str:
        return "no" if pair in NEVER else "beside" if pair in BESIDE_ONLY else "yes"

    assert found == {name: {each: word((name, each)) for each in FORMATS} for name in JOBS}


def inputs(name: str, folder: Path) -> list[str]:
    """Write inputs for a job; return the files."""
    data = JOBS[name][0]
    if data == "digits":
        return save_pictures(folder, digit_pictures()[0][:2])
    if data == "texts":
        (folder / "texts.txt").write_text("".join(f"{text(number)}\n" for number in range(200, 203)))
        return [str(folder / "texts.txt")]
    if data.startswith("rows"):
        names = [column.name for column in COLUMNS]
        with (folder / "rows.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([names, row(200), ["", "purple", *row(201)[2:]]])
        rows = [dict(zip(names, row(number), strict=True)) for number in (202, 203)]
        (folder / "rows.json").write_text(json.dumps(rows))
        return [str(folder / "rows.csv"), str(folder / "rows.json")]
    if data == "shapes":
        return save_pictures(folder, np.stack([shapes(200)[:50], shapes(201)[:50]]))
    files = [str(folder / f"{number}.png") for number in (200, 201)]
    for number, file in zip((200, 201), files, strict=True):
        Image.fromarray(picture(number)).save(file)
    return files


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
    ("name", "place"),
    some_nightly(itertools.product(JOBS, ["inside", "beside"]), nightly=[("detection", "inside")]),
)
def test_predict_py_gives_what_ziggurat_predicts(
    jobs: dict[str, str], name: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, files = tmp_path / "out", inputs(name, tmp_path)
    export({"folder": jobs[name], "format": "pb", "out": str(out), "preprocessing": place})
    main = runpy.run_path(str(out / "predict.py"), run_name="predict")["main"]
    capsys.readouterr()
    assert main([*files, "--json", "--out", str(tmp_path / "pictures")]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    job = open_trained_job(Path(jobs[name]))
    expected = predict({"folder": jobs[name], "images": files})["predictions"]
    pictures = [each.pop("picture", "") for each in found]
    if JOBS[name][1] == "gan":  # the noise depends on how many samples there are
        assert [list(each) for each in found] == [["file", "size", "mean", "least", "largest"]] * 2
    else:
        assert found == approximately(expected)
    has_picture = name in ("detection", "segmentation", "image-to-image", "free")
    assert all(bool(each) == has_picture for each in pictures)
    for each in pictures if has_picture else ():
        size = (50, 64) if name == "detection" else job.images.size  # boxes are drawn on the original
        assert np.asarray(Image.open(each)).shape[:2] == size
    assert main([*files, "--out", str(tmp_path / "pictures")]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  ")]
    assert len(lines) == len(found)


def test_inputs_that_cannot_be_read_are_named(
    jobs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    export({"folder": jobs["regression"], "format": "pb", "out": str(out)})
    main = runpy.run_path(str(out / "predict.py"), run_name="predict")["main"]
    (tmp_path / "rows.csv").write_text(
        "size;color;built;kind\nlarge;red;2020-01-01;dear\n1;red;2020-01-01;dear\n1;red\n"
    )
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    capsys.readouterr()
    assert main([str(tmp_path / "rows.csv"), str(tmp_path / "other.csv"), str(tmp_path / "none.csv")]) == 4
    shown, said = capsys.readouterr()
    assert shown.startswith(f"{tmp_path / 'rows.csv'}:2: price ")
    assert len(shown.splitlines()) == 1
    first, second, third, fourth = said.splitlines()
    assert "rows.csv:1: It cannot be used: its column `size` must hold a number such as 12.5" in first
    assert "rows.csv:3: It cannot be used: it has 2 cells instead of 4." in second
    assert "other.csv: It cannot be read as a table: it needs rows of the columns size, color" in third
    assert "none.csv: It cannot be read as a table: " in fourth


def test_rows_are_predicted_for_where_ziggurat_is_not(jobs: dict[str, str], tmp_path: Path) -> None:
    out, files = tmp_path / "out", inputs("regression", tmp_path)
    export({"folder": jobs["regression"], "format": "onnx", "out": str(out)})
    code = (
        "import runpy, sys\n"
        "for name in ('ziggurat', 'tensorflow', 'PIL', 'cv2'): sys.modules[name] = None\n"
        f"sys.argv = {[str(out / 'predict.py'), *files, '--json']!r}\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expected = predict({"folder": jobs["regression"], "images": files})["predictions"]
    assert json.loads(done.stdout)["predictions"] == approximately(expected)


def test_a_table_takes_rows_that_are_not_scaled(jobs: dict[str, str], tmp_path: Path) -> None:
    export({"folder": jobs["regression"], "format": "pb", "out": str(tmp_path / "out")})
    described = json.loads((tmp_path / "out" / "model.json").read_text())
    card = (tmp_path / "out" / "MODEL_CARD.md").read_text()
    assert described["preprocessing"] == "inside"
    assert described["input"]["dtype"] == "float64"
    assert "| task | regression |" in card
    assert "float64, encoded as `preprocessing.json` describes: size, built, " in card
    assert "| metric | RMSE |" in card
    assert "classes" not in card
    assert not (tmp_path / "out" / "labels.txt").exists()


def test_texts_have_their_token_numbers_beside(jobs: dict[str, str], tmp_path: Path) -> None:
    export({"folder": jobs["classification of texts"], "format": "pb", "out": str(tmp_path / "out")})
    card = (tmp_path / "out" / "MODEL_CARD.md").read_text()
    assert json.loads((tmp_path / "out" / "model.json").read_text())["preprocessing"] == "beside"
    assert "token numbers (N, 8) int32: 0 padding, 1 unknown, then the words" in card
    assert "beside the model, `predict.py` makes the token numbers" in card
    assert (tmp_path / "out" / "labels.txt").read_text() == "good\nbad\n"


def test_a_mask_keeps_its_palette(jobs: dict[str, str], tmp_path: Path) -> None:
    export({"folder": jobs["segmentation"], "format": "pb", "out": str(tmp_path / "out")})
    task = json.loads((tmp_path / "out" / "task.json").read_text())
    assert task["task"] == "segmentation"
    assert task["schema"]["class_names"] == ["ground", "square"]
    assert task["postprocessing"] == {"form": "mask", "output": "output", "palette": [[0, 0, 0], [90, 174, 245]]}


def test_both_images_of_a_pair_are_preprocessed(jobs: dict[str, str]) -> None:
    context = open_trained_job(Path(jobs["pairs"])).context
    first, second = (digit_pictures()[0][part] for part in (slice(3), slice(3, 6)))
    found = preprocessed(context, np.concatenate([first, second], axis=3))
    finish = context.preprocessing.finish
    np.testing.assert_array_equal(found, np.concatenate([finish(first), finish(second)], axis=3))
