"""Networks in DIGITS's style for the kinds of examples that DIGITS ships for TensorFlow; the architectures are ours."""

IMPORTS = """
from model import Tower
from utils import model_property
import tensorflow as tf
import tensorflow.contrib.slim as slim
import utils as digits

"""

AUTOENCODER = (
    IMPORTS
    + """
class UserModel(Tower):
    task = "image-to-image"

    @model_property
    def inference(self):
        side = self.input_shape[0] * self.input_shape[1]
        net = slim.flatten(self.x) / 255.0
        net = slim.fully_connected(net, 64, scope="encode")
        net = slim.fully_connected(net, side, activation_fn=tf.nn.sigmoid, scope="decode")
        net = tf.reshape(net, [-1] + self.input_shape)
        self.summaries.append(tf.summary.image("copy", net, max_outputs=4))
        return net

    @model_property
    def loss(self):
        return digits.mse_loss(self.inference, self.x / 255.0)
"""
)

MASKS_AS_IMAGES = (
    IMPORTS
    + '''
class UserModel(Tower):
    """Convolution down, deconvolution up: an image of where the shape is."""

    task = "image-to-image"

    @model_property
    def inference(self):
        net = slim.conv2d(self.x / 255.0, 16, [5, 5], 2, scope="down")
        net = slim.conv2d_transpose(net, 16, [4, 4], 2, scope="up")
        self.mask = slim.conv2d(net, 1, [3, 3], activation_fn=None, scope="mask")
        return tf.clip_by_value(self.mask, 0, 1)

    @model_property
    def loss(self):
        self.summaries.append(tf.summary.image("mask", self.inference, max_outputs=4))
        return digits.mse_loss(self.mask, self.y / 255.0)  # not of the clipped one, which has no gradient at the ends
'''
)

SEGMENTATION = (
    IMPORTS
    + '''
class UserModel(Tower):
    """A score for each class and pixel."""

    @model_property
    def inference(self):
        net = slim.conv2d(self.x / 255.0, 16, [5, 5], 2, scope="down")
        net = slim.conv2d_transpose(net, 16, [4, 4], 2, scope="up")
        return slim.conv2d(net, self.nclasses, [3, 3], activation_fn=None, scope="scores")

    @model_property
    def loss(self):
        labels = tf.reshape(self.y, [-1])
        scores = tf.reshape(self.inference, [-1, self.nclasses])
        counts = tf.cast(labels < self.nclasses, tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=scores, labels=tf.minimum(labels, self.nclasses - 1)
        )
        return tf.reduce_sum(losses * counts) / tf.reduce_sum(counts)
'''
)

GRADIENTS = (
    IMPORTS
    + '''
class UserModel(Tower):
    """One linear layer: which way an image becomes brighter."""

    @model_property
    def inference(self):
        x = tf.reshape(self.x / 255.0, [-1, 16 * 16])
        weights = tf.get_variable("W", [16 * 16, 2], initializer=tf.constant_initializer(0.0))
        biases = tf.get_variable("B", [2], initializer=tf.constant_initializer(0.0)),
        return tf.add(tf.matmul(x, weights), biases[0])

    @model_property
    def loss(self):
        return digits.mse_loss(self.inference, tf.reshape(self.y, [-1, 2]))
'''
)

EMBED = """
def embed(net):
    net = slim.conv2d(net, 8, [5, 5], 2, scope="conv1")
    net = slim.fully_connected(slim.flatten(net), 32, scope="fc1")
    return slim.fully_connected(net, 4, activation_fn=None, scope="feat")


class UserModel(Tower):
    %s

    @model_property
    def inference(self):
        left, right = %s
        with tf.variable_scope("siamese") as scope:
            first = embed(left / 255.0)
            scope.reuse_variables()
            second = embed(right / 255.0)
        return [first, second]

    @model_property
    def loss(self):
        first, second = self.inference
        return digits.constrastive_loss(lhs=first, rhs=second, y=self.y, margin=1.0)
"""

SIAMESE = IMPORTS + EMBED % ('task = "pairs"', "tf.split(self.x, 2, axis=3)")

SIAMESE_OF_DIGITS = IMPORTS + EMBED % (
    '"""Both images of a pair lie in the channels of one: the second and the third."""',
    "(self.x[:, :, :, 1:2], self.x[:, :, :, 2:3])",
)
