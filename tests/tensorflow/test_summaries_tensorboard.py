"""A job's ``tb/`` holds what TensorBoard shows: curves, the user's images and histograms, and the graph, once."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("tensorboard", reason="TensorBoard is not installed")

from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

NETWORK = """
class UserModel(Tower):
    def gradientUpdate(self, grads):
        for gradient, variable in grads:
            tf.summary.histogram(variable.op.name + '/gradient', gradient)
        return grads

    @model_property
    def inference(self):
        self.summaries.append(tf.summary.image('pictures', self.x, max_outputs=2))
        net = slim.fully_connected(slim.flatten(self.x / 255.0), 8, scope='fc1')
        tf.summary.histogram('hidden', net)
        if self.is_training:
            tf.summary.histogram('noise', net + tf.random_normal([1]))
            tf.summary.scalar('only_in_training', tf.reduce_mean(net))
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope='fc2')

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        largest = tf.summary.scalar('largest', tf.reduce_max(self.inference))
        self.summaries.append(tf.summary.merge([tf.summary.scalar(accuracy.op.name, accuracy), largest]))
        return digits.classification_loss(self.inference, self.y)
"""


def train(folder: Path, text: str, *, epochs: int = 2, **changes: Any) -> str:
    """Let a worker train a job, or go on with it; return what it wrote to its log."""
    network = {"source": "file", "path": "mine.py", "text": text}
    spec = {"kind": "train", "version": 1, "backend": "tensorflow", "network": network, "data": "digits", "seed": 1}
    spec |= {"epochs": epochs, "steps_per_epoch": 3, "batch_size": 32, "schedule": "fixed", **changes}
    folder.mkdir(exist_ok=True)
    save_spec(parse_spec(spec, source="a test"), JobFolder(folder).spec)
    command = [sys.executable, "-m", "ziggurat.worker", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return JobFolder(folder).log.read_text()


def shown(folder: Path) -> Any:
    """Return TensorBoard's own reader of a job's files."""
    reader: Any = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    accumulator = reader.EventAccumulator(str(folder / "tb"), size_guidance={"images": 0, "histograms": 0})
    return accumulator.Reload()


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    train(folder, NETWORK)
    return folder


def test_every_scalar_is_a_curve_wherever_it_was_made(job: Path) -> None:
    scalars = set(shown(job).Tags()["scalars"])
    assert {"cost", "accuracy", "largest", "only_in_training", "learning_rate"} <= scalars
    assert {"validation_cost", "validation_accuracy", "validation_largest"} <= scalars
    assert "validation_only_in_training" not in scalars
    assert [point.step for point in shown(job).Scalars("accuracy")] == list(range(1, 7))


def test_the_users_pictures_are_there_once_an_epoch(job: Path) -> None:
    found = shown(job)
    assert found.Tags()["images"] == ["pictures/image/0", "pictures/image/1"]
    pictures = found.Images("pictures/image/0")
    assert [(each.step, each.width, each.height) for each in pictures] == [(3, 28, 28), (6, 28, 28)]
    assert pictures[0].encoded_image_string.startswith(b"\x89PNG")


def test_the_users_histograms_are_there_those_of_gradients_too(job: Path) -> None:
    found = shown(job)
    names = ("fc1/weights", "fc1/biases", "fc2/weights", "fc2/biases")
    assert set(found.Tags()["histograms"]) == {"hidden", *(f"model/{name}/gradient" for name in names)}
    histograms = found.Histograms("hidden")
    assert [each.step for each in histograms] == [3, 6]
    assert histograms[0].histogram_value.num == 32 * 8
    assert histograms[0].histogram_value.min == 0, "behind a ReLU"


def test_what_would_change_the_training_is_left_out_and_named(job: Path) -> None:
    log = JobFolder(job).log.read_text()
    assert "The summary 'noise' is left out: computing it beside a training step would change the training." in log


@pytest.mark.nightly
def test_the_graph_is_there_once_with_the_users_names(job: Path, tmp_path: Path) -> None:
    names = {node.name for node in shown(job).Graph().node}
    assert {"x", "y", "model/fc1/weights", "train/tower_0/model/fc1/MatMul", "val/model/fc1/MatMul"} <= names
    placeholder = next(node for node in shown(job).Graph().node if node.name == "x")
    sizes = [dim.size for dim in placeholder.attr["_output_shapes"].list.shape[0].dim]
    assert sizes == [-1, 28, 28, 1]
    shutil.copytree(job, tmp_path / "job")
    train(tmp_path / "job", NETWORK, epochs=3)
    files = sorted((tmp_path / "job" / "tb").iterdir())
    assert [sum(event.HasField("graph_def") for event in events(path)) for path in files] == [1, 0]


@pytest.mark.nightly
def test_the_training_is_the_same_with_and_without_them(job: Path, tmp_path: Path) -> None:
    train(tmp_path / "job", NETWORK, monitors=["events"])
    assert costs(tmp_path / "job") == costs(job)
    assert not (tmp_path / "job" / "tb").exists()


@pytest.mark.nightly
def test_an_impossible_histogram_is_said_and_training_goes_on(tmp_path: Path) -> None:
    text = NETWORK.replace("tf.summary.histogram('hidden', net)", "tf.summary.histogram('hidden', tf.log(-net - 1.0))")
    train(tmp_path / "job", text)
    found = [json.loads(line) for line in JobFolder(tmp_path / "job").events.read_text().splitlines()]
    said = [each["text"] for each in found if each["type"] == "message" and each["level"] == "warning"]
    (told,) = [each for each in said if each.startswith("Summaries are left out.")]
    line = text[: text.index("tf.summary.histogram('hidden'")].count("\n") + 1
    assert f"mine.py, line {line}, `tf.summary.histogram('hidden'" in told


def costs(folder: Path) -> list[float]:
    found = [json.loads(line) for line in JobFolder(folder).events.read_text().splitlines()]
    return [each["value"] for each in found if each["type"] == "scalar" and each["tag"].endswith("cost")]


def events(path: Path) -> list[Any]:
    loader: Any = importlib.import_module("tensorboard.backend.event_processing.event_file_loader")
    return list(loader.LegacyEventFileLoader(str(path)).Load())
