"""A network is described before it is trained: layers, operations, shapes, variables, and what a sample costs."""

from pathlib import Path

import pytest
from tensorflow_networks import SMALL

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.towers import layer_of
from ziggurat.errors import ConfigurationError, NetworkCodeError, UnknownNameError
from ziggurat.worker.commands.networks import describe


def rows(found: list[dict], key: str) -> dict[str, dict]:
    return {row[key]: row for row in found}


def test_lenet() -> None:
    found = describe({"network": "lenet"})
    assert (found["input_shape"], found["classes"], found["outputs"]) == ([28, 28, 1], 10, [(None, 10)])
    layers = rows(found["layers"], "name")
    assert {name: layers[name]["shape"] for name in ("conv1", "pool1", "conv2", "pool2", "fc1", "fc2")} == {
        "conv1": (None, 24, 24, 20),
        "pool1": (None, 12, 12, 20),
        "conv2": (None, 8, 8, 50),
        "pool2": (None, 4, 4, 50),
        "fc1": (None, 500),
        "fc2": (None, 10),
    }
    assert layers["conv1"]["parameters"] == 5 * 5 * 20 + 20
    assert layers["pool1"]["parameters"] == 0
    assert found["parameters"] == 431_080
    assert found["multiply_adds"] == 24 * 24 * 20 * 25 + 8 * 8 * 50 * 20 * 25 + 800 * 500 + 500 * 10
    assert found["scalars"] == ["accuracy"]
    variables = rows(found["variables"], "name")
    assert variables["model/fc1/weights"] == {
        "name": "model/fc1/weights",
        "shape": (800, 500),
        "count": 400_000,
        "trainable": True,
    }
    operations = rows(found["operations"], "name")
    assert operations["model/conv1/Conv2D"]["kind"] == "Conv2D"
    assert operations["model/conv1/Conv2D"]["shape"] == (None, 24, 24, 20)
    assert operations["model/conv1/BiasAdd"]["inputs"][0] == "model/conv1/Conv2D"


def test_another_input_and_number_of_classes() -> None:
    found = describe({"network": "lenet", "input_shape": [32, 24, 3], "classes": 5})
    assert (found["input_shape"], found["classes"], found["outputs"]) == ([32, 24, 3], 5, [(None, 5)])
    assert rows(found["layers"], "name")["conv1"]["shape"] == (None, 28, 20, 20)


def test_batch_norm_has_variables_that_are_not_trained() -> None:
    found = describe({"network": "convnet"})
    variables = rows(found["variables"], "name")
    assert not variables["model/conv1a/BatchNorm/moving_mean"]["trainable"]
    assert variables["model/conv1a/BatchNorm/gamma"]["trainable"]
    assert found["parameters"] == sum(row["count"] for row in found["variables"] if row["trainable"])


@pytest.mark.parametrize(("name", "output"), [("autoencoder", (None, 28, 28, 1)), ("regression", (None, 1))])
def test_networks_that_are_no_classifiers(name: str, output: tuple) -> None:
    found = describe({"network": name})
    assert found["classes"] is None
    assert found["outputs"] == [output]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SMALL)
    found = describe({"network": str(path)})
    assert (found["network"], found["input_shape"], found["classes"]) == (str(path), [28, 28, 1], 10)
    assert rows(found["layers"], "name")["fc1"]["parameters"] == 14 * 14 * 8 * 10 + 10


def test_an_error_names_the_users_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SMALL.replace("slim.flatten(net)", "slim.flaten(net)"))
    with pytest.raises(NetworkCodeError, match=r"Did you mean `slim\.flatten`") as caught:
        describe({"network": str(path)})
    line = SMALL[: SMALL.index("slim.flatten")].count("\n") + 1
    assert f"{path}, line {line}, `net = slim.flaten(net)`: " in str(caught.value)
    assert caught.value.details["traceback"].startswith("Traceback (most recent call last):")


def test_keras_3_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"import keras\n{SMALL}")
    with pytest.raises(NetworkCodeError, match=r"`import keras` is not for graph networks\. Keras 3 layers in a graph"):
        describe({"network": str(path)})


def test_what_cannot_be_described() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean `lenet`"):
        describe({"network": "lennet"})
    with pytest.raises(NetworkCodeError, match="cannot be read as Python text:"):
        describe({"network": "gone.py"})
    with pytest.raises(ConfigurationError, match=r"three positive whole numbers: height, width and channels"):
        describe({"network": "lenet", "input_shape": [28, 28]})
    with pytest.raises(ConfigurationError, match=r"The backend `null` does not describe networks\. Backends that do"):
        describe({"network": str(Path(__file__)), "backend": "null"})


OWN = """
class UserModel(Tower):
    task = '{task}'

    @model_property
    def inference(self):
        {inference}

    @model_property
    def loss(self):
        {loss}
"""
MASKS = OWN.format(
    task="segmentation",
    inference="return slim.conv2d(self.x, self.nclasses, [3, 3], activation_fn=None)",
    loss="return digits.segmentation_loss(self.inference, self.y)",
)
ROWS = OWN.format(
    task="regression",
    inference="return slim.fully_connected(self.x, self.target_shape[0], activation_fn=None)",
    loss="return digits.mse_loss(self.inference, self.y)",
)
WORDS = """
class UserModel(Tower):
    @model_property
    def inference(self):
        table = tf.get_variable('table', [self.vocabulary_size, 4])
        return slim.fully_connected(tf.reduce_mean(tf.nn.embedding_lookup(table, self.x), 1), self.nclasses)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""
BOTH = OWN.format(
    task="pairs",
    inference="return tf.split(slim.fully_connected(slim.flatten(self.x), 4), 2, 1)",
    loss="return tf.reduce_mean(tf.to_float(self.y) * tf.reduce_sum(self.inference[0] - self.inference[1], 1))",
)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (MASKS, {"input_shape": [20, 24, 3], "classes": 4}, ("segmentation", [20, 24, 3], 4, [(None, 20, 24, 4)])),
        (ROWS, {"input_shape": [7]}, ("regression", [7], None, [(None, 1)])),
        (ROWS.replace("'regression'", "'classification'"), {"input_shape": [7], "task": "regression"},
         ("regression", [7], None, [(None, 1)])),
        (WORDS, {"classes": 3}, ("classification", [64], 3, [(None, 3)])),
        (WORDS, {"input_shape": [9], "classes": 3}, ("classification", [9], 3, [(None, 3)])),
        (BOTH, {}, ("pairs", [28, 28, 2], None, [(None, 2), (None, 2)])),
    ],
    ids=["masks", "rows", "another task", "texts", "short texts", "pairs"],
)  # fmt: skip
def test_a_file_of_another_task(tmp_path: Path, text: str, options: dict, expected: tuple) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    found = describe({"network": str(path), **options})
    assert (found["task"], found["input_shape"], found["classes"], found["outputs"]) == expected


def test_a_file_of_a_task_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(MASKS.replace("'segmentation'", "'segmentatoin'"))
    with pytest.raises(UnknownNameError, match="Did you mean `segmentation`"):
        describe({"network": str(path)})


@pytest.mark.parametrize(
    ("operation", "layer"),
    [
        ("conv1/Conv2D", "conv1"),
        ("features/3/conv/0/Conv2D", "features/3"),
        ("layer1/0/Relu", "layer1/0"),
        ("fc/7", "fc"),
        ("stage2/block1/conv1/Conv2D", "stage2"),
        ("Relu_1", "Relu_1"),
    ],
)
def test_layer_of_an_operation(operation: str, layer: str) -> None:
    assert layer_of(operation) == layer
