"""Networks and data for the tests of the TensorFlow backend."""

import numpy as np
from sklearn.datasets import load_digits

SMALL = """
class UserModel(Tower):
    @model_property
    def inference(self):
        x = self.x * 0.0125
        with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.001)):
            net = slim.conv2d(x, 8, [3, 3], scope='conv1')
            net = slim.max_pool2d(net, [2, 2], scope='pool1')
            net = slim.flatten(net)
            net = slim.dropout(net, 0.7, is_training=self.is_training, scope='dropout1')
            return slim.fully_connected(net, self.nclasses, activation_fn=None, scope='fc1')

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
"""


def digit_images() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits: (1797, 8, 8, 1) float32 in [0, 255], and (1797,) int64."""
    x, y = load_digits(return_X_y=True)
    return (x * 15).astype(np.float32).reshape(-1, 8, 8, 1), y.astype(np.int64)


def batches(count: int, size: int) -> list[list[np.ndarray]]:
    """Return ``count`` batches of digits."""
    x, y = digit_images()
    return [[x[n * size : (n + 1) * size], y[n * size : (n + 1) * size]] for n in range(count)]
