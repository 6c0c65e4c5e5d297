"""LeNet with slim, as a program for TensorFlow 1: placeholders, a session, and a loop of its own.

Run it with ``ziggurat run-script examples/tensorflow_course/slim_lenet.py --epochs 5``; plain Python has no
``tensorflow.contrib`` any more.
"""

import argparse

import numpy as np
import tensorflow.contrib.slim as slim
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tensorflow as tf


def lenet(images, is_training):
    """Return (N, 10) for images (N, 8, 8, 1)."""
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_initializer=tf.contrib.layers.xavier_initializer(),
        weights_regularizer=slim.l2_regularizer(0.0005),
    ):
        net = slim.conv2d(images, 20, [3, 3], scope="conv1")
        net = slim.max_pool2d(net, [2, 2], scope="pool1")
        net = slim.conv2d(net, 50, [3, 3], scope="conv2")
        net = slim.max_pool2d(net, [2, 2], scope="pool2")
        net = slim.fully_connected(slim.flatten(net), 100, scope="hidden")
        net = slim.dropout(net, 0.5, is_training=is_training)
        return slim.fully_connected(net, 10, activation_fn=None, scope="scores")


def main():
    parser = argparse.ArgumentParser(description="LeNet with slim.")
    parser.add_argument("--epochs", type=int, default=8)
    epochs = parser.parse_args().epochs
    np.random.seed(1)
    tf.set_random_seed(1)

    data = load_digits()
    images, labels = data.images[..., None] / 16.0, data.target
    x_train, x_test, y_train, y_test = train_test_split(images, labels, test_size=0.2, random_state=0)

    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    y = tf.placeholder(tf.int64, [None])
    is_training = tf.placeholder_with_default(False, [])
    scores = lenet(x, is_training)
    slim.losses.sparse_softmax_cross_entropy(scores, y)
    train = slim.learning.create_train_op(slim.losses.get_total_loss(), tf.train.AdamOptimizer(2e-3))
    accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(scores, 1), y)))

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for epoch in range(1, epochs + 1):
            order = np.random.permutation(len(x_train))
            for start in range(0, len(order), 64):
                rows = order[start : start + 64]
                session.run(train, {x: x_train[rows], y: y_train[rows], is_training: True})
            print(f"epoch {epoch}: accuracy {session.run(accuracy, {x: x_test, y: y_test}):.3f}")


if __name__ == "__main__":
    main()
