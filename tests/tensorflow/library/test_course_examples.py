"""The programs of ``examples/tensorflow_course`` run as they stand, and learn."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

REPOSITORY = Path(__file__).parents[3]
FOLDER = REPOSITORY / "examples/tensorflow_course"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run a program in this process; return what it printed."""

    def call(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        monkeypatch.syspath_prepend(str(FOLDER))
        capsys.readouterr()
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        sys.modules.pop("common", None)
        return capsys.readouterr().out

    return call


def run_apart(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    ran = subprocess.run([sys.executable, *words], timeout=110, check=False, **pipes)
    assert ran.returncode == 0, ran.stderr
    return ran


def accuracies(out: str) -> list[float]:
    return [float(value) for value in re.findall(r"^epoch \d+: accuracy ([\d.]+)$", out, re.MULTILINE)]


def test_branches_share_their_variables(run) -> None:
    out = run("variable_sharing", "--epochs", "3")
    assert accuracies(out)[-1] > 0.7
    found = re.findall(r"^variable (\S+)", out, re.MULTILINE)
    assert found == [f"{layer}/{part}" for layer in ("conv1", "conv2", "scores") for part in ("kernel", "bias")]


def test_lenet_is_a_class(run) -> None:
    assert accuracies(run("lenet_class", "--epochs", "3"))[-1] > 0.8


@pytest.mark.nightly
def test_convolutions_are_images_for_tensorboard(tmp_path: Path) -> None:
    ran = run_apart(str(FOLDER / "convolution_images.py"), "--epochs", "1", "--folder", str(tmp_path))
    assert "image conv1/kernels (128, 128)\nimage conv1/features (288, 288)\n" in ran.stdout
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*tfevents*"))
    assert b"conv1/kernels" in written
    assert b"\x89PNG" in written


def test_equal_digits_come_to_lie_near_each_other(run) -> None:
    assert accuracies(run("siamese", "--epochs", "3"))[-1] > 0.8


def test_limits_of_gradients_save_a_training(run) -> None:
    out = run("gradient_clipping", "--epochs", "4")
    reached = {kind: float(value) for kind, value in re.findall(r"^(\w+) \(.*: accuracy ([\d.]+),", out, re.MULTILINE)}
    assert reached["none"] < 0.3 < 0.5 < reached["norm"]
    assert reached["value"] > reached["none"]


def test_prices_make_weights_small_or_few(run) -> None:
    out = run("regularization", "--epochs", "30")
    found = re.findall(r"^(\w+): accuracy ([\d.]+), length of the weights ([\d.]+), (\d+) %", out, re.MULTILINE)
    length = {kind: float(value) for kind, _, value, _ in found}
    near_zero = {kind: int(share) for kind, _, _, share in found}
    assert length["l2"] < length["none"]
    assert near_zero["l1"] > 2 * near_zero["none"]
    assert all(float(accuracy) > 0.8 for _, accuracy, _, _ in found)


def test_gradient_descent_finds_what_scikit_learn_finds(run) -> None:
    out = run("linear_regression")
    pairs = re.findall(r"gradient descent (-?[\d.]+), scikit-learn (-?[\d.]+)$", out, re.MULTILINE)
    assert len(pairs) == 5
    assert all(abs(float(ours) - float(known)) < 2e-3 for ours, known in pairs)


@pytest.mark.nightly
def test_slim_lenet_runs_as_a_script_for_tensorflow_1() -> None:
    ran = run_apart("-m", "ziggurat", "run-script", str(FOLDER / "slim_lenet.py"), "--epochs", "6")
    assert accuracies(ran.stdout)[-1] > 0.8
    assert "tf.contrib.slim.conv2d" in ran.stderr


def test_every_program_of_the_folder_has_a_test() -> None:
    tested = set(re.findall(r'\brun\("(\w+)"', Path(__file__).read_text())) | {
        "convolution_images",
        "slim_lenet",
        "common",
    }
    assert tested == {path.stem for path in FOLDER.glob("*.py")}
