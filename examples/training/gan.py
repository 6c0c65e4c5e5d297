"""A trainer for generator and discriminator, shared by the examples: one step updates both."""

from __future__ import annotations

from ziggurat.tf import ModelDescBase, TowerFunc, TowerTrainer, TrainTowerContext, tf

__all__ = ["GANModel", "GANTrainer", "gan_losses", "leaky"]


class GANModel(ModelDescBase):
    """A model whose tower function sets ``g_loss`` and ``d_loss``; variables are in the scopes ``gen`` and ``dis``."""

    g_loss = d_loss = None

    def optimizer(self):
        """Return the optimizer of both."""
        return tf.train.AdamOptimizer(2e-4, beta1=0.5)


def leaky(x):
    """Return x where it is positive, and a fifth of it elsewhere."""
    return tf.maximum(x, 0.2 * x)


def gan_losses(real, fake):
    """Return the losses of generator and discriminator from logits of images (Goodfellow et al., 2014)."""
    cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits
    d_real = tf.reduce_mean(cross_entropy(labels=tf.ones_like(real), logits=real))
    d_fake = tf.reduce_mean(cross_entropy(labels=tf.zeros_like(fake), logits=fake))
    g_loss = tf.reduce_mean(cross_entropy(labels=tf.ones_like(fake), logits=fake), name="g_loss")
    return g_loss, tf.add(d_real, d_fake, name="d_loss")


class GANTrainer(TowerTrainer):
    """Updates the discriminator behind the generator, on the same batch.

    Args:
        source: input source.
        model: a ``GANModel``.
    """

    def __init__(self, source, model):
        super().__init__()
        self.tower_func = TowerFunc(model.build_graph, model.get_input_signature())
        for callback in source.setup(model.get_input_signature()):
            self.register_callback(callback)
        self.input = source
        with TrainTowerContext(""):
            self.tower_func(*source.get_input_tensors())
        optimizer = model.optimizer()
        g_step = optimizer.minimize(model.g_loss, var_list=tf.trainable_variables("gen"), name="g_step")
        with tf.control_dependencies([g_step]):
            self.train_op = optimizer.minimize(model.d_loss, var_list=tf.trainable_variables("dis"), name="d_step")
