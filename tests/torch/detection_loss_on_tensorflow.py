"""Loss of a detector on TensorFlow and its gradients, in a process without PyTorch.

``python detection_loss_on_tensorflow.py INPUTS OUTPUTS``: ``INPUTS`` is an ``.npz`` of ``boxes``, ``logits``, ``y`` and
``points``; ``OUTPUTS`` gets ``loss``, ``boxes`` and ``logits``, the gradients.
"""

import sys

import numpy as np

from ziggurat.backends.tensorflow import digits
from ziggurat.backends.tensorflow.runtime import tf


def main():
    inputs, outputs = sys.argv[1:]
    with np.load(inputs) as arrays:
        given = dict(arrays)
    points, sizes = digits.anchor_points(128, 96)
    np.testing.assert_array_equal(points, given.pop("points"))
    assert sizes.shape == (len(points), 1)
    with tf.Graph().as_default():
        fed = {name: tf.placeholder(tf.float32, [None, *value.shape[1:]]) for name, value in given.items()}
        loss = digits.detection_loss(fed["boxes"], fed["logits"], fed["y"], points)
        gradients = tf.gradients(loss, [fed["boxes"], fed["logits"]])
        with tf.Session() as session:
            found = session.run([loss, *gradients], {fed[name]: value for name, value in given.items()})
    np.savez(outputs, **dict(zip(("loss", "boxes", "logits"), found, strict=True)))


if __name__ == "__main__":
    main()
