"""Train a small convolutional network on handwritten digits.

``python mnist_convnet.py`` takes the digits that scikit-learn ships; ``--data FOLDER`` takes the four files of MNIST.
"""

from __future__ import annotations

import argparse

from ziggurat.dataflow import BatchData, dataset
from ziggurat.tf import (
    AutoResumeTrainConfig,
    ClassificationError,
    Conv2D,
    InferenceRunner,
    LinearWrap,
    MinSaver,
    ModelDesc,
    ModelSaver,
    ScalarStats,
    SimpleTrainer,
    add_moving_summary,
    argscope,
    get_global_step_var,
    launch_train_with_config,
    logger,
    tf,
)


class Model(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec((None, 28, 28, 1), tf.uint8, "image"), tf.TensorSpec((None,), tf.int32, "label")]

    def build_graph(self, image, label):
        image = tf.cast(image, tf.float32) / 128 - 1
        with argscope(Conv2D, kernel_size=3, activation=tf.nn.relu, filters=32):
            logits = (
                LinearWrap(image)
                .Conv2D("conv0")
                .MaxPooling("pool0", 2)
                .Conv2D("conv1")
                .MaxPooling("pool1", 2)
                .FullyConnected("fc0", 256, activation=tf.nn.relu)
                .Dropout("dropout", rate=0.5)
                .FullyConnected("fc1", 10)()
            )
        wrong = tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, 1)), tf.float32, name="wrong")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
        cost = tf.reduce_mean(losses, name="cost")
        add_moving_summary(cost, tf.reduce_mean(wrong, name="train_error"))
        return cost

    def optimizer(self):
        rate = tf.train.exponential_decay(1e-3, get_global_step_var(), 468 * 5, 0.3, staircase=True)
        return tf.train.AdamOptimizer(rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the files of MNIST")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", default="train_log/mnist_convnet", help="folder for curves and checkpoints")
    options = parser.parse_args()
    logger.set_logger_dir(options.out)
    if options.data:
        train = BatchData(dataset.Mnist("train", dir=options.data, raw=True), 128).seed(1)
        val = BatchData(dataset.Mnist("test", dir=options.data, raw=True), 256, remainder=True)
    else:
        train = BatchData(dataset.SklearnDigits("train", size=28), 32).seed(1)
        val = BatchData(dataset.SklearnDigits("val", size=28), 64, remainder=True)
    config = AutoResumeTrainConfig(
        model=Model(),
        dataflow=train,
        callbacks=[
            ModelSaver(),
            InferenceRunner(val, [ScalarStats("cost"), ClassificationError("wrong", "validation_error")]),
            MinSaver("validation_error"),
        ],
        max_epoch=options.epochs,
    )
    launch_train_with_config(config, SimpleTrainer())


if __name__ == "__main__":
    main()
