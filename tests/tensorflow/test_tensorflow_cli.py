"""The shell's verbs around a network, end to end: what people read, what programs read, and the exit codes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorflow_jobs import digit_pictures, lenet_job, null_job, quick_job, save_pictures

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.cli.main import main, root
from ziggurat.dataflow.image_codec import read_image


@dataclass
class Answer:
    """What one call of ``ziggurat`` gave."""

    code: int
    out: str
    err: str

    @property
    def content(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture
def ziggurat(capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Answer]:
    """Call ``ziggurat`` with words; its tasks run in real processes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Answer:
        capfd.readouterr()
        code = main([str(word) for word in words])
        return Answer(code, *capfd.readouterr())

    return call


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    return save_pictures(tmp_path, digit_pictures()[0][:2])


def test_the_verbs_are_there() -> None:
    names = {verb.name for verb in root.verbs()}
    assert {"evaluate", "predict", "export", "model", "debug", "graph"} <= names


# ---- without a framework


def test_evaluate_for_people(ziggurat: Callable[..., Answer]) -> None:
    answer = ziggurat("evaluate", null_job(), "--split", "test", "--checkpoint", "latest")
    assert (answer.code, answer.err) == (0, "")
    head, figures, classes, matrix = answer.out.split("\n\n")
    assert head == f"{null_job()}, step-00000156 (step 156): 275 samples of test"
    assert [line.split()[0] for line in figures.splitlines()] == ["cost", "accuracy", "top_5"]
    assert classes.splitlines()[0].split() == ["class", "samples", "precision", "recall"]
    assert len(classes.splitlines()) == 11
    assert matrix.splitlines()[0] == "Rows: the class; columns: what it was taken for."
    counts = [[int(word) for word in line.split()[1:]] for line in matrix.splitlines()[2:]]
    assert np.sum(counts) == 275
    share = float(figures.split("accuracy")[1].split()[0])
    assert np.trace(counts) / 275 == pytest.approx(share, rel=1e-5)


def test_predict_for_people_names_bad_files(ziggurat: Callable[..., Answer], images: list[str]) -> None:
    answer = ziggurat("predict", null_job(), images[0], "gone.png", images[1], "--top", "2")
    assert answer.code == 4
    first, second = answer.out.splitlines()
    assert first.startswith(f"{images[0]}: {digit_pictures()[1][0]} ")
    assert len(second.removeprefix(f"{images[1]}: ").split("  ")) == 2
    assert answer.err.splitlines() == [
        "Predicted by step-00000156: step 156, epoch 4.",
        "Error: Datapoint 'gone.png' cannot be used: it cannot be read (No such file or directory).",
    ]


def test_errors_have_their_exit_codes(ziggurat: Callable[..., Answer], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    assert ziggurat("evaluate", empty).code == 10
    answer = ziggurat("evaluate", null_job(), "--split", "vall", "--json")
    assert (answer.code, answer.content["error"], answer.err) == (3, "unknown_name", "")
    assert ziggurat("predict", null_job()).code == 2
    assert ziggurat("graph", "lenet", "--input-shape", "28x28").err == (
        "Error: `28x28` is not HxWxC or N, which `--input-shape` takes. Write it as in 28x28x1, or 13.\n"
    )
    assert ziggurat("model", "predict", "a.pb", "b.npy", "--feed", "rate").code == 2
    assert ziggurat("debug", "net.py", "--time-limit", "0").code == 2
    answer = ziggurat("export", null_job(), "--format", "onnx")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("Error: The backend `null` does not export models.")


# ---- with TensorFlow


@pytest.mark.smoke
def test_a_trained_lenet_is_evaluated_and_predicts(ziggurat: Callable[..., Answer], images: list[str]) -> None:
    figures = ziggurat("evaluate", lenet_job(), "--json")
    assert (figures.code, figures.err) == (0, "")
    assert figures.content["accuracy"] > 0.9
    assert np.sum(figures.content["confusion"]) == figures.content["samples"] == 270
    answer = ziggurat("predict", lenet_job(), *images, "gone.png", "--json", "--top", "1")
    assert (answer.code, answer.err) == (4, "")
    assert [each["file"] for each in answer.content["predictions"]] == images
    assert answer.content["failures"][0]["file"] == "gone.png"


@pytest.mark.nightly
def test_export_writes_beside_the_caller_and_shows_the_report(ziggurat: Callable[..., Answer], tmp_path: Path) -> None:
    job = lenet_job()
    answer = ziggurat("export", job, "--format", "pb")
    assert (answer.code, answer.err) == (0, "")
    name, _, files = answer.out.partition(": ")
    assert name == f"{Path(job).name}-pb"
    assert files.startswith("MODEL_CARD.md, export-manifest.json, labels.txt, mean.npy, model.json, model.pb, parity")
    assert "\nparity               100 samples of val\n" in answer.out
    assert "\nholds                yes\n" in answer.out
    assert "\nThe exported model gives the same.\nNot signed. " in answer.out
    assert (tmp_path / name / "predict.py").is_file()


def test_graph_for_people(ziggurat: Callable[..., Answer]) -> None:
    answer = ziggurat("graph", "lenet", "--classes", "7", "--operations")
    assert (answer.code, answer.err) == (0, "")
    lines = [line.split("  ") for line in answer.out.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["conv1", "(N, 24, 24, 20)", "520", "3"] in cells
    assert ["model/fc2/weights", "(500, 7)", "3,500", "yes"] in cells
    assert ["model/pool1/MaxPool", "MaxPool", "(N, 12, 12, 20)", "model/conv1/Relu"] in cells
    assert answer.out.endswith(
        "input (N, 28, 28, 1), outputs (N, 7)\n429,577 parameters, 2,291,500 multiply-adds a sample\n"
    )


def test_debug_shows_the_users_line_first_and_then_the_trace(ziggurat: Callable[..., Answer], tmp_path: Path) -> None:
    text = "class UserModel(Tower):\n    inference = loss = model_property(lambda self: print('hello') or self.z)\n"
    (tmp_path / "mine.py").write_text(text)
    answer = ziggurat("debug", "mine.py")
    assert (answer.code, answer.out) == (5, "")
    printed, error, *trace = answer.err.splitlines()
    assert printed == "hello"
    assert error.startswith("Error: mine.py, line 2, `inference = loss")
    assert "`: AttributeError: 'UserModel' object has no attribute 'z'." in error
    assert trace[:2] == ["", "Traceback (most recent call last):"]
    assert '  File "mine.py", line 2, in <lambda>' in trace


def test_graph_of_a_file_for_a_table(ziggurat: Callable[..., Answer], tmp_path: Path) -> None:
    text = "class UserModel(Tower):\n    task = 'regression'\n\n    @model_property\n    def inference(self):\n"
    text += "        return slim.fully_connected(self.x, 1, activation_fn=None)\n\n    @model_property\n"
    text += "    def loss(self):\n        return digits.mse_loss(self.inference, self.y)\n"
    (tmp_path / "mine.py").write_text(text)
    found = ziggurat("graph", "mine.py", "--input-shape", "7", "--json").content
    assert (found["task"], found["input_shape"], found["classes"], found["parameters"]) == ("regression", [7], None, 8)


@pytest.mark.nightly
def test_predict_writes_what_a_network_generates(ziggurat: Callable[..., Answer], tmp_path: Path) -> None:
    job = quick_job(tmp_path / "job", "gan")
    answer = ziggurat("predict", job, "--count", "3", "--seed", "5", "--pictures", "made")
    assert answer.code == 0, answer.err
    assert [line.strip() for line in answer.out.splitlines() if line.strip().startswith("image ")] == [
        f"image made/{number}.png" for number in (1, 2, 3)
    ]
    assert answer.err.splitlines() == ["Predicted by step-00000000: step 0, epoch 0.", "3 files written."]
    assert [read_image(tmp_path / "made" / f"{number}.png").shape for number in (1, 2, 3)] == [(28, 28, 3)] * 3
    assert ziggurat("predict", job, "--count", "1", "--pictures", "made").code == 2
    noise = "noise=" + ",".join(["0.5"] * 64)
    given = ziggurat("predict", job, "--count", "1", "--input", noise, "--json")
    assert given.code == 0, given.err
    assert given.content["predictions"][0]["outputs"]["output"]["shape"] == [28, 28, 1]
    for wrong, said in (("noise", "NAME=NUMBERS"), ("noise=1,x", "NAME=NUMBERS"), ("noise=1", "rows of shape")):
        answer = ziggurat("predict", job, "--count", "1", "--input", wrong)
        assert answer.code != 0
        assert said in answer.err


@pytest.mark.nightly
def test_a_model_of_others(ziggurat: Callable[..., Answer], tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, (None, 2), name="x")
        tf.multiply(x, 2.0, name="twice")
    (tmp_path / "own.pb").write_bytes(graph.as_graph_def().SerializeToString())
    np.save(tmp_path / "x.npy", np.array([[1, 2], [3, 4]], np.float32))
    listed = ziggurat("model", "inspect", "own.pb")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out == (
        "own.pb: pb\n\nInputs\nname  type         numbers  shape\nx     Placeholder  float32  (N, 2)\n\n"
        "Likely outputs (nothing else reads them, or a signature names them)\n"
        "name   type  numbers  shape\ntwice  Mul   float32  (N, 2)\n"
    )
    answer = ziggurat("model", "predict", "own.pb", "x.npy", "--input", "x", "--output", "twice")
    assert (answer.code, answer.out) == (0, "x.npy:\n  twice (2, 2): 2 4 6 8\n")
