"""Train an image-to-image GAN (Isola et al., 2017): from outlines of shapes to images of them."""

from __future__ import annotations

import argparse

import numpy as np
from gan import GANModel, GANTrainer, gan_losses, leaky
from small_data import Shapes, batches

from ziggurat.tf import (
    BatchNorm,
    BNReLU,
    Callback,
    Conv2D,
    Conv2DTranspose,
    ModelSaver,
    QueueInput,
    add_moving_summary,
    argscope,
    auto_reuse_variable_scope,
    logger,
    tf,
)

SIZE, WEIGHT_OF_DISTANCE = 32, 100.0


class Model(GANModel):
    def inputs(self):
        shape = (None, SIZE, SIZE, 3)
        return [tf.TensorSpec(shape, tf.uint8, "outline"), tf.TensorSpec(shape, tf.uint8, "image")]

    @auto_reuse_variable_scope
    def generator(self, outline):
        """Return an image; each half of the net hands its maps across to the other."""
        with argscope([Conv2D, Conv2DTranspose], kernel_size=4, strides=2):
            down1 = leaky(Conv2D("down1", outline, 32))
            down2 = leaky(BatchNorm("bn2", Conv2D("down2", down1, 64)))
            down3 = tf.nn.relu(BatchNorm("bn3", Conv2D("down3", down2, 128)))
            up2 = tf.concat([Conv2DTranspose("up2", down3, 64, activation=BNReLU), down2], 3)
            up1 = tf.concat([Conv2DTranspose("up1", up2, 32, activation=BNReLU), down1], 3)
            return tf.tanh(Conv2DTranspose("up0", up1, 3))

    @auto_reuse_variable_scope
    def discriminator(self, outline, image):
        """Return a logit for every part of the image."""
        with argscope(Conv2D, kernel_size=4, strides=2):
            x = leaky(Conv2D("conv1", tf.concat([outline, image], 3), 32))
            x = leaky(BatchNorm("bn", Conv2D("conv2", x, 64)))
        return Conv2D("parts", x, 1, 3)

    def build_graph(self, outline, image):
        outline, image = (tf.cast(each, tf.float32) / 128 - 1 for each in (outline, image))
        with tf.variable_scope("gen"):
            made = self.generator(outline)
        tf.identity(made, name="made")
        with tf.variable_scope("dis"):
            real, fake = self.discriminator(outline, image), self.discriminator(outline, made)
        g_loss, self.d_loss = gan_losses(real, fake)
        distance = tf.reduce_mean(tf.abs(image - made), name="distance")
        self.g_loss = tf.add(g_loss, WEIGHT_OF_DISTANCE * distance, name="total_g_loss")
        add_moving_summary(self.g_loss, self.d_loss, distance)


class PutImages(Callback):
    """Puts outlines, made images and real ones after each epoch."""

    def __init__(self, flow):
        self.outlines, self.images = next(iter(flow))

    def _setup_graph(self):
        self.make = self.trainer.get_predictor(["outline"], ["made"])

    def _trigger_epoch(self):
        (made,) = self.make(self.outlines)
        made = np.clip((made + 1) * 128, 0, 255).astype(np.uint8)
        rows = [np.concatenate(list(images), axis=1) for images in (self.outlines, made, self.images)]
        self.trainer.monitors.put_image("outline, made, real", np.concatenate(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--steps", type=int, default=64, help="steps in an epoch")
    parser.add_argument("--out", default="train_log/image_to_image")
    options = parser.parse_args()
    logger.set_logger_dir(options.out)
    flow = batches(Shapes(512, SIZE, outlines=True), 16)
    shown = batches(Shapes(6, SIZE, outlines=True), 6, seed=5)
    trainer = GANTrainer(QueueInput(flow), Model())
    trainer.train_with_defaults(
        callbacks=[ModelSaver(), PutImages(shown)], steps_per_epoch=options.steps, max_epoch=options.epochs
    )


if __name__ == "__main__":
    main()
