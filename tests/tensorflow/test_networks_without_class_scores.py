"""What a network without class scores is measured by: its loss and the user's metrics; never an accuracy."""

from pathlib import Path
from typing import Any

import pytest
from tensorflow_jobs import digit_pictures, quick_job, save_pictures

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.cli.main import main
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.entities import EXIT_DONE
from ziggurat.layout import JobFolder
from ziggurat.specs import EvaluateSpec, save_spec
from ziggurat.worker import main as worker
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.exporting import export
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.stopping import StopRequest
from ziggurat.workspace.studio.predictions import Predictions

# An embedding is as wide as there are classes here, as it is for pairs that are `different` or `same`.
SIAMESE = """
class UserModel(Tower):
    @model_property
    def inference(self):
        upper, lower = tf.split(self.x / 255.0, 2, axis=1)
        with tf.variable_scope('embed'):
            first = slim.fully_connected(slim.flatten(upper), 10, activation_fn=None, scope='fc')
        with tf.variable_scope('embed', reuse=True):
            second = slim.fully_connected(slim.flatten(lower), 10, activation_fn=None, scope='fc')
        return [first, second]

    @model_property
    def loss(self):
        first, second = self.inference
        self.summaries.append(tf.summary.scalar('distance', tf.reduce_mean(tf.square(first - second))))
        return digits.contrastive_loss(first, second, tf.cast(self.y > 4, tf.float32))
"""

CLASSIFIER = """
class UserModel(Tower):
    @model_property
    def inference(self):
        scores = slim.fully_connected(slim.flatten(self.x / 255.0), 10, activation_fn=None)
        return {inference}

    @model_property
    def loss(self):
        return {loss}
"""


@pytest.fixture(scope="module")
def siamese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_job(tmp_path_factory.mktemp("siamese") / "job", SIAMESE, steps=1)


def program_of(text: str) -> Any:
    request = ProgramRequest(network="net.py", network_text=text, **class_arrays((28, 28, 1), 10), batch_size=4)
    return TensorFlowBackend().build(request)


def test_an_embedding_has_no_accuracy(siamese: Path) -> None:
    found = evaluate({"folder": str(siamese)})
    assert set(found["scalars"]) == {"cost", "distance"}
    assert (found["classifier"], found["samples"]) == (False, 270)
    assert not {"accuracy", "top_5", "confusion", "classes"} & set(found)


def test_the_shell_says_that_there_are_no_class_scores(siamese: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["evaluate", str(siamese)]) == 0
    head, figures, remark = capfd.readouterr().out.strip().split("\n\n")
    assert head.endswith("270 samples of val")
    assert [line.split()[0] for line in figures.splitlines()] == ["cost", "distance"]
    assert remark == "This network gives no class scores: its figures are the means over all samples."


def test_an_evaluation_job_writes_the_means(siamese: Path, tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "evaluation")
    folder.path.mkdir()
    save_spec(EvaluateSpec(model=str(siamese), split="val"), folder.spec)
    assert worker.main([str(folder.path)], request=StopRequest()) == EXIT_DONE
    found = Predictions(folder.results)
    assert (found.summary["classifier"], found.summary["count"]) == (False, 270)
    assert set(found.summary["scalars"]) == {"cost", "distance"}
    assert found.figures == {"accuracy": None, "top5": None, "confusion": [], "per_class": []}
    assert "accuracy" not in folder.log.read_text()


def test_an_embedding_predicts_and_exports_no_class(siamese: Path, tmp_path: Path) -> None:
    files = save_pictures(tmp_path, digit_pictures()[0][:1])
    (one,) = predict({"folder": str(siamese), "images": files})["predictions"]
    assert set(one["outputs"]) == {"output", "output_1"}
    exported = export({"folder": str(siamese), "format": "pb", "out": str(tmp_path / "exported")})
    assert exported["parity"]["accuracy_before"] is None
    assert "probabilities" not in (tmp_path / "exported" / "model.json").read_text()


def test_an_embedding_trains_without_an_error_curve() -> None:
    program = program_of(SIAMESE)
    assert not {"error", "incorrect_vector", "probabilities"} & {*program.names(), *program.evaluation_names()}
    assert {"cost", "distance"} <= set(program.summary_names())
    program.close()


@pytest.mark.parametrize(
    ("inference", "loss"),
    [
        ("scores", "digits.classification_loss(self.inference, self.y)"),
        ("tf.nn.softmax(scores)", "-tf.reduce_mean(tf.one_hot(self.y, 10) * tf.log(self.inference + 1e-6))"),
        ("tf.identity(scores)", "tf.losses.mean_squared_error(tf.one_hot(self.y, 10), self.inference)"),
        ("scores", "tf.losses.sigmoid_cross_entropy(tf.one_hot(self.y, 10), self.inference / 2.0)"),
        ("tf.nn.sigmoid(scores)", "tf.losses.log_loss(tf.one_hot(self.y, 10), self.inference)"),
        ("scores", "tf.losses.sparse_softmax_cross_entropy(self.y, tf.reshape(self.inference, [-1, 10]))"),
    ],
)
def test_a_classifier_is_known_by_its_loss(inference: str, loss: str) -> None:
    program = program_of(CLASSIFIER.format(inference=inference, loss=loss))
    assert {"error", "probabilities"} <= set(program.evaluation_names())
    program.close()
