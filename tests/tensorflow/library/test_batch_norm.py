"""Batch normalization: statistics, running averages over real training steps, and statistics over towers."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import DataFromList
from ziggurat.errors import ConfigurationError
from ziggurat.tf.graph_callbacks import RunUpdateOps
from ziggurat.tf.inputs.base import FeedInput
from ziggurat.tf.models import BatchNorm
from ziggurat.tf.models.tower_mean import PROCESS_MEAN
from ziggurat.tf.tower import TowerContext, TrainTowerContext
from ziggurat.tf.trainers import SimpleTrainer

EPSILON = 1e-5
BATCHES = np.random.RandomState(7).randn(12, 6, 3, 2, 4).astype(np.float32) * 2 + 1


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


def variable(name: str) -> Any:
    return next(each for each in tf.global_variables() if each.op.name == name)


def normalized(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON)


@pytest.mark.parametrize("kind", ["images", "channels first", "rows", "float64"])
def test_batch_norm_uses_the_batch_and_its_averages(kind: str) -> None:
    x = BATCHES[0]
    axes, options = (0, 1, 2), {}
    if kind == "channels first":
        x, axes, options = x.transpose(0, 3, 1, 2), (0, 2, 3), {"data_format": "channels_first"}
    elif kind == "rows":
        x, axes = x[:, 0, 0], (0,)
    elif kind == "float64":
        x = x.astype(np.float64)
    with TowerContext("", is_training=True):
        trained = BatchNorm("bn", tf.constant(x), **options)
    with tf.variable_scope("", reuse=True), TowerContext("", is_training=False):
        tested = BatchNorm("bn", tf.constant(x), **options)
    cost = tf.reduce_sum(tf.square(trained) * np.arange(x.size).reshape(x.shape))
    gradients = tf.gradients(cost, tf.trainable_variables())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(trained), normalized(x, axes), atol=2e-5)
        assert all(np.any(each) for each in session.run(gradients))
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        count = x.size / 4
        mean, variance = 0.1 * x.mean(axes), 0.9 + 0.1 * x.var(axes) * (1 if kind == "rows" else count / (count - 1))
        np.testing.assert_allclose(session.run(variable("bn/mean/EMA")), mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(session.run(variable("bn/variance/EMA")), variance, rtol=1e-5)
        spread = [-1 if axis not in axes else 1 for axis in range(x.ndim)]
        wanted = (x - mean.reshape(spread)) / np.sqrt(variance.reshape(spread) + EPSILON)
        np.testing.assert_allclose(session.run(tested), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ema_update", ["default", "internal", "skip"])
def test_running_averages_of_a_training(ema_update: str) -> None:
    def network(x: Any) -> Any:
        weights = tf.get_variable("w", [4], initializer=tf.ones_initializer())
        return tf.reduce_mean(tf.square(BatchNorm("bn", x * weights, momentum=0.7, ema_update=ema_update) - 1))

    trainer = SimpleTrainer()
    flow = DataFromList([[batch] for batch in BATCHES], shuffle=False)
    signature = [tf.TensorSpec((None, 3, 2, 4), tf.float32, "x")]
    trainer.setup_graph(signature, FeedInput(flow), network, lambda: tf.train.GradientDescentOptimizer(0.1))
    found: dict[str, np.ndarray] = {}

    class Look(RunUpdateOps):
        def after_train(self) -> None:
            found.update(self.trainer.program.state())

    trainer.train([Look()], steps_per_epoch=12, max_epoch=1)
    mean, variance = np.zeros(4), np.ones(4)
    if ema_update != "skip":
        # The normalization takes the scale out again: the weights have next to no gradient, and stay 1.
        for batch in BATCHES:
            count = batch.size / 4
            mean = 0.7 * mean + 0.3 * batch.mean((0, 1, 2))
            variance = 0.7 * variance + 0.3 * batch.var((0, 1, 2)) * count / (count - 1)
    np.testing.assert_allclose(found["bn/mean/EMA"], mean, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found["bn/variance/EMA"], variance, rtol=1e-3)
    assert np.any(found["bn/beta"])  # it was trained


def test_virtual_batches_are_normalized_apart() -> None:
    x = BATCHES[0]
    with TowerContext("", is_training=True):
        out = BatchNorm("bn", tf.constant(x), virtual_batch_size=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        wanted = np.concatenate([normalized(x[start : start + 2], (0, 1, 2)) for start in (0, 2, 4)])
        np.testing.assert_allclose(session.run(out), wanted, atol=2e-5)
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        np.testing.assert_allclose(session.run(variable("bn/mean/EMA")), 0.1 * x.mean((0, 1, 2)), rtol=1e-4)


def trained(parts: list[np.ndarray], sync: str | None) -> dict[str, np.ndarray]:
    """Return results, mean gradients and averages of a network over towers, each with its part of a batch."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        outputs, gradients = [], []
        for index, part in enumerate(parts):
            with TrainTowerContext(f"tower{index}", index=index, total=len(parts)):
                weights = tf.get_variable("w", [4], tf.float64, tf.constant_initializer([1.0, 0.5, 2.0, -1.0]))
                x = BatchNorm("a", tf.constant(part) * weights + weights**2, sync_statistics=sync)
                x = BatchNorm("b", tf.reduce_sum(tf.nn.relu(x), [1, 2]), sync_statistics=sync)
                cost = tf.reduce_mean(tf.square(tf.sin(x) - 0.3) * np.arange(1.0, 5.0))
                gradients.append(tf.gradients(cost, tf.trainable_variables()))
                outputs.append(x)
        means = [tf.add_n(list(each)) / len(parts) for each in zip(*gradients)]
        session.run(tf.global_variables_initializer())
        found = dict(zip([each.op.name for each in tf.trainable_variables()], session.run(means)))
        found["output"] = np.concatenate(session.run(outputs))
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        kept = tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)
        return found | dict(zip([each.op.name for each in kept], session.run(kept)))


@pytest.mark.parametrize("count", [2, 3])
def test_towers_with_synchronized_statistics_equal_one(count: int) -> None:
    batch = BATCHES[0].astype(np.float64)
    several = trained(np.split(batch, count), "towers")
    one = trained([batch], None)
    apart = trained(np.split(batch, count), None)
    assert set(several) == set(one)
    for name, wanted in one.items():
        np.testing.assert_allclose(several[name], wanted, rtol=1e-5, atol=1e-7, err_msg=name)
    assert not np.allclose(apart["output"], one["output"], atol=1e-2)


def test_synchronized_statistics_wait_for_every_tower() -> None:
    with TrainTowerContext("tower0", index=0, total=2):
        out = BatchNorm("bn", tf.constant(BATCHES[0]), sync_statistics="nccl")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="waits_for_all_towers"):
            session.run(out)


def test_graphs_with_synchronized_statistics_are_let_go() -> None:
    made = tf.Graph()
    with made.as_default():
        for index in (0, 1):
            with TrainTowerContext(f"tower{index}", index=index, total=2):
                BatchNorm("bn", tf.constant(BATCHES[0]), sync_statistics=True)
    found = weakref.ref(made)
    del made
    gc.collect()
    assert found() is None


def test_statistics_over_processes_come_from_the_trainer() -> None:
    with TrainTowerContext(""), pytest.raises(ConfigurationError, match="over processes"):
        BatchNorm("alone", tf.constant(BATCHES[0]), sync_statistics="horovod")

    class Doubled:
        size = 2

        def __call__(self, value: Any, key: str) -> Any:
            keys.append(key)
            return value * 2

    keys: list[str] = []
    tf.add_to_collection(PROCESS_MEAN, Doubled())
    with TrainTowerContext("", index=0):
        BatchNorm("bn", tf.constant(BATCHES[0]), sync_statistics="processes")
    assert keys == ["bn/mean", "bn/variance"]


def test_running_averages_may_be_used_in_training(caplog: pytest.LogCaptureFixture) -> None:
    with TowerContext("", is_training=True):
        out = BatchNorm("bn", tf.constant(BATCHES[0]), training=False)
        BatchNorm("other", out, training=False)
    assert caplog.messages == ["BatchNorm `bn`, and maybe others, uses its running averages in training."]
    assert not tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert tf.gradients(out, variable("bn/gamma"))[0] is not None


def test_half_precision_keeps_statistics_in_float32() -> None:
    with TowerContext("", is_training=True):
        out = BatchNorm("bn", tf.constant(BATCHES[0].astype(np.float16)))
    assert out.dtype == tf.float16
    assert {each.dtype.base_dtype for each in tf.global_variables()} == {tf.float32}


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"ema_update": "always"}, "`ema_update` is one of"),
        ({"sync_statistics": "mpi"}, "`sync_statistics` is None or one of"),
        ({"sync_statistics": "nccl", "virtual_batch_size": 2}, "a part of the batch, or"),
        ({"axis": 2}, "`axis` of `BatchNorm` must be 1 or -1"),
    ],
)
def test_options_of_batch_norm_that_do_not_fit(options: dict[str, Any], rule: str) -> None:
    with TowerContext("", is_training=True), pytest.raises(ConfigurationError, match=rule):
        BatchNorm("bn", tf.constant(BATCHES[0]), **options)
