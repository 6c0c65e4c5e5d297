"""Train a DCGAN (Radford et al., 2016) that makes handwritten digits; its images appear in TensorBoard."""

from __future__ import annotations

import argparse

import numpy as np
from gan import GANModel, GANTrainer, gan_losses, leaky
from small_data import batches

from ziggurat.dataflow import MapData, dataset
from ziggurat.tf import (
    BatchNorm,
    BNReLU,
    Callback,
    Conv2D,
    Conv2DTranspose,
    FullyConnected,
    ModelSaver,
    QueueInput,
    add_moving_summary,
    argscope,
    auto_reuse_variable_scope,
    logger,
    tf,
)

NOISE = 32


class Model(GANModel):
    def inputs(self):
        return [tf.TensorSpec((None, 28, 28, 1), tf.uint8, "image"), tf.TensorSpec((None, NOISE), tf.float32, "z")]

    @auto_reuse_variable_scope
    def generator(self, z):
        x = tf.reshape(BNReLU(FullyConnected("fc", z, 7 * 7 * 64)), [-1, 7, 7, 64])
        x = Conv2DTranspose("deconv1", x, 32, 4, strides=2, activation=BNReLU)
        return tf.tanh(Conv2DTranspose("deconv2", x, 1, 4, strides=2), name="made")

    @auto_reuse_variable_scope
    def discriminator(self, image):
        with argscope(Conv2D, kernel_size=4, strides=2):
            x = leaky(Conv2D("conv1", image, 32))
            x = leaky(BatchNorm("bn", Conv2D("conv2", x, 64)))
        return FullyConnected("fc", x, 1)

    def build_graph(self, image, z):
        with tf.variable_scope("gen"):
            made = self.generator(z)
        tf.identity((made + 1) / 2, name="samples")
        with tf.variable_scope("dis"):
            real, fake = self.discriminator(tf.cast(image, tf.float32) / 128 - 1), self.discriminator(made)
        self.g_loss, self.d_loss = gan_losses(real, fake)
        add_moving_summary(self.g_loss, self.d_loss)


class PutSamples(Callback):
    """Puts images of the same noise after each epoch."""

    def _setup_graph(self):
        self.make = self.trainer.get_predictor(["z"], ["samples"])
        self.noise = np.random.RandomState(0).randn(8, NOISE).astype(np.float32)

    def _trigger_epoch(self):
        (made,) = self.make(self.noise)
        row = np.concatenate(list(made[:, :, :, 0]), axis=1)
        self.trainer.monitors.put_image("samples", (255 * row).astype(np.uint8))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=46, help="steps in an epoch")
    parser.add_argument("--out", default="train_log/dcgan")
    options = parser.parse_args()
    logger.set_logger_dir(options.out)
    noise = np.random.RandomState(1)
    flow = MapData(dataset.SklearnDigits("train", size=28), lambda dp: [dp[0], noise.randn(NOISE).astype(np.float32)])
    trainer = GANTrainer(QueueInput(batches(flow, 32)), Model())
    trainer.train_with_defaults(
        callbacks=[ModelSaver(), PutSamples()], steps_per_epoch=options.steps, max_epoch=options.epochs
    )


if __name__ == "__main__":
    main()
