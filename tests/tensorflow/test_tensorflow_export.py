"""Every export gives what the trained network gives, and predicts by its own ``predict.py`` where Ziggurat is not."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorflow_jobs import AUTOENCODER, digit_pictures, lenet_job, null_job, quick_job, save_pictures

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.export.formats import FORMATS
from ziggurat.backends.tensorflow.export.provider import open_foreign_model
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.engine.parity import ParityReport, parity_report
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.records.schema import Schema
from ziggurat.tasks import CLASSIFICATION, TaskContext
from ziggurat.worker.commands.exporting import export
from ziggurat.worker.commands.prediction import predict

BESIDE = {"MODEL_CARD.md", "labels.txt", "mean.npy", "model.json", "parity.json", "predict.py", "preprocessing.json"}
BESIDE |= {"task.json", "self-test.npz", "export-manifest.json", "standalone_samples.py"}
MODEL = {
    "checkpoint": {"checkpoint", "model.ckpt.data-00000-of-00001", "model.ckpt.index", "model.ckpt.meta"},
    "pb": {"model.pb"},
    "savedmodel": {"saved_model"},
    "onnx": {"model.onnx"},
    "tflite": {"model.tflite"},
}
CASES = [(name, "inside") for name in MODEL] + [("onnx", "beside"), ("tflite", "beside"), ("pb", "beside")]

# What an import of Ziggurat would be answered with on a machine that does not have it.
ALONE = """
import runpy, sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Nothing())
sys.argv = {argv!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def needed(name: str) -> None:
    if name == "onnx":
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        pytest.importorskip("tf2onnx", reason="tf2onnx is not installed")


def alone(script: Path, *words: str, blocked: tuple[str, ...] = ("ziggurat",)) -> subprocess.CompletedProcess:
    """Run an export's script in a process that cannot import some packages."""
    code = ALONE.format(blocked=blocked, argv=[str(script), *words])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def job() -> str:
    return str(lenet_job())


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Images of the right size, of another, and a file that is none."""
    folder = tmp_path_factory.mktemp("pictures")
    files = save_pictures(folder, digit_pictures()[0][:3])
    noise = np.random.default_rng(1).integers(0, 256, (40, 61, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "noise.png")
    (folder / "bad.png").write_bytes(b"no image")
    return [*files, str(folder / "noise.png"), str(folder / "bad.png")]


@pytest.mark.parametrize(("name", "place"), CASES)
def test_an_export_holds_and_predicts_the_same(
    job: str, pictures: list[str], tmp_path: Path, capsys: pytest.CaptureFixture, name: str, place: str
) -> None:
    needed(name)
    out = tmp_path / "out"
    found = export({"folder": job, "format": name, "out": str(out), "preprocessing": place})
    report = found["parity"]
    assert report["holds"], report
    assert report["relative_difference"] <= report["tolerance"] == 1e-5
    assert (report["samples"], found["split"], report["format"]) == (100, "val", name)
    assert report["accuracy_after"] == report["accuracy_before"] > 0.85
    assert (report["metric"], report["metric_before"]) == ("accuracy", report["accuracy_before"])
    assert report["size_bytes"] >= 4 * 256_080, "LeNet on 24 x 24 has that many float32 weights"
    assert report["latency_before_ms"] > 0 < report["latency_after_ms"]
    assert set(found["files"]) == {path.name for path in out.iterdir()} == BESIDE | MODEL[name]
    assert json.loads((out / "parity.json").read_text()) == report

    main = runpy.run_path(str(out / "predict.py"), run_name="predict")["main"]
    capsys.readouterr()
    assert main([*pictures, "--json", "--top", "3"]) == 4, "one file is no image"
    answer = json.loads(capsys.readouterr().out)
    expected = predict({"folder": job, "images": pictures, "top": 3})
    assert [each["file"] for each in answer["failures"]] == pictures[-1:]
    assert len(answer["predictions"]) == 4
    for own, theirs in zip(answer["predictions"], expected["predictions"], strict=True):
        assert own["file"] == theirs["file"]
        assert [each["class"] for each in own["classes"]] == [each["class"] for each in theirs["classes"]]
        shares = [[each["probability"] for each in one["classes"]] for one in (own, theirs)]
        assert shares[0] == pytest.approx(shares[1], abs=1e-5)


def test_an_export_predicts_in_a_process_without_ziggurat(job: str, pictures: list[str], tmp_path: Path) -> None:
    needed("onnx")
    out = tmp_path / "out"
    export({"folder": job, "format": "onnx", "out": str(out)})
    expected = predict({"folder": job, "images": pictures[:2], "top": 1})["predictions"]
    for missing in ("cv2", "PIL"):
        done = alone(out / "predict.py", *pictures[:2], "--json", blocked=("ziggurat", "tensorflow", missing))
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["predictions"]
        assert [each["classes"][0]["class"] for each in found] == [each["classes"][0]["class"] for each in expected]
        assert [each["classes"][0]["probability"] for each in found] == pytest.approx(
            [each["classes"][0]["probability"] for each in expected], abs=1e-5
        )
    text = alone(out / "predict.py", *pictures[1:], "--top", "1")
    assert text.returncode == 4
    assert text.stdout.splitlines()[0].startswith(f"{pictures[1]}: ")
    assert text.stderr.startswith(f"{pictures[-1]}: It cannot be read as an image: ")


def test_whitening_and_a_pixels_mean_are_exported_too(tmp_path: Path) -> None:
    needed("onnx")
    network = AUTOENCODER.replace("self.x / 255.0", "self.x").replace("[-1, 28, 28, 1]", "[-1, 28, 28, 3]")
    network = network.replace("784", "2352")
    before = {"channels": 3, "mean": "pixel", "whitening": True}
    job = quick_job(tmp_path / "job", network, steps=2, preprocessing=before)
    for name in ("pb", "onnx", "tflite"):
        report = export({"folder": str(job), "format": name, "out": str(tmp_path / name)})["parity"]
        assert report["holds"], report
        assert report["accuracy_before"] is None, "it is no classifier"
        assert "class" not in json.loads((tmp_path / name / "model.json").read_text())["outputs"]


@pytest.mark.nightly
def test_a_residual_network_with_batch_norm(tmp_path: Path) -> None:
    needed("onnx")
    job = quick_job(tmp_path / "job", "resnet18", steps=2, preprocessing={"size": [16, 16]}, learning_rate=0.02)
    for name in ("onnx", "tflite"):
        report = export({"folder": str(job), "format": name, "out": str(tmp_path / name)})["parity"]
        assert report["holds"], report
        assert report["samples"] == 100


def test_the_card_says_what_the_model_is(job: str, tmp_path: Path) -> None:
    export({"folder": job, "format": "pb", "out": str(tmp_path / "out")})
    card = (tmp_path / "out" / "MODEL_CARD.md").read_text()
    for line in (
        "**License:** (fill in: the terms under which others may use this model, and those of its data)",
        "| network | `lenet` |",
        "| format | Frozen TensorFlow graph, `model.pb` |",
        "| output | `probabilities`: (N, 10) |",
        "| source | `digits` |",
        "| crop | 24 px, in the middle |",
        "| mean | image |",
        "| learning rate | 0.02, schedule fixed, warm_up_percent 0.0, warm_up_start_factor 0.0 |",
        "| holds | yes |",
    ):
        assert line in card
    assert "| validation_accuracy | 0.9" in card
    assert "on 100 samples of the split `val`" in card
    assert (tmp_path / "out" / "labels.txt").read_text().split() == list("0123456789")


def test_an_exported_graph_opens_as_a_model_of_others(job: str, tmp_path: Path) -> None:
    for name, file in (("pb", "model.pb"), ("checkpoint", "."), ("savedmodel", "saved_model")):
        export({"folder": job, "format": name, "out": str(tmp_path / name)})
        model = open_foreign_model(tmp_path / name / file)
        assert [each.name for each in model.inputs()] == ["input"]
        shares = model.predict({"input": digit_pictures()[0][:2].astype(np.float32)}, ["probabilities"])
        assert shares["probabilities"].sum(axis=1) == pytest.approx([1, 1], abs=1e-5)
        model.close()


def test_a_folder_that_holds_something_is_left_alone(job: str, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"must get a folder of its own \(received: .*, which holds something"):
        export({"folder": job, "format": "pb", "out": str(tmp_path)})
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failed_export_leaves_nothing(job: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"`onx` is not a known export format\. Did you mean `onnx`\?"):
        export({"folder": job, "format": "onx", "out": str(tmp_path / "out")})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigurationError, match="`preprocessing` must be inside or beside"):
        export({"folder": job, "format": "onnx", "out": str(tmp_path / "out"), "preprocessing": "outside"})


def test_a_backend_that_exports_nothing_says_which_do(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"`null` does not export models\. Backends that do: tensorflow, torch\."
    ):
        export({"folder": str(null_job()), "format": "onnx", "out": str(tmp_path / "out")})


def test_the_report_says_how_far_an_export_is_away(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(1000))
    pictures, labels = np.eye(4, dtype=np.float32), np.array([0, 1, 2, 0])
    schema = Schema(kind="image-classification", class_names=("a", "b", "c", "d"))
    context = TaskContext(CLASSIFICATION, schema, Preprocessing(size=(1, 1), channels=1))

    def report(error: float) -> ParityReport:
        return parity_report(
            "mine",
            tmp_path / "model.bin",
            lambda x: {"probabilities": 8 * x},
            lambda x: {"probabilities": 8 * x + error},
            samples=pictures,
            targets={"y": labels},
            context=context,
        )

    near, far, none = report(2.0**-17), report(2.0**-10), report(float("nan"))
    assert (near.largest_difference, near.relative_difference, near.holds) == (2.0**-17, 2.0**-20, True)
    assert (far.relative_difference, far.holds) == (2.0**-13, False)
    assert not none.holds
    assert (near.accuracy_before, near.accuracy_after, near.samples, near.size_bytes) == (0.75, 0.75, 4, 1000)


def test_the_formats_have_names_for_people() -> None:
    assert {name: each.title for name, each in FORMATS.items()} == {
        "checkpoint": "TensorFlow checkpoint",
        "pb": "Frozen TensorFlow graph",
        "savedmodel": "TensorFlow SavedModel",
        "onnx": "ONNX",
        "tflite": "LiteRT (TensorFlow Lite)",
    }
