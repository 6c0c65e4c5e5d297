"""A detector without anchor boxes on EfficientNet-Lite0, after FCOS (Tian et al., 2019), YOLOX and TOOD (2021).

The backbone has the names of `efficientnet_lite0`, so that Google's weights load. A feature pyramid has cells of 8, 16
and 32 px, and for each level two branches: one for the classes, one for the distances from a cell's center to the sides
of a box. All that stands behind the backbone is the head, which is trained first where a training fine-tunes.
"""

# Expansion, kernel, stride of the first, width, blocks.
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
# Blocks that give the levels of the pyramid, and the sides of their cells in px.
LEVELS = (4, 10, 15)
STRIDES = (8, 16, 32)
CHANNELS = 96
RARE = 0.01


def conv2d(net, width, kernel, stride, scope):
    with tf.variable_scope(scope):
        normal = tf.variance_scaling_initializer(2.0, "fan_out", "untruncated_normal")
        weight = tf.get_variable("weight", [kernel, kernel, net.shape[-1], width], initializer=normal)
        return tf.nn.conv2d(net, weight, stride, "SAME")


def depthwise(net, kernel, stride, scope):
    """Convolve each channel by itself. The weight has PyTorch's axes: one input channel for each output."""
    channels = int(net.shape[-1])
    with tf.variable_scope(scope):
        normal = tf.random_normal_initializer(0, np.sqrt(2 / (kernel * kernel * channels)))
        weight = tf.get_variable("weight", [kernel, kernel, 1, channels], initializer=normal)
        weight = tf.reshape(weight, [kernel, kernel, channels, 1])
        return tf.nn.depthwise_conv2d(net, weight, [1, stride, stride, 1], "SAME")


def batch_norm(net, is_training, scope):
    """Batch norm with epsilon 1e-3; the averages move by a tenth, to the unbiased variance of the batch."""
    with tf.variable_scope(scope):
        channels = [net.shape[-1]]
        weight = tf.get_variable("weight", channels, initializer=tf.ones_initializer())
        bias = tf.get_variable("bias", channels, initializer=tf.zeros_initializer())
        mean = tf.get_variable("running_mean", channels, initializer=tf.zeros_initializer(), trainable=False)
        variance = tf.get_variable("running_var", channels, initializer=tf.ones_initializer(), trainable=False)
        if not is_training:
            return tf.nn.fused_batch_norm(net, weight, bias, mean, variance, epsilon=1e-3, is_training=False)[0]
        net, batch_mean, batch_variance = tf.nn.fused_batch_norm(net, weight, bias, epsilon=1e-3)
        for average, value in ((mean, batch_mean), (variance, batch_variance)):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(average, 0.1 * (average - value)))
        return net


def block(net, expansion, kernel, stride, width, is_training):
    """Expand by 1x1, look around in each channel, and project by 1x1 without a nonlinearity."""
    before, channels = net, int(net.shape[-1])
    if expansion > 1:
        net = conv2d(net, expansion * channels, 1, 1, "expand_conv")
        net = tf.nn.relu6(batch_norm(net, is_training, "bn0"))
    net = tf.nn.relu6(batch_norm(depthwise(net, kernel, stride, "depthwise_conv"), is_training, "bn1"))
    net = batch_norm(conv2d(net, width, 1, 1, "project_conv"), is_training, "bn2")
    return before + net if stride == 1 and channels == width else net


def backbone(net, is_training):
    """Return the maps of LEVELS for images (N, H, W, C)."""
    maps, number = [], 0
    net = tf.nn.relu6(batch_norm(conv2d(net, 32, 3, 2, "conv_stem"), is_training, "bn0"))
    for expansion, kernel, first, width, count in STAGES:
        for place in range(count):
            with tf.variable_scope(f"blocks/{number}"):
                net = block(net, expansion, kernel, first if place == 0 else 1, width, is_training)
            if number in LEVELS:
                maps.append(net)
            number += 1
    return maps


def layer(net, width, kernel, is_training, scope):
    """A convolution with batch norm and ReLU."""
    with tf.variable_scope(scope):
        return tf.nn.relu(batch_norm(conv2d(net, width, kernel, 1, "conv"), is_training, "bn"))


def cells(net, numbers, bias, scope):
    """Return some numbers for each cell, (N, cells, numbers)."""
    limit = 1 / np.sqrt(int(net.shape[-1]))
    with tf.variable_scope(scope):
        uniform = tf.random_uniform_initializer(-limit, limit)
        weight = tf.get_variable("weight", [1, 1, net.shape[-1], numbers], initializer=uniform)
        offset = tf.get_variable("bias", [numbers], initializer=tf.constant_initializer(bias))
        return tf.reshape(tf.nn.conv2d(net, weight, 1, "SAME") + offset, [-1, net.shape[1] * net.shape[2], numbers])


def head(maps, nclasses, is_training):
    """Return logits (N, K, classes) and distances (N, K, 4), the finest level first."""
    logits, sides, above = [], [], None
    for level in reversed(range(len(maps))):
        net = layer(maps[level], CHANNELS, 1, is_training, f"across{level}")
        if above is not None:
            # Sides are rounded up on the way down, so the enlarged map may have a row or column too many.
            twice = [2 * int(above.shape[1]), 2 * int(above.shape[2])]
            net += tf.image.resize_nearest_neighbor(above, twice)[:, : net.shape[1], : net.shape[2]]
        above = layer(net, CHANNELS, 3, is_training, f"smooth{level}")
        with tf.variable_scope(f"level{level}"):
            # Few cells have an object: scores begin low, or the first steps would be spent on that alone.
            net = layer(above, CHANNELS, 3, is_training, "class_conv")
            logits.insert(0, cells(net, nclasses, np.log(RARE / (1 - RARE)), "classes"))
            net = layer(above, CHANNELS, 3, is_training, "box_conv")
            sides.insert(0, cells(net, 4, 0.0, "sides"))
    return tf.concat(logits, axis=1), tf.concat(sides, axis=1)


class UserModel(Tower):
    @model_property
    def predictions(self):
        """Boxes (N, K, 4) in px, logits (N, K, classes), and the points (K, 2) that they belong to."""
        height, width, _ = self.input_shape
        maps = backbone((self.x - 127) / 128, self.is_training)
        with tf.variable_scope("head"):
            logits, sides = head(maps, self.nclasses, self.is_training)
        points, sizes = digits.anchor_points(height, width, STRIDES)
        distances = tf.exp(tf.minimum(sides, 5.0)) * sizes
        boxes = tf.concat([points - distances[..., :2], points + distances[..., 2:]], axis=2)
        return boxes, logits, points

    @model_property
    def inference(self):
        boxes, logits, _ = self.predictions
        return tf.concat([boxes, tf.sigmoid(logits)], axis=2)

    @model_property
    def loss(self):
        boxes, logits, points = self.predictions
        return digits.detection_loss(boxes, logits, self.y, points)
