"""Sides of the benchmark of training programs: one function each, which trains until its process is ended."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["LIMIT", "OURS", "RAW", "SIDES", "Network", "missing"]

RAW, OURS, LIMIT = "session.run with feed_dict", "trainer of ziggurat.tf", "prepared call alone"
_KERAS_2, _KERAS_3, _TENSORPACK = "tf_keras fit", "Keras 3 fit", "Tensorpack"
_FOREVER = 1_000_000


@dataclass(frozen=True)
class Network:
    """What is trained.

    Args:
        name: ``tiny``, ``lenet`` or ``resnet``.
        size: height and width of an image.
        batch_size: images in a step.
        steps: steps in a turn.
    """

    name: str
    size: int
    batch_size: int
    steps: int

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return 3 if self.name == "resnet" else 1

    def batches(self) -> list[list[np.ndarray]]:
        """Return 16 batches [images: (N, H, W, C) float32, labels: (N,) int32]."""
        random = np.random.default_rng(0)
        shape = (self.batch_size, self.size, self.size, self.channels)
        return [
            [random.random(shape, np.float32), random.integers(0, 10, self.batch_size).astype(np.int32)]
            for _ in range(16)
        ]


class Turns(Protocol):
    """What a side calls before and behind each of its turns."""

    def begin(self) -> None:
        """Wait for the turn."""

    def end(self) -> None:
        """Tell how long it took."""


def missing(name: str) -> str:
    """Return why a side cannot take part; empty where it can."""
    if name == _TENSORPACK and importlib.util.find_spec("tensorpack") is None:
        return "it is not installed"
    return ""


# ---- graphs


def _logits(tf: Any, network: Network, x: Any) -> Any:
    if network.name == "tiny":
        return _dense(tf, tf.reshape(x, [-1, network.size**2]), 10, "fc")
    if network.name == "lenet":
        x = _pool(tf, tf.nn.relu(_conv(tf, x, 20, 5, "conv1")))
        x = _pool(tf, tf.nn.relu(_conv(tf, x, 50, 5, "conv2")))
        x = tf.reshape(x, [-1, int(np.prod(x.shape[1:]))])
        return _dense(tf, tf.nn.relu(_dense(tf, x, 500, "fc1")), 10, "fc2")
    x = tf.nn.relu(_conv(tf, x, 16, 3, "conv0"))
    for stage, filters in enumerate((16, 32, 64)):
        stride = 2 if stage else 1
        shortcut = x if not stage else _conv(tf, x, filters, 1, f"short{stage}", stride)
        inner = tf.nn.relu(_conv(tf, x, filters, 3, f"conv{stage}a", stride))
        x = tf.nn.relu(shortcut + _conv(tf, inner, filters, 3, f"conv{stage}b"))
    return _dense(tf, tf.reduce_mean(x, [1, 2]), 10, "fc")


def _conv(tf: Any, x: Any, filters: int, size: int, name: str, stride: int = 1) -> Any:
    with tf.variable_scope(name):
        w = tf.get_variable("w", [size, size, x.shape[-1], filters])
        b = tf.get_variable("b", [filters], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME"), b)


def _dense(tf: Any, x: Any, units: int, name: str) -> Any:
    with tf.variable_scope(name):
        w = tf.get_variable("w", [x.shape[-1], units])
        return tf.matmul(x, w) + tf.get_variable("b", [units], initializer=tf.zeros_initializer())


def _pool(tf: Any, x: Any) -> Any:
    return tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")


def _cost(tf: Any, network: Network, x: Any, y: Any) -> Any:
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=_logits(tf, network, x))
    return tf.reduce_mean(losses, name="cost")


def _graph_step(network: Network) -> tuple[Any, Any, Any, Any]:
    """Return session, placeholders and train operation of a graph of plain TensorFlow."""
    tf = importlib.import_module("ziggurat.backends.tensorflow.runtime").tf
    x = tf.placeholder(tf.float32, [None, network.size, network.size, network.channels])
    y = tf.placeholder(tf.int32, [None])
    train_op = tf.train.MomentumOptimizer(1e-4, 0.9).minimize(_cost(tf, network, x, y))
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session, x, y, train_op


def _raw(network: Network, turns: Turns) -> None:
    session, x, y, train_op = _graph_step(network)
    run, batches = session.run, network.batches()
    while True:
        turns.begin()
        for number in range(network.steps):
            images, labels = batches[number % 16]
            run(train_op, {x: images, y: labels})
        turns.end()


def _prepared(network: Network, turns: Turns) -> None:
    session, x, y, train_op = _graph_step(network)
    calls = importlib.import_module("ziggurat.backends.tensorflow.calls")
    call, batches = calls.prepared_call(session, [x, y], [], [train_op]), network.batches()
    while True:
        turns.begin()
        for number in range(network.steps):
            call(*batches[number % 16])
        turns.end()


def _ours(network: Network, turns: Turns) -> None:
    z = importlib.import_module("ziggurat.tf")
    tf = z.tf
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what a terminal shows is not measured

    class Model(z.ModelDesc):
        def inputs(self) -> Any:
            shape = (None, network.size, network.size, network.channels)
            return [tf.TensorSpec(shape, tf.float32, "x"), tf.TensorSpec((None,), tf.int32, "y")]

        def build_graph(self, x: Any, y: Any) -> Any:
            cost = _cost(tf, network, x, y)
            z.add_moving_summary(cost)
            return cost

        def optimizer(self) -> Any:
            return tf.train.MomentumOptimizer(1e-4, 0.9)

    class First(z.Callback):
        def _after_epoch(self) -> None:
            turns.end()

    class Last(z.Callback):
        def _before_epoch(self) -> None:
            turns.begin()

    # The clocks run from the last callback that begins an epoch to the first that ends it.
    config = z.TrainConfig(
        model=Model(),
        dataflow=network.batches(),
        callbacks=[First()],
        extra_callbacks=[*z.DEFAULT_CALLBACKS(), Last()],
        steps_per_epoch=network.steps,
        max_epoch=_FOREVER,
    )
    z.launch_train_with_config(config, z.SimpleTrainer())


# ---- Keras


def _keras_model(keras: Any, network: Network) -> Any:
    layers = keras.layers
    x = inputs = keras.Input((network.size, network.size, network.channels))
    if network.name == "tiny":
        x = layers.Flatten()(x)
    elif network.name == "lenet":
        for filters in (20, 50):
            x = layers.Conv2D(filters, 5, padding="same", activation="relu")(x)
            x = layers.MaxPooling2D(2, padding="same")(x)
        x = layers.Dense(500, activation="relu")(layers.Flatten()(x))
    else:
        x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
        for stage, filters in enumerate((16, 32, 64)):
            stride = 2 if stage else 1
            shortcut = x if not stage else layers.Conv2D(filters, 1, stride, padding="same")(x)
            x = layers.Conv2D(filters, 3, stride, padding="same", activation="relu")(x)
            x = layers.Conv2D(filters, 3, padding="same")(x)
            x = layers.Activation("relu")(layers.Add()([shortcut, x]))
        x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(10)(x))


def _fit(keras: Any, network: Network, turns: Turns) -> None:
    batches = network.batches()
    count = -(-network.steps // 16)
    images = np.concatenate([images for images, _ in batches] * count)[: network.steps * network.batch_size]
    labels = np.concatenate([labels for _, labels in batches] * count)[: network.steps * network.batch_size]

    class Clock(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            turns.begin()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            turns.end()

    model = _keras_model(keras, network)
    model.compile(keras.optimizers.SGD(1e-4, 0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, network.batch_size, _FOREVER, verbose=0, callbacks=[Clock()], shuffle=False)


def _keras_2(network: Network, turns: Turns) -> None:
    _fit(importlib.import_module("tf_keras"), network, turns)


def _keras_3(network: Network, turns: Turns) -> None:
    os.environ["KERAS_BACKEND"] = "tensorflow"
    _fit(importlib.import_module("keras"), network, turns)


# ---- Tensorpack


def _tensorpack(network: Network, turns: Turns) -> None:
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    tp: Any = importlib.import_module("tensorpack")
    tf = importlib.import_module("tensorflow").compat.v1
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115

    class Model(tp.ModelDesc):
        def inputs(self) -> Any:
            shape = (None, network.size, network.size, network.channels)
            return [tf.TensorSpec(shape, tf.float32, "x"), tf.TensorSpec((None,), tf.int32, "y")]

        def build_graph(self, x: Any, y: Any) -> Any:
            cost = _cost(tf, network, x, y)
            tp.tfutils.summary.add_moving_summary(cost)
            return cost

        def optimizer(self) -> Any:
            return tf.train.MomentumOptimizer(1e-4, 0.9)

    class First(tp.Callback):
        def _after_epoch(self) -> None:
            turns.end()

    class Last(tp.Callback):
        def _before_epoch(self) -> None:
            turns.begin()

    class Endless(tp.dataflow.DataFlow):
        def __iter__(self) -> Any:
            batches = network.batches()
            while True:
                yield from batches

    config = tp.TrainConfig(
        model=Model(),
        data=tp.FeedInput(Endless()),
        callbacks=[First()],
        extra_callbacks=[*tp.train.DEFAULT_CALLBACKS(), Last()],
        steps_per_epoch=network.steps,
        max_epoch=_FOREVER,
    )
    tp.launch_train_with_config(config, tp.SimpleTrainer())


SIDES = {
    RAW: _raw,
    OURS: _ours,
    LIMIT: _prepared,
    _KERAS_2: _keras_2,
    _KERAS_3: _keras_3,
    _TENSORPACK: _tensorpack,
}
"""Side → what trains."""
