"""A detector without anchor boxes on ResNet-18, after FCOS (Tian et al., 2019), YOLOX and TOOD (2021).

The backbone has the names of torchvision's ResNet-18, so that its published weights load. A feature pyramid has cells
of 8, 16 and 32 px, and for each level two branches: one for the classes, one for the distances from a cell's center to
the sides of a box.
"""

WIDTHS = (64, 128, 256, 512)
BLOCKS = (2, 2, 2, 2)
STRIDES = (8, 16, 32)
CHANNELS = 128
RARE = 0.01


def conv2d(net, width, kernel, stride=1, scope="conv"):
    """Convolve with as many zeros on each side; TensorFlow's SAME has more below and to the right at stride 2."""
    with tf.variable_scope(scope):
        normal = tf.variance_scaling_initializer(2.0, "fan_out", "untruncated_normal")
        weight = tf.get_variable("weight", [kernel, kernel, net.shape[-1], width], initializer=normal)
        zeros = [kernel // 2, kernel // 2]
        if stride > 1 and kernel > 1:
            net = tf.pad(net, [[0, 0], zeros, zeros, [0, 0]])
        return tf.nn.conv2d(net, weight, stride, "VALID" if stride > 1 else "SAME")


def batch_norm(net, is_training, scope):
    """Batch norm as in PyTorch: epsilon 1e-5; the averages move by a tenth, to the unbiased variance of the batch."""
    with tf.variable_scope(scope):
        channels = [net.shape[-1]]
        weight = tf.get_variable("weight", channels, initializer=tf.ones_initializer())
        bias = tf.get_variable("bias", channels, initializer=tf.zeros_initializer())
        mean = tf.get_variable("running_mean", channels, initializer=tf.zeros_initializer(), trainable=False)
        variance = tf.get_variable("running_var", channels, initializer=tf.ones_initializer(), trainable=False)
        if not is_training:
            return tf.nn.fused_batch_norm(net, weight, bias, mean, variance, epsilon=1e-5, is_training=False)[0]
        net, batch_mean, batch_variance = tf.nn.fused_batch_norm(net, weight, bias, epsilon=1e-5)
        for average, value in ((mean, batch_mean), (variance, batch_variance)):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(average, 0.1 * (average - value)))
        return net


def block(net, width, stride, is_training):
    """Two convolutions beside a shortcut; the first halves the image where the stride is 2."""
    shortcut = net
    net = tf.nn.relu(batch_norm(conv2d(net, width, 3, stride, "conv1"), is_training, "bn1"))
    net = batch_norm(conv2d(net, width, 3, scope="conv2"), is_training, "bn2")
    if stride > 1 or shortcut.shape[-1] != width:
        shortcut = batch_norm(conv2d(shortcut, width, 1, stride, "downsample/0"), is_training, "downsample/1")
    return tf.nn.relu(net + shortcut)


def convolution(net, width, kernel, is_training, scope):
    """A convolution with batch norm and ReLU."""
    with tf.variable_scope(scope):
        return tf.nn.relu(batch_norm(conv2d(net, width, kernel), is_training, "bn"))


def cells(net, numbers, bias, scope):
    """Return some numbers for each cell, (N, cells, numbers)."""
    limit = 1 / np.sqrt(int(net.shape[-1]))
    with tf.variable_scope(scope):
        uniform = tf.random_uniform_initializer(-limit, limit)
        weight = tf.get_variable("weight", [1, 1, net.shape[-1], numbers], initializer=uniform)
        offset = tf.get_variable("bias", [numbers], initializer=tf.constant_initializer(bias))
        return tf.reshape(tf.nn.conv2d(net, weight, 1, "SAME") + offset, [-1, net.shape[1] * net.shape[2], numbers])


class UserModel(Tower):
    @model_property
    def predictions(self):
        """Boxes (N, K, 4) in px, logits (N, K, classes), and the points (K, 2) that they belong to."""
        height, width, channels = self.input_shape
        # Colors as in ImageNet, on the scale of 0 to 255.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if channels == 3 else (0.5, 0.25)
        net = (self.x - 255 * np.float32(mean)) / (255 * np.float32(std))
        net = tf.nn.relu(batch_norm(conv2d(net, WIDTHS[0], 7, 2, "conv1"), self.is_training, "bn1"))
        # No value is below 0 here: zeros around the image never win.
        net = tf.nn.max_pool2d(tf.pad(net, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID", name="maxpool")
        levels = {}
        for level, (size, blocks) in enumerate(zip(WIDTHS, BLOCKS), start=1):
            for number in range(blocks):
                with tf.variable_scope(f"layer{level}/{number}"):
                    net = block(net, size, 2 if level > 1 and number == 0 else 1, self.is_training)
            levels[level] = net
        logits, sides, above = [], [], None
        for level in (4, 3, 2):
            net = convolution(levels[level], CHANNELS, 1, self.is_training, f"across{level}")
            if above is not None:
                # Sides are rounded up on the way down, so the enlarged map may have a row or column too many.
                twice = [2 * int(above.shape[1]), 2 * int(above.shape[2])]
                net += tf.image.resize_nearest_neighbor(above, twice)[:, : net.shape[1], : net.shape[2]]
            above = convolution(net, CHANNELS, 3, self.is_training, f"smooth{level}")
            with tf.variable_scope(f"head{level}"):
                # Few cells have an object: scores begin low, or the first steps would be spent on that alone.
                net = convolution(above, CHANNELS, 3, self.is_training, "class_conv")
                logits.insert(0, cells(net, self.nclasses, np.log(RARE / (1 - RARE)), "classes"))
                net = convolution(above, CHANNELS, 3, self.is_training, "box_conv")
                sides.insert(0, cells(net, 4, 0.0, "sides"))
        points, sizes = digits.anchor_points(height, width, STRIDES)
        distances = tf.exp(tf.minimum(tf.concat(sides, axis=1), 5.0)) * sizes
        boxes = tf.concat([points - distances[..., :2], points + distances[..., 2:]], axis=2)
        return boxes, tf.concat(logits, axis=1), points

    @model_property
    def inference(self):
        boxes, logits, _ = self.predictions
        return tf.concat([boxes, tf.sigmoid(logits)], axis=2)

    @model_property
    def loss(self):
        boxes, logits, points = self.predictions
        return digits.detection_loss(boxes, logits, self.y, points)
