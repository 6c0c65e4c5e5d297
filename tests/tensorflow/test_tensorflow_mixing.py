"""Training on mixed samples (Mixup, CutMix): the loss of two labels, for networks of any user, or a clear refusal."""

from __future__ import annotations

import numpy as np
import pytest
from tensorflow_networks import SMALL, batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import ConfigurationError, NetworkCodeError

WITHOUT_DROPOUT = SMALL.replace("is_training=self.is_training", "is_training=False")
LOSSES = {
    "DIGITS's": WITHOUT_DROPOUT,
    "sparse cross-entropy": WITHOUT_DROPOUT.replace(
        "return digits.classification_loss(self.inference, self.y)",
        "return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=self.inference, labels=self.y))",
    ),
    "collected": WITHOUT_DROPOUT.replace(
        "return digits.classification_loss(self.inference, self.y)",
        "tf.losses.sparse_softmax_cross_entropy(self.y, self.inference)\n"
        "        return tf.losses.get_total_loss(add_regularization_losses=False)",
    ),
    "one-hot": WITHOUT_DROPOUT.replace(
        "return digits.classification_loss(self.inference, self.y)",
        "hot = tf.one_hot(self.y, self.nclasses)\n"
        "        return [{'loss': tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2("
        "labels=hot, logits=self.inference)), 'vars': tf.trainable_variables()}]",
    ),
}


def program(network: str = WITHOUT_DROPOUT, *, mixes: bool = True, **options):
    arrays = {**class_arrays((8, 8, 1), 10), "network": "n.py", "network_text": network}
    request = ProgramRequest(**{**arrays, "batch_size": 32, "learning_rate": 0.05, "seed": 7, **options})
    return TensorFlowBackend().build(ProgramRequest(**{**vars(request), "mixes_labels": mixes}))


def mixed_batch(share: float = 0.7) -> list[np.ndarray]:
    (x, y), (_, second) = batches(2, 32)
    return [x, y, second, np.full(32, share, np.float32)]


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_is_shared_between_two_labels(name):
    x, first, second, share = mixed_batch()
    costs = [float(program(LOSSES[name], mixes=False).step([x, each], ["cost"])["cost"]) for each in (first, second)]
    assert abs(costs[0] - costs[1]) > 0.01
    mixed = program(LOSSES[name])
    found = mixed.step([x, first, second, share], ["cost", "accuracy"])
    assert float(found["cost"]) == pytest.approx(0.7 * costs[0] + 0.3 * costs[1], rel=1e-5)
    # What is measured in training is that of the labels with the larger share.
    expected = program(LOSSES[name], mixes=False).step([x, first], ["accuracy"])
    assert float(found["accuracy"]) == pytest.approx(float(expected["accuracy"]))


def test_the_loss_of_probabilities_is_the_same():
    """The cross-entropy is linear in the labels: with mixed probabilities as labels it is the same number."""
    x, first, second, share = mixed_batch()
    plain = program(LOSSES["sparse cross-entropy"], mixes=False)
    scores = plain.evaluate([x, first], ["output"])["output"].astype(np.float64)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    labels = 0.7 * np.eye(10)[first] + 0.3 * np.eye(10)[second]
    penalty = float(plain.evaluate([x, first], ["regularization"])["regularization"])
    found = program(LOSSES["sparse cross-entropy"]).step([x, first, second, share], ["cost"])
    assert float(found["cost"]) == pytest.approx(-(labels * logs).sum(axis=1).mean() + penalty, rel=1e-5)


def weights_after(steps: int, **options) -> dict[str, np.ndarray]:
    trained = program(**options)
    for _ in range(steps):
        trained.step(mixed_batch(), ())
    state = {name: array for name, array in trained.state().items() if name.startswith("model/")}
    trained.close()
    return state


@pytest.mark.parametrize("options", [{"devices": ("cpu:0", "cpu:1")}, {"gradient_accumulation_steps": 4}])
def test_parts_of_a_mixed_batch_equal_the_whole(options):
    one, parts = weights_after(3), weights_after(3, **options)
    for name, array in one.items():
        if "Momentum" not in name:
            np.testing.assert_allclose(parts[name], array, atol=2e-6, err_msg=name)


def test_a_share_of_one_trains_as_one_label_does():
    x, first, second, share = mixed_batch(1.0)
    mixed, plain = program(SMALL), program(SMALL, mixes=False)
    np.testing.assert_array_equal(mixed.state()["model/fc1/weights"], plain.state()["model/fc1/weights"])
    without_dropout = program(), program(mixes=False)
    without_dropout[0].step([x, first, second, share], ())
    without_dropout[1].step([x, first], ())
    after = [each.state() for each in without_dropout]
    assert list(after[0]) == list(after[1])
    for name, array in after[0].items():
        np.testing.assert_allclose(array, after[1][name], atol=1e-7, err_msg=name)


def test_curves_are_those_of_the_first_labels():
    mixed, plain = program(), program(mixes=False)
    assert mixed.names() == plain.names()
    assert mixed.summary_names() == plain.summary_names()
    with pytest.raises(ConfigurationError, match="samples and labels and second labels and shares"):
        mixed.step(mixed_batch()[:2], ())


INFERENCE = "x = self.x * 0.0125"
REFUSED = {
    "a loss that does not change when `self.y` is another": WITHOUT_DROPOUT.replace(
        "return digits.classification_loss(self.inference, self.y)",
        "return tf.reduce_mean(tf.square(self.inference))",
    ),
    "a loss that takes labels also from elsewhere": WITHOUT_DROPOUT.replace(
        INFERENCE, f"{INFERENCE}\n        self.hot = tf.one_hot(self.y, 10) if self.y is not None else None"
    ).replace(
        "return digits.classification_loss(self.inference, self.y)",
        "return tf.losses.softmax_cross_entropy(self.hot, self.inference) "
        "+ 0.0 * digits.classification_loss(self.inference, self.y)",
    ),
    "a loss that makes variables": WITHOUT_DROPOUT.replace(
        "return digits.classification_loss(self.inference, self.y)",
        "more = tf.layers.dense(self.inference, 10)\n        return digits.classification_loss(more, self.y)",
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_loss_that_cannot_be_mixed_is_refused(reason):
    assert program(REFUSED[reason], mixes=False).names()
    with pytest.raises(NetworkCodeError) as refused:
        program(REFUSED[reason])
    assert str(refused.value).startswith("Mixup and CutMix need a `loss` that is computed from `self.inference`")
    assert reason in str(refused.value)
