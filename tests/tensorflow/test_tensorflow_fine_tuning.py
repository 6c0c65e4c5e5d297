"""Fine-tuning on TensorFlow: rates by stage, a backbone that stands still, and exact resume in and after that."""

from typing import Any

import numpy as np
import pytest
from tensorflow_networks import batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.fine_tuning import FineTuningRequest
from ziggurat.engine.program import NonFiniteStep
from ziggurat.errors import ConfigurationError
from ziggurat.testing import BackendConformance

NETWORK = """
class UserModel(Tower):
    @model_property
    def inference(self):
        with slim.arg_scope([slim.batch_norm, slim.dropout], is_training=self.is_training):
            net = slim.conv2d(self.x * 0.0125, 6, [3, 3], normalizer_fn=slim.batch_norm, scope='conv1')
            net = slim.conv2d(net, 6, [3, 3], scope='conv2')
            net = slim.flatten(slim.max_pool2d(net, [2, 2]))
            net = slim.dropout(net, 0.7)
            return slim.fully_connected(net, self.nclasses, activation_fn=None, scope='fc')

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
"""

TWO_LOSSES = NETWORK.replace(
    "        return digits.classification_loss(self.inference, self.y)",
    """        cost, every = tf.losses.sparse_softmax_cross_entropy(self.y, self.inference), tf.trainable_variables()
        assert tf.losses.get_total_loss() is not None
        first = [each for each in every if 'conv1' in each.op.name]
        return [
            {'loss': cost, 'vars': first},
            {'loss': cost, 'vars': [each for each in every if 'conv1' not in each.op.name]},
        ]""",
)

TUNED = FineTuningRequest(backbone_rate=0.5, layer_decay=0.5)
FACTORS = {"conv1/weights": 0.25, "conv1/BatchNorm/beta": 0.25, "conv2/biases": 0.5, "fc/weights": 1.0}


def program(text: str = NETWORK, tuned: FineTuningRequest | None = TUNED, **fields: Any) -> TensorFlowProgram:
    chosen: dict[str, Any] = {"batch_size": 32, "optimizer": "sgd", "learning_rate": 0.05, "seed": 4, **fields}
    return TensorFlowBackend().build(
        ProgramRequest(
            network="net.py",
            network_text=text,
            **class_arrays((8, 8, 1), 10),
            fine_tuning=tuned,
            pretrained={},
            **chosen,
        )
    )


def moved(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> set[str]:
    names = {name for name in before if name.startswith("model/") and not name.endswith(("/Adam", "/Adam_1"))}
    return {name for name in names - {f"{each}/Momentum" for each in names} if (before[name] != after[name]).any()}


class TestTuned(BackendConformance):
    """The suite of all backends, with one hyperparameter more."""

    rows_name = "incorrect_vector"

    def program(self) -> Any:
        return program(optimizer="adam", learning_rate=0.001, ema_decay=0.9)

    def batches(self) -> list[Any]:
        return batches(5, 32)


def test_weights_move_in_proportion_to_their_factor() -> None:
    (batch,) = batches(1, 32)
    whole, tuned = program(tuned=None), program()
    first = whole.state()
    for name, array in first.items():
        np.testing.assert_array_equal(array, tuned.state()[name])
    whole.step(batch, ())
    tuned.step(batch, ())
    for name, factor in FACTORS.items():
        expected = factor * (whole.state()[f"model/{name}"] - first[f"model/{name}"])
        np.testing.assert_allclose(
            tuned.state()[f"model/{name}"] - first[f"model/{name}"], expected, rtol=2e-3, atol=1e-7
        )
        assert np.abs(expected).max() > 1e-6


@pytest.mark.parametrize("optimizer", ["momentum", "adamw"])
def test_factors_of_one_change_nothing(optimizer: str) -> None:
    plain = program(tuned=None, optimizer=optimizer, weight_decay=0.01)
    tuned = program(tuned=FineTuningRequest(), optimizer=optimizer, weight_decay=0.01)
    for batch in batches(4, 32):
        plain.step(batch, ())
        tuned.step(batch, ())
    one, other = plain.state(), tuned.state()
    assert {name for name in other if name not in one and "_power" not in name} == {"ziggurat/backbone_rate"}
    for name, array in one.items():
        np.testing.assert_allclose(other[name], array, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"optimizer": "adamw", "weight_decay": 0.1, "ema_decay": 0.9},
        {"gradient_accumulation_steps": 2, "gradient_clip": 1.0},
        {"devices": ("cpu:0", "cpu:1"), "optimizer": "momentum"},
    ],
    ids=["plain", "adamw", "accumulated", "two towers"],
)
def test_a_frozen_backbone_keeps_weights_and_statistics(fields: dict[str, Any]) -> None:
    tuned = program(**fields)
    tuned.set_hyperparameter("backbone_rate", 0.0)
    before = tuned.state()
    for batch in batches(3, 32):
        tuned.step(batch, ())
        tuned.evaluate(batch, ["cost"])
    assert moved(before, tuned.state()) == {"model/fc/weights", "model/fc/biases"}
    tuned.set_hyperparameter("backbone_rate", 1.0)
    before = tuned.state()
    tuned.step(batches(1, 32)[0], ())
    assert {"model/conv1/weights", "model/conv1/BatchNorm/moving_mean"} < moved(before, tuned.state())


def test_a_frozen_step_computes_as_in_validation() -> None:
    batch = batches(1, 32)[0]
    tuned = program()
    assert tuned.record(["cost", "accuracy"], ["cost"]) == ["cost", "accuracy"]
    tuned.declare(["cost", "gradient_norm", "learning_rate"])
    tuned.set_hyperparameter("backbone_rate", 0.0)
    expected = tuned.evaluate(batch, ["cost", "accuracy"])
    found = tuned.step(batch, ["cost", "learning_rate", "gradient_norm"])
    assert found["cost"] == pytest.approx(float(expected["cost"]), rel=1e-6)
    assert found["gradient_norm"] > 0
    tuned.set_hyperparameter("backbone_rate", 1.0)
    tuned.step(batch, ())
    kept = tuned.recorded()
    assert len(kept["cost"]) == len(kept["accuracy"]) == 2
    assert kept["cost"][0] == pytest.approx(float(expected["cost"]), rel=1e-6)
    assert kept["cost"][1] != kept["cost"][0]


def test_a_frozen_step_says_which_value_is_not_finite() -> None:
    tuned = program()
    tuned.record(["cost"], ["cost"])
    tuned.declare(["cost"])
    tuned.set_hyperparameter("backbone_rate", 0.0)
    state = tuned.state()
    tuned.load_state({**state, "model/fc/biases": state["model/fc/biases"] * np.nan})
    with pytest.raises(NonFiniteStep, match="cost"):
        tuned.step(batches(1, 32)[0], ())


def test_losses_of_the_backbone_alone_rest_while_it_is_frozen() -> None:
    tuned = program(TWO_LOSSES)
    tuned.set_hyperparameter("backbone_rate", 0.0)
    before = tuned.state()
    tuned.step(batches(1, 32)[0], ())
    assert moved(before, tuned.state()) == {"model/fc/weights", "model/fc/biases"}
    tuned.set_hyperparameter("backbone_rate", 1.0)
    tuned.step(batches(1, 32)[0], ())
    assert "model/conv1/weights" in moved(before, tuned.state())


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_resume_is_exact_in_frozen_steps_and_after(optimizer: str) -> None:
    fields: dict[str, Any] = {"optimizer": optimizer, "learning_rate": 0.01, "ema_decay": 0.9}
    given = batches(4, 32)

    def train(tuned: Any, first: int, last: int) -> None:
        for number in range(first, last):
            if number == 2:
                tuned.set_hyperparameter("backbone_rate", 1.0)
            tuned.step(given[number], ())

    whole = program(**fields)
    whole.set_hyperparameter("backbone_rate", 0.0)
    states = []
    for number in range(4):
        train(whole, number, number + 1)
        states.append(whole.state())
    resumed = program(**fields)
    for saved_after in (1, 2, 3):
        resumed.load_state(states[saved_after - 1])
        assert resumed.hyperparameters()["backbone_rate"] == (0 if saved_after < 3 else 1)
        train(resumed, saved_after, 4)
        found = resumed.state()
        assert found.keys() == states[-1].keys()
        for name, array in states[-1].items():
            np.testing.assert_array_equal(array, found[name], err_msg=name)


def test_adam_of_the_backbone_begins_with_its_own_first_step() -> None:
    (batch,) = batches(1, 32)
    tuned = program(tuned=FineTuningRequest(), optimizer="adam", learning_rate=0.001)
    tuned.set_hyperparameter("backbone_rate", 0.0)
    for _ in range(20):
        tuned.step(batch, ())
    tuned.set_hyperparameter("backbone_rate", 1.0)
    before = tuned.state()
    tuned.step(batch, ())
    change = np.abs(tuned.state()["model/conv2/weights"] - before["model/conv2/weights"])
    assert change.max() == pytest.approx(0.001, rel=0.01)  # and not 3 times as much, as with the head's counters


def test_a_network_of_one_layer_is_refused() -> None:
    text = NETWORK.replace("scope='conv1'", "scope='fc/one'").replace("scope='conv2'", "scope='fc/two'")
    text = text.replace("scope='fc')", "scope='fc/three')")
    tuned = FineTuningRequest(head="fc.")
    with pytest.raises(ConfigurationError, match="needs a network with a last layer and layers before it"):
        program(text, tuned)
