"""Train a bottleneck residual network as for ImageNet, on a folder of images or on shapes that are drawn here.

``python imagenet_resnet.py --data FOLDER`` takes ``FOLDER/train/CLASS/*`` and ``FOLDER/val/CLASS/*``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from small_data import CLASSES, Shapes, batches

from ziggurat.dataflow import AugmentImageComponent, BatchData, ImageFolder, MultiProcessMapData, imgaug
from ziggurat.tf import (
    AutoResumeTrainConfig,
    BatchNorm,
    BNReLU,
    ClassificationError,
    Conv2D,
    FullyConnected,
    GlobalAvgPooling,
    InferenceRunner,
    MaxPooling,
    MinSaver,
    ModelDesc,
    ModelSaver,
    QueueInput,
    ScheduledHyperParamSetter,
    SimpleTrainer,
    StagingInput,
    add_moving_summary,
    argscope,
    l2_regularizer,
    launch_train_with_config,
    logger,
    regularize_cost,
    tf,
)

BLOCKS = {18: (2, 2, 2, 2), 26: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}


class Model(ModelDesc):
    def __init__(self, depth, classes, size, width):
        self.blocks = BLOCKS[depth]
        self.bottleneck = depth != 18
        self.classes, self.size, self.width = classes, size, width

    def inputs(self):
        shape = (None, self.size, self.size, 3)
        return [tf.TensorSpec(shape, tf.uint8, "image"), tf.TensorSpec((None,), tf.int32, "label")]

    def build_graph(self, image, label):
        mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
        x = (tf.cast(image, tf.float32) / 255 - mean) / deviation
        start = tf.variance_scaling_initializer(2.0, "fan_out")
        with argscope(Conv2D, use_bias=False, kernel_initializer=start):
            x = Conv2D("conv0", x, self.width, 7, strides=2, activation=BNReLU)
            x = MaxPooling("pool0", x, 3, 2, padding="same")
            for group, count in enumerate(self.blocks):
                with tf.variable_scope(f"group{group}"):
                    for number in range(count):
                        with tf.variable_scope(f"block{number}"):
                            x = self.block(x, self.width << group, 2 if group and not number else 1)
        logits = FullyConnected("linear", GlobalAvgPooling("gap", x), self.classes)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
        wrong = tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, 1)), tf.float32, name="wrong-top1")
        decay = regularize_cost(".*/W", l2_regularizer(1e-4), name="weight_decay")
        cost = tf.add(tf.reduce_mean(losses), decay, name="cost")
        add_moving_summary(cost, tf.reduce_mean(wrong, name="train-error-top1"))
        return cost

    def block(self, x, filters, stride):
        """Return a block; the last normalization of its branch begins at zero, so it begins as its shortcut."""
        out = filters * 4 if self.bottleneck else filters
        branch = x
        if self.bottleneck:
            branch = Conv2D("conv1", branch, filters, 1, activation=BNReLU)
        branch = Conv2D("conv2", branch, filters, 3, strides=stride, activation=BNReLU)
        branch = Conv2D("conv3", branch, out, 1 if self.bottleneck else 3)
        branch = BatchNorm("bn", branch, gamma_initializer=tf.zeros_initializer())
        if x.shape[-1] != out or stride != 1:
            x = BatchNorm("bn_shortcut", Conv2D("shortcut", x, out, 1, strides=stride))
        return tf.nn.relu(x + branch)

    def optimizer(self):
        rate = tf.get_variable("learning_rate", initializer=0.05, trainable=False)
        return tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)


def image_batches(folder, size, batch, *, is_training):
    """Return batches of a folder of images: cropped at random for training, at the center otherwise."""
    flow = ImageFolder(str(folder), shuffle=is_training)
    if is_training:
        changes = [imgaug.RandomResizedCrop(size), imgaug.Flip(horiz=True)]
    else:
        changes = [imgaug.ResizeShortestEdge(size * 8 // 7), imgaug.CenterCrop((size, size))]
    augmented = imgaug.AugmentorList(changes)
    flow = MultiProcessMapData(flow, 4, lambda dp: [augmented.augment(dp[0]), dp[1]])
    return BatchData(flow, batch, remainder=not is_training).seed(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with train/CLASS and val/CLASS")
    parser.add_argument("--depth", type=int, choices=sorted(BLOCKS), default=18)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--width", type=int, default=16, help="filters of the first layer; 64 for ImageNet")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", default="train_log/imagenet_resnet")
    options = parser.parse_args()
    logger.set_logger_dir(options.out)
    if options.data:
        classes = sum(path.is_dir() for path in (options.data / "train").iterdir())
        train = image_batches(options.data / "train", options.size, options.batch, is_training=True)
        val = image_batches(options.data / "val", options.size, options.batch, is_training=False)
    else:
        classes = len(CLASSES)
        flipped = AugmentImageComponent(Shapes(512, options.size), [imgaug.Flip(horiz=True)])
        train = batches(flipped, options.batch)
        val = batches(Shapes(128, options.size), options.batch, remainder=True, seed=2)
    epochs = options.epochs
    drops = sorted({max(1, epochs // 3): 0.02, max(2, 2 * epochs // 3): 0.002}.items())
    config = AutoResumeTrainConfig(
        model=Model(options.depth, classes, options.size, options.width),
        data=StagingInput(QueueInput(train)),
        callbacks=[
            ModelSaver(),
            InferenceRunner(val, ClassificationError("wrong-top1", "val-error-top1")),
            MinSaver("val-error-top1"),
            ScheduledHyperParamSetter("learning_rate", drops),
        ],
        steps_per_epoch=len(train),
        max_epoch=epochs,
    )
    launch_train_with_config(config, SimpleTrainer())


if __name__ == "__main__":
    main()
