"""Train a residual network with 6n + 2 layers on images of 32 x 32 pixels (He et al., 2015, section 4.2).

``python cifar_resnet.py`` draws its images; ``--data FOLDER`` takes CIFAR-10.
"""

from __future__ import annotations

import argparse

import numpy as np
from small_data import CLASSES, Shapes, batches

from ziggurat.dataflow import AugmentImageComponent, BatchData, dataset, imgaug
from ziggurat.tf import (
    AutoResumeTrainConfig,
    BatchNorm,
    BNReLU,
    ClassificationError,
    Conv2D,
    FullyConnected,
    GlobalAvgPooling,
    InferenceRunner,
    MinSaver,
    ModelDesc,
    ModelSaver,
    QueueInput,
    ScheduledHyperParamSetter,
    SimpleTrainer,
    SyncMultiGPUTrainerReplicated,
    add_moving_summary,
    add_param_summary,
    argscope,
    l2_regularizer,
    launch_train_with_config,
    logger,
    regularize_cost,
    tf,
)


class Model(ModelDesc):
    def __init__(self, n, classes):
        self.n = n
        self.classes = classes

    def inputs(self):
        return [tf.TensorSpec((None, 32, 32, 3), tf.uint8, "image"), tf.TensorSpec((None,), tf.int32, "label")]

    def build_graph(self, image, label):
        image = tf.cast(image, tf.float32) / 128 - 1
        start = tf.variance_scaling_initializer(2.0, "fan_out")
        with argscope(Conv2D, use_bias=False, kernel_initializer=start):
            x = Conv2D("conv0", image, 16, 3, activation=BNReLU)
            for stage, filters in enumerate((16, 32, 64)):
                for block in range(self.n):
                    stride = 2 if stage and not block else 1
                    x = residual(f"res{stage}.{block}", x, filters, stride)
        logits = FullyConnected("linear", GlobalAvgPooling("gap", x), self.classes)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
        wrong = tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, 1)), tf.float32, name="wrong")
        decay = regularize_cost(".*/W", l2_regularizer(2e-4), name="weight_decay")
        cost = tf.add(tf.reduce_mean(losses, name="cross_entropy"), decay, name="cost")
        add_moving_summary(cost, tf.reduce_mean(wrong, name="train_error"))
        add_param_summary((".*/W", ["histogram"]))
        return cost

    def optimizer(self):
        rate = tf.get_variable("learning_rate", initializer=0.05, trainable=False)
        return tf.train.MomentumOptimizer(rate, 0.9)


def residual(name, x, filters, stride):
    """Return a block of two convolutions with a shortcut."""
    with tf.variable_scope(name):
        shortcut = x if stride == 1 and x.shape[-1] == filters else Conv2D("shortcut", x, filters, 1, strides=stride)
        inner = Conv2D("conv1", x, filters, 3, strides=stride, activation=BNReLU)
        return tf.nn.relu(BatchNorm("bn", Conv2D("conv2", inner, filters, 3)) + shortcut)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with CIFAR-10")
    parser.add_argument("--n", type=int, default=1, help="blocks in each of three stages: 6n + 2 layers")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--towers", type=int, default=1, help="replicas, each with batches of its own")
    parser.add_argument("--out", default="train_log/cifar_resnet")
    options = parser.parse_args()
    logger.set_logger_dir(options.out)
    if options.data:
        train, val = dataset.Cifar10("train", dir=options.data), dataset.Cifar10("test", dir=options.data)
        classes, batch = 10, 128
    else:
        train, val, classes, batch = Shapes(1024), Shapes(256), len(CLASSES), 32
    shifts = [imgaug.CenterPaste((40, 40)), imgaug.RandomCrop((32, 32)), imgaug.Flip(horiz=True)]
    train = batches(AugmentImageComponent(train, shifts), batch)
    val = BatchData(val, 128, remainder=True).seed(2)
    epochs = options.epochs
    drops = sorted({max(1, epochs // 2): 0.01, max(2, epochs * 3 // 4): 0.001}.items())
    config = AutoResumeTrainConfig(
        model=Model(options.n, classes),
        data=QueueInput(train),
        callbacks=[
            ModelSaver(),
            InferenceRunner(val, ClassificationError("wrong", "validation_error")),
            MinSaver("validation_error"),
            ScheduledHyperParamSetter("learning_rate", drops),
        ],
        steps_per_epoch=int(np.ceil(len(train) / options.towers)),
        max_epoch=epochs,
    )
    trainer = SimpleTrainer() if options.towers == 1 else SyncMultiGPUTrainerReplicated(options.towers)
    launch_train_with_config(config, trainer)


if __name__ == "__main__":
    main()
