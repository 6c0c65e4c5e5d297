"""Models of others open, list what can be chosen, and predict: files of TensorFlow 1, and graphs made here."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorflow_jobs import SHARED

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.export.provider import open_foreign_model
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError
from ziggurat.worker.commands.foreign import image_for, inspect_model, predict_with_model

ARTEFACTS = SHARED / "data" / "tf1-artefacts"
MNIST = SHARED / "data" / "mnist"
with_artefacts = pytest.mark.skipif(not ARTEFACTS.is_dir(), reason="the TensorFlow 1 files are not on this machine")
with_mnist = pytest.mark.skipif(not MNIST.is_dir(), reason="MNIST is not on this machine")

WEIGHTS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


def mnist_test() -> tuple[np.ndarray, np.ndarray]:
    """Return (10000, 784) float32 from 0 to 1, and (10000) labels."""
    with gzip.open(MNIST / "t10k-images-idx3-ubyte.gz") as images, gzip.open(MNIST / "t10k-labels-idx1-ubyte.gz") as y:
        pixels = np.frombuffer(images.read(), np.uint8, offset=16).reshape(-1, 784)
        return pixels.astype(np.float32) / 255, np.frombuffer(y.read(), np.uint8, offset=8)


def outputs_of(model: Path, feeds: dict, *names: str) -> list[np.ndarray]:
    opened = open_foreign_model(model)
    found = opened.predict(feeds, names)
    opened.close()
    return [found[name] for name in names]


def names_of(rows: list[dict]) -> list[str]:
    return [row["name"] for row in rows]


# ---- files of TensorFlow 1


@with_artefacts
@with_mnist
def test_the_frozen_classifier_scores_what_it_scored() -> None:
    pixels, labels = mnist_test()
    (scores,) = outputs_of(ARTEFACTS / "fc-layers" / "frozen.pb", {"X": pixels}, "output")
    assert (scores.argmax(1) == labels).mean() == pytest.approx(0.9548, abs=5e-5)


@with_artefacts
@with_mnist
def test_the_frozen_autoencoder_copies_as_it_did() -> None:
    pixels, _ = mnist_test()
    (copies,) = outputs_of(ARTEFACTS / "ae0" / "frozen.pb", {"X": pixels}, "output")
    assert ((copies - pixels) ** 2).mean() == pytest.approx(0.01103, abs=5e-6)


@with_artefacts
@pytest.mark.parametrize("form", ["checkpoint", "checkpoint/model.meta", "checkpoint/model", "saved_model"])
def test_the_regression_in_its_forms(form: str) -> None:
    x = np.array([0.0, 1.0, 2.0], np.float32)
    (line,) = outputs_of(ARTEFACTS / "regression" / form, {"X": x}, "pred")
    np.testing.assert_allclose(line, 0.21396178 * x + 1.0495254, rtol=1e-6)


@with_artefacts
def test_what_a_training_leaves_in_a_metagraph_is_no_output() -> None:
    found = inspect_model({"model": str(ARTEFACTS / "regression" / "checkpoint")})
    assert names_of(found["inputs"]) == ["X", "Y"]
    assert "pred" in names_of(found["outputs"])
    assert not [name for name in names_of(found["outputs"]) if name.startswith(("gradients", "save", "Gradient"))]


@with_artefacts
def test_recurrent_graphs_take_their_second_input(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 784), np.float32))
    model = ARTEFACTS / "lstm" / "frozen.pb"
    request = {"model": str(model), "input": "X", "files": [str(tmp_path / "x.npy")], "outputs": ["output"]}
    found = predict_with_model({**request, "feeds": {"keep_prob": 1.0}})
    assert found["predictions"][0]["outputs"]["output"]["shape"] == (2, 10)
    with pytest.raises(DataError, match=r"You must feed a value for placeholder .*keep_prob.* Its inputs are: X"):
        predict_with_model(request)


# ---- models made here


def graph() -> tuple:
    x = tf.placeholder(tf.float32, (None, 4), name="features")
    weights = tf.get_variable("weights", initializer=WEIGHTS)
    scores = tf.matmul(x, weights, name="scores")
    tf.argmax(scores, axis=1, name="class_number")
    return x, scores


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frozen") / "own.pb"
    with tf.Graph().as_default() as made, tf.Session() as session:
        graph()
        session.run(tf.global_variables_initializer())
        constant = tf.graph_util.convert_variables_to_constants(session, made.as_graph_def(), ["class_number"])
    path.write_bytes(constant.SerializeToString())
    return path


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two checkpoints, the weights of the newer one doubled; its list names paths that are gone."""
    folder = tmp_path_factory.mktemp("checkpoints")
    with tf.Graph().as_default(), tf.Session() as session:
        graph()
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        saver.save(session, str(folder / "model.ckpt"), global_step=1)
        (weights,) = tf.global_variables()
        weights.load(2 * WEIGHTS, session)
        saver.save(session, str(folder / "model.ckpt"), global_step=2)
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model"
    with tf.Graph().as_default(), tf.Session() as session:
        x, scores = graph()
        session.run(tf.global_variables_initializer())
        signature = tf.saved_model.predict_signature_def({"x": x}, {"y": scores})
        builder = tf.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    return path


def test_a_frozen_graph_made_here(frozen: Path) -> None:
    scores, numbers = outputs_of(frozen, {"features": X}, "scores", "class_number")
    np.testing.assert_allclose(scores, X @ WEIGHTS, rtol=1e-5)
    np.testing.assert_array_equal(numbers, (X @ WEIGHTS).argmax(1))


def test_a_checkpoints_folder_gives_its_newest(checkpoints: Path) -> None:
    np.testing.assert_allclose(outputs_of(checkpoints, {"features": X}, "scores")[0], X @ (2 * WEIGHTS), rtol=1e-5)
    first = outputs_of(checkpoints / "model.ckpt-1.meta", {"features": X}, "scores:0")[0]
    np.testing.assert_allclose(first, X @ WEIGHTS, rtol=1e-5)


def test_a_moved_checkpoint_whose_list_names_old_paths(checkpoints: Path, tmp_path: Path) -> None:
    for path in checkpoints.glob("model.ckpt-2*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "/gone/model.ckpt-2"\n')
    np.testing.assert_allclose(outputs_of(tmp_path, {"features": X}, "scores")[0], X @ (2 * WEIGHTS), rtol=1e-5)


def test_a_saved_model_and_its_signature(saved: Path) -> None:
    for path in (saved, saved / "saved_model.pb"):
        found = inspect_model({"model": str(path)})
        assert found["kind"] == "savedmodel"
        assert found["signatures"] == {"serving_default": {"inputs": {"x": "features"}, "outputs": {"y": "scores"}}}
    assert names_of(found["outputs"])[0] == "scores", "what a signature names comes first"
    np.testing.assert_allclose(outputs_of(saved, {"features": X}, "scores")[0], X @ WEIGHTS, rtol=1e-5)


def test_inspect_lists_what_can_be_chosen(frozen: Path) -> None:
    found = inspect_model({"model": str(frozen)})
    assert found["inputs"] == [
        {"name": "features", "kind": "Placeholder", "dtype": "float32", "shape": (None, 4), "readers": 1}
    ]
    assert found["outputs"][0] == {
        "name": "class_number",
        "kind": "ArgMax",
        "dtype": "int64",
        "shape": (None,),
        "readers": 0,
    }
    assert "scores" in names_of(found["outputs"])
    assert found["signatures"] == {}


def test_predicting_arrays_in_files(frozen: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "many.npy", X)
    np.save(tmp_path / "one.npy", X[0].astype(np.float64))
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    files = [str(tmp_path / f"{name}.npy") for name in ("many", "bad", "one")]
    found = predict_with_model({"model": str(frozen), "files": files, "outputs": ["scores"]})
    assert found["input"] == "features", "there is no other"
    many, one = (np.array(each["outputs"]["scores"]["values"]) for each in found["predictions"])
    np.testing.assert_allclose(many, X @ WEIGHTS, rtol=1e-5)
    np.testing.assert_allclose(one, X[:1] @ WEIGHTS, rtol=1e-5)
    assert [each["file"] for each in found["failures"]] == files[1:2]
    assert "must hold an array that `numpy.save` wrote" in found["failures"][0]["message"]
    assert predict_with_model({"model": str(frozen), "files": files[:1]})["outputs"] == ["class_number"]


def test_a_misspelt_name_names_the_nearest(frozen: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    request = {"model": str(frozen), "files": [str(tmp_path / "x.npy")]}
    with pytest.raises(
        UnknownNameError, match=r"`score` is not a known output of this model\. Did you mean `scores`\?"
    ):
        predict_with_model({**request, "outputs": ["score"]})
    with pytest.raises(UnknownNameError, match=r"`feature` is not a known input .*Did you mean `features`\?"):
        predict_with_model({**request, "input": "feature"})
    with pytest.raises(UnknownNameError, match=r"`scores:1` is not a known output"):
        predict_with_model({**request, "outputs": ["scores:1"]})
    with pytest.raises(DataError, match=r"Cannot feed value of shape \(2, 7\).*Its inputs are: features \(None, 4\)"):
        outputs_of(frozen, {"features": np.zeros((2, 7))}, "scores")


def test_what_must_be_named_is_said(tmp_path: Path) -> None:
    with tf.Graph().as_default() as made:
        left, right = (tf.placeholder(tf.float32, (None, 2), name=name) for name in ("left", "right"))
        tf.add(left, right, name="sum")
        tf.multiply(left, right, name="product")
    path = tmp_path / "two.pb"
    path.write_bytes(made.as_graph_def().SerializeToString())
    np.save(tmp_path / "x.npy", X[:, :2])
    request = {"model": str(path), "files": [str(tmp_path / "x.npy")]}
    with pytest.raises(ConfigurationError, match=r"received: left, right\)\. Choose one with --input\."):
        predict_with_model(request)
    with pytest.raises(ConfigurationError, match=r"received: sum, product\)\. Choose one with --output\."):
        predict_with_model({**request, "input": "left"})


def test_what_is_no_model_is_said(tmp_path: Path) -> None:
    (tmp_path / "bad.pb").write_bytes(b"\xff\xfe no graph")
    (tmp_path / "empty").mkdir()
    for name in ("bad.pb", "gone.pb", "gone.meta"):
        with pytest.raises(DataError, match=rf"{name} must be a frozen graph \(\.pb\), a checkpoint"):
            open_foreign_model(tmp_path / name)
    with pytest.raises(DataError, match="holds neither a saved_model"):
        open_foreign_model(tmp_path / "empty")


# ---- images for a model


@pytest.fixture
def picture(tmp_path: Path) -> bytes:
    pixels = np.random.default_rng(3).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    return (tmp_path / "picture.png").read_bytes()


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ((None, 6, 6, 3), (1, 6, 6, 3)),
        ((None, None, None, 1), (1, 6, 6, 1)),
        ((1, 12, 8, 3), (1, 12, 8, 3)),
        ((None, 3, 12, 8), (1, 3, 12, 8)),
        ((None, 36), (1, 36)),
        ((None, 100), (1, 100)),
        ((None, 108), (1, 108)),
    ],
)
def test_a_picture_in_the_shape_of_an_input(picture: bytes, shape: tuple, found: tuple) -> None:
    made = image_for(picture, shape, "picture.png")
    assert (made.shape, made.dtype) == (found, np.float32)
    assert made.max() > 1


@pytest.mark.parametrize("shape", [None, (None, 7), (None, 5, 5, 5), (None,)])
def test_an_input_that_takes_no_picture(picture: bytes, shape: tuple | None) -> None:
    with pytest.raises(ConfigurationError, match=r"whose shape is an image's.*give the \.npy file"):
        image_for(picture, shape, "picture.png")


@with_artefacts
def test_a_picture_file_is_scaled(tmp_path: Path) -> None:
    pixels = np.random.default_rng(4).integers(0, 256, (28, 28), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "digit.png")
    model = str(ARTEFACTS / "fc-layers" / "frozen.pb")
    found = predict_with_model({"model": model, "files": [str(tmp_path / "digit.png")], "scale": 1 / 255})
    (expected,) = outputs_of(Path(model), {"X": pixels.reshape(1, -1).astype(np.float32) / 255}, "output")
    values = found["predictions"][0]["outputs"]["output"]["values"]
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-4)
