"""What the programs of this folder share: handwritten digits in batches, layers of raw operations, and a report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFlow
from ziggurat.dataflow.dataset import SklearnDigits
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import TrainConfig, launch_train_with_config
from ziggurat.tf.model import ModelDesc
from ziggurat.tf.trainers import SimpleTrainer

BATCH_SIZE = 64


class DigitsModel(ModelDesc):
    """A model of digits: a subclass defines ``scores``."""

    def inputs(self) -> list[Any]:
        """Return images (N, 8, 8, 1) from 0 to 255, and labels (N)."""
        return [tf.TensorSpec((None, 8, 8, 1), tf.uint8, "image"), tf.TensorSpec((None,), tf.int64, "label")]

    def scores(self, image: Any) -> Any:
        """Return (N, 10) for images (N, 8, 8, 1) from 0 to 1."""
        raise NotImplementedError

    def build_graph(self, image: Any, label: Any) -> Any:
        """Return the cost: the cross-entropy, and the losses of regularization."""
        scores = tf.identity(self.scores(tf.cast(image, tf.float32) / 255.0), name="logits")
        cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=scores)
        return tf.add_n([tf.reduce_mean(cross_entropy), *tf.losses.get_regularization_losses()], name="cost")

    def optimizer(self) -> Any:
        """Return the optimizer."""
        return tf.train.AdamOptimizer(2e-3)


class Accuracy(Callback):
    """Prints the share of the validation digits that are recognized, after each epoch."""

    def __init__(self) -> None:
        self.values: list[float] = []
        images, labels = zip(*SklearnDigits("val"))
        self._images, self._labels = np.stack(images), np.array(labels)

    def _setup_graph(self) -> None:
        self._predict = self.trainer.get_predictor(["image"], ["logits"])

    def _trigger_epoch(self) -> None:
        (scores,) = self._predict(self._images)
        self.values.append(float((scores.argmax(1) == self._labels).mean()))
        self.trainer.monitors.put_scalar("val/accuracy", self.values[-1])
        print(f"epoch {self.epoch_num}: accuracy {self.values[-1]:.3f}")


def convolution(net: Any, channels: int, name: str) -> Any:
    """Return ReLU of a 3x3 convolution; its variables are made once and found again by their names."""
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        kernel = tf.get_variable(
            "kernel", [3, 3, net.shape[-1], channels], initializer=tf.variance_scaling_initializer(2.0)
        )
        bias = tf.get_variable("bias", [channels], initializer=tf.zeros_initializer())
        return tf.nn.relu(tf.nn.conv2d(net, kernel, strides=1, padding="SAME") + bias)


def pooling(net: Any) -> Any:
    """Return the maxima of squares of 2x2."""
    return tf.nn.max_pool(net, 2, 2, "VALID")


def dense(net: Any, units: int, name: str) -> Any:
    """Return a fully connected layer over all that a sample has."""
    net = tf.reshape(net, [-1, int(np.prod(net.shape.as_list()[1:]))])
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        kernel = tf.get_variable("kernel", [net.shape[1], units], initializer=tf.variance_scaling_initializer(1.0))
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.matmul(net, kernel) + bias


def digits(split: str = "train", seed: int = 1) -> DataFlow:
    """Return batches of [images (64, 8, 8, 1) uint8, labels (64) int64]."""
    return BatchData(SklearnDigits(split), BATCH_SIZE).seed(seed)


def train(model: ModelDesc, data: DataFlow, callbacks: Sequence[Callback], epochs: int) -> SimpleTrainer:
    """Train a model in a graph of its own; return the trainer, which is done."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        trainer = SimpleTrainer()
        config = TrainConfig(model=model, dataflow=data, callbacks=callbacks, max_epoch=epochs)
        launch_train_with_config(config, trainer)
        return trainer


def arguments(description: str, epochs: int) -> argparse.Namespace:
    """Read the command line; a folder that is given gets curves, images and checkpoints."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--folder", help="where curves and images are written, for TensorBoard")
    options = parser.parse_args()
    if options.folder:
        logger.set_logger_dir(options.folder, "keep")
    return options
