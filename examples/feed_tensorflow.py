"""Owns a small TensorFlow program: handwritten digits, augmented by two processes, feed a training loop of your own.

Run it with ``python examples/feed_tensorflow.py``. It needs the extras ``tensorflow`` and ``samples``, and no download.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from ziggurat.dataflow import BatchData, DataFlow, MapData, MultiProcessMapAndBatchData, imgaug, to_tf_dataset
from ziggurat.dataflow.augment import augment_component
from ziggurat.dataflow.dataset import SklearnDigits

BATCH_SIZE = 64


def main() -> None:
    """Train, and tell after each epoch how many digits of the validation split are recognized."""
    options = arguments()
    tf.keras.utils.set_random_seed(options.seed)
    network = convolutional_network()
    train_step = compiled_step(network, tf.keras.optimizers.Adam(3e-3))
    # What the network must know of a batch; the number of images may differ, as it does in the last batch.
    signature = (tf.TensorSpec((None, 28, 28, 1), tf.uint8), tf.TensorSpec((None,), tf.int64))
    validation = to_tf_dataset(validation_batches(), signature)
    with training_batches(options.workers, options.seed) as batches:
        dataset = to_tf_dataset(batches, signature).prefetch(2)
        for epoch in range(1, options.epochs + 1):
            for images, labels in dataset:
                train_step(images, labels)
            print(f"epoch {epoch}: accuracy {accuracy(network, validation):.3f}")
        for row in batches.stats():
            print(f"{row.stage}: {row.datapoints} datapoints, {row.own_s:.2f} s of its own")


def training_batches(workers: int, seed: int) -> DataFlow:
    """Return [images (64, 28, 28, 1) uint8, labels (64) int64], augmented: the same ones for any number of workers."""
    augment = augment_component([imgaug.Resize(32), imgaug.RandomCrop(28), imgaug.Rotation(10)])
    digits = SklearnDigits("train")
    return MultiProcessMapAndBatchData(digits, workers, augment, batch_size=BATCH_SIZE).seed(seed)


def validation_batches() -> DataFlow:
    """Return the same without anything random, the smaller last batch too."""
    centre = augment_component([imgaug.Resize(32), imgaug.CenterCrop(28)])
    return BatchData(MapData(SklearnDigits("val"), centre), BATCH_SIZE, remainder=True)


def convolutional_network() -> Any:
    """Return a network from (N, 28, 28, 1) of bytes to ten logits."""
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            tf.keras.layers.Rescaling(1 / 255),
            tf.keras.layers.Conv2D(8, 5, strides=2, activation="relu"),
            tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )


def compiled_step(network: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
    """Return the function that takes one step of training."""
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(reduce_retracing=True)
    def train_step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, network(images, training=True))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    return train_step


def accuracy(network: Any, validation: Any) -> float:
    """Return which share of the validation split is recognized."""
    right = total = 0
    for images, labels in validation:
        right += int(tf.reduce_sum(tf.cast(tf.argmax(network(images), axis=1) == labels, tf.int32)))
        total += len(labels)
    return right / total


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits that two processes augment.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2, help="processes that augment; 0 for none")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
