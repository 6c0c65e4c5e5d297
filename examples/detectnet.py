"""DetectNet as a network file for TensorFlow: a grid of cells says where objects are, and each cell gives a box.

After Tao, Barker and Sarathy, "DetectNet: deep neural network for object detection in DIGITS" (NVIDIA, 2016), with a
smaller convolutional network in place of GoogLeNet. An object *covers* a cell whose center lies in the middle part of
its box. Coverage learns by the squared difference, boxes by the absolute one, as in DetectNet.

    ziggurat train --network examples/detectnet.py --data shapes-set --optimizer adam --learning-rate 0.003
"""

import tf_slim as slim
import utils as digits
from model import Tower
from utils import model_property

import tensorflow as tf

WIDTHS = (32, 48, 64, 96)
STRIDE = 8  # px of a cell; 16 in DetectNet, whose cars were large
MIDDLE = 0.5  # part of a box, along each side, whose cells are covered
BOX_WEIGHT = 2.0


class UserModel(Tower):
    @model_property
    def grid(self):
        """Coverage (N, K, classes) from 0 to 1 and boxes (N, K, 4) in px, of the K cells."""
        options = {
            "normalizer_fn": slim.batch_norm,
            "normalizer_params": {"is_training": self.is_training, "decay": 0.9},
        }
        net = self.x / 127.5 - 1
        for number, width in enumerate(WIDTHS):
            net = slim.conv2d(net, width, 3, stride=2 if 2**number < STRIDE else 1, **options)
            net = slim.conv2d(net, width, 3, **options)
        numbers = slim.conv2d(net, self.nclasses + 4, 1, activation_fn=None)
        numbers = tf.reshape(numbers, [-1, len(self.centers), self.nclasses + 4])
        corners = tf.concat([self.centers, self.centers], axis=1) + STRIDE * numbers[..., self.nclasses :]
        return tf.sigmoid(numbers[..., : self.nclasses]), corners

    @property
    def centers(self):
        """Centers of the cells, (K, 2) x and y in px."""
        height, width, _ = self.input_shape
        return digits.anchor_points(height, width, [STRIDE])[0]

    @model_property
    def inference(self):
        coverage, boxes = self.grid
        return tf.concat([boxes, coverage], axis=2)

    @model_property
    def targets(self):
        """What coverage and boxes shall be, of the objects in ``self.y``: (N, 1, most + 1, 16), a row for each."""
        objects = digits.boxes_of(self.y)
        low, high = objects.boxes[:, :, None, :2], objects.boxes[:, :, None, 2:]  # (N, M, 1, 2)
        half = tf.maximum((high - low) / 2 * MIDDLE, STRIDE / 2)  # a small object covers the cell that it is in
        is_near = tf.reduce_all(tf.abs(self.centers - (low + high) / 2) <= half, axis=3)  # (N, M, K)
        is_near = tf.logical_and(is_near, objects.is_object[..., None])
        area = tf.reduce_prod(high - low, axis=3) + 1e9 * tf.cast(tf.logical_not(is_near), tf.float32)
        owner = tf.argmin(area, axis=1)  # of several objects, a cell is the smallest one's
        is_covered = tf.cast(tf.reduce_any(is_near, axis=1), tf.float32)[..., None]
        classes = tf.one_hot(tf.gather(objects.classes, owner, batch_dims=1), self.nclasses)
        return classes * is_covered, tf.gather(objects.boxes, owner, batch_dims=1), is_covered

    @model_property
    def loss(self):
        coverage, boxes = self.grid
        wanted_coverage, wanted_boxes, is_covered = self.targets
        count = tf.maximum(tf.reduce_sum(is_covered), 1.0)
        coverage_loss = tf.reduce_sum(tf.square(coverage - wanted_coverage)) / count
        box_loss = tf.reduce_sum(tf.abs(boxes - wanted_boxes) * is_covered) / (4 * STRIDE * count)
        self.summaries.append(tf.summary.scalar("coverage_loss", coverage_loss))
        return coverage_loss + BOX_WEIGHT * box_loss
