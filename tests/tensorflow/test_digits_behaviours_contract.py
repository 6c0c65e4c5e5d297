"""Behaviors 65 to 75 of DIGITS: what a network file may rely on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digits_jobs import LINEAR, program_of, small_spec, train
from tensorflow_networks import SMALL, batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow import digits
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.events import ErrorRaised

FIVE_IMPORTS = """
from model import Tower
from utils import model_property
import tensorflow as tf
import tensorflow.contrib.slim as slim
import utils as digits
"""
BATCHES = batches(4, 32)


def value(make: Any) -> np.ndarray:
    """Return the value of the tensor that ``make`` makes."""
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def after_steps(network: str, steps: int = 1, **changes: Any) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the variables of a network before some steps on the same batches, and after them."""
    program, _ = program_of(small_spec(network, **changes))
    before = program.state()
    for batch in BATCHES[:steps]:
        program.step(batch, ())
    after = program.state()
    program.close()
    return before, after


def test_65_inference_and_loss_alone_train_without_any_import(tmp_path: Path) -> None:
    assert "import" not in LINEAR
    assert LINEAR.count("def ") == 2
    job = train(tmp_path / "job", LINEAR, epochs=2)
    assert job.outcome == "done"
    costs = [cost for _, cost in job.curve("cost")]
    assert costs[1] < costs[0]


def test_66_the_five_imports_change_nothing(tmp_path: Path) -> None:
    without = train(tmp_path / "without", epochs=2)
    with_them = train(tmp_path / "with", FIVE_IMPORTS + SMALL, epochs=2)
    assert with_them.outcome == "done"
    assert with_them.curve("cost") == without.curve("cost")


def test_67_a_file_without_user_model_fails_and_says_so(tmp_path: Path) -> None:
    job = train(tmp_path / "job", LINEAR.replace("UserModel", "MyModel"))
    assert (job.exit_code, job.outcome) == (5, "failed")
    sentence = (
        "network.py defines no class `UserModel`, but `MyModel`. Name the class `UserModel` and let it inherit `Tower`."
    )
    assert job.error["error"] == "network_code"
    assert job.error["message"] == sentence
    assert job.said(ErrorRaised)[0].traceback.rstrip().endswith(sentence)
    assert sentence in job.log


def test_68_a_scalar_summary_is_a_train_and_validation_curve(tmp_path: Path) -> None:
    assert "self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))" in SMALL
    job = train(tmp_path / "job", epochs=3)
    assert [step for step, _ in job.curve("accuracy")] == list(range(1, 61))
    assert [step for step, _ in job.curve("validation_accuracy")] == [0, 20, 40, 60]
    for tag in ("accuracy", "validation_accuracy"):
        shares = [share for _, share in job.curve(tag)]
        assert shares[0] < shares[-1] <= 1


THREE_VARIABLES = """
class UserModel(Tower):
    @model_property
    def inference(self):
        one = tf.constant_initializer(1.0)
        self.a, self.b, self.c = [tf.get_variable(name, [], initializer=one) for name in 'abc']
        return tf.reduce_mean(self.x, axis=[1, 2]) * self.a * self.b * self.c

    @model_property
    def loss(self):
        self.inference
        squares = tf.square(self.a) + tf.square(self.b) + tf.square(self.c)
        return [{'loss': squares, 'vars': [self.a]}, {'loss': 3 * squares, 'vars': [self.b]}]
"""


def test_69_each_loss_of_a_list_updates_its_own_variables() -> None:
    _, after = after_steps(THREE_VARIABLES, optimizer="sgd", learning_rate=0.1)
    assert after["model/a"] == pytest.approx(1 - 0.1 * 2)
    assert after["model/b"] == pytest.approx(1 - 0.1 * 3 * 2)
    assert after["model/c"] == 1
    assert after["global_step"] == 1


LOGITS = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 3.0, 2.0], [0.0, 0.0, 0.0]], np.float32)
CLASSES = np.array([0, 1, 2, 0])


def test_70_classification_loss_is_the_mean_cross_entropy() -> None:
    e = np.exp
    shares = [e(2) / (e(2) + 2), 1 / (2 + e(1)), e(2) / (e(1) + e(3) + e(2)), 1 / 3]
    assert value(lambda: digits.classification_loss(LOGITS, CLASSES)) == pytest.approx(-np.log(shares).mean())


def test_70_accuracies_are_shares_of_the_samples() -> None:
    # The first and the last are right: where logits are equal, the first class is taken.
    assert value(lambda: digits.classification_accuracy(tf.constant(LOGITS), CLASSES)) == 0.5
    assert value(lambda: digits.classification_accuracy_top_n(LOGITS[:3], CLASSES[:3], 1)) == pytest.approx(1 / 3)
    with tf.Graph().as_default():
        assert digits.classification_accuracy(tf.constant(LOGITS), CLASSES).op.name == "accuracy"


def test_70_mse_loss_is_the_mean_over_all_elements() -> None:
    assert value(lambda: digits.mse_loss(tf.constant([[1.0, 2.0], [3.0, 5.0]]), tf.zeros([2, 2]))) == 39 / 4


@pytest.mark.parametrize("name", ["constrastive_loss", "contrastive_loss"])
def test_70_contrastive_loss_is_caffes_with_its_half(name: str) -> None:
    left = np.array([[3.0, 4.0], [0.0, 0.6], [0.0, 2.0]], np.float32)
    # Distances 5, 0.6 and 2: one pair of a kind, and two of different kinds within and beyond the margin of 1.
    found = value(lambda: getattr(digits, name)(left, np.zeros_like(left), np.array([1, 0, 0])))
    assert found == pytest.approx((5**2 + 0.4**2 + 0) / (2 * 3), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("nhwc_to_nchw", (2, 3, 4, 5), (2, 5, 3, 4)),
        ("nchw_to_nhwc", (2, 5, 3, 4), (2, 3, 4, 5)),
        ("hwc_to_chw", (3, 4, 5), (5, 3, 4)),
        ("chw_to_hwc", (5, 3, 4), (3, 4, 5)),
    ],
)
def test_70_layouts_move_the_channels_and_nothing_else(name: str, shape: tuple, expected: tuple) -> None:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = value(lambda: getattr(digits, name)(array))
    assert found.shape == expected
    channels = -1 if name.endswith(("nchw", "chw")) else -3
    np.testing.assert_array_equal(found, np.moveaxis(array, channels, -3 if channels == -1 else -1))


@pytest.mark.parametrize("name", ["bgr_to_rgb", "rgb_to_bgr"])
def test_70_colours_of_one_picture_are_swapped(name: str) -> None:
    picture = np.arange(4 * 5 * 3, dtype=np.float32).reshape(4, 5, 3)
    np.testing.assert_array_equal(value(lambda: getattr(digits, name)(picture)), picture[:, :, [2, 1, 0]])


def test_71_regularisation_terms_have_gradients() -> None:
    only_the_term = LINEAR.replace("scope='fc1'", "scope='fc1', weights_regularizer=slim.l2_regularizer(0.5)").replace(
        "digits.classification_loss(self.inference, self.y)", "0.0 * tf.reduce_sum(self.inference)"
    )
    before, after = after_steps(only_the_term, optimizer="sgd", learning_rate=0.1)
    # The term is 0.5 · Σw² / 2, so its gradient is 0.5 · w.
    weights = before["model/fc1/weights"]
    np.testing.assert_allclose(after["model/fc1/weights"], weights * (1 - 0.1 * 0.5), rtol=1e-5)


@pytest.mark.parametrize("name", ["bgr_to_rgb", "rgb_to_bgr"])
def test_72_colours_of_a_batch_are_swapped_and_not_its_width(name: str) -> None:
    pictures = np.arange(2 * 4 * 5 * 3, dtype=np.float32).reshape(2, 4, 5, 3)
    np.testing.assert_array_equal(value(lambda: getattr(digits, name)(pictures)), pictures[:, :, :, [2, 1, 0]])


@pytest.mark.parametrize("towers", [2, 4])
def test_73_steps_of_several_towers_equal_those_of_one(towers: int) -> None:
    network = SMALL.replace("is_training=self.is_training", "is_training=False")  # dropout masks differ with the shape
    _, one = after_steps(network, steps=4)
    _, several = after_steps(network, steps=4, devices=[f"cpu:{number}" for number in range(towers)])
    assert list(several) == list(one)
    for name, array in one.items():
        np.testing.assert_allclose(several[name], array, atol=2e-6, err_msg=name)


DROPS_CONV1 = """
    def gradientUpdate(self, grads):
        return [(gradient, variable) for gradient, variable in grads if 'conv1' not in variable.name]
"""


def test_74_variables_that_gradient_update_drops_stay_constant() -> None:
    hook = (
        "\n    def gradientUpdate(self, grads):\n        return [(g, v) for g, v in grads if 'conv1' not in v.name]\n"
    )
    before, after = after_steps(SMALL + hook, steps=4)
    for part in ("weights", "biases"):
        np.testing.assert_array_equal(after[f"model/conv1/{part}"], before[f"model/conv1/{part}"])
        assert not np.array_equal(after[f"model/fc1/{part}"], before[f"model/fc1/{part}"])


def test_75_a_renamed_layer_keeps_pretrained_values_untrained(tmp_path: Path) -> None:
    first = train(tmp_path / "first")
    renamed = SMALL.replace("scope='conv1'", "scope='conv1_not_in_use'")
    second = train(tmp_path / "second", renamed, pretrained=str(first.folder), seed=4)
    assert second.outcome == "done"
    for part in ("weights", "biases"):
        np.testing.assert_array_equal(
            second.arrays[f"model/conv1_not_in_use/{part}"], first.arrays[f"model/conv1/{part}"]
        )
        assert not np.array_equal(second.arrays[f"model/fc1/{part}"], first.arrays[f"model/fc1/{part}"])
    assert "Restored and frozen: model/conv1_not_in_use/weights, model/conv1_not_in_use/biases." in second.log
