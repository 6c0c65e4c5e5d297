"""A U-Net (Ronneberger et al., 2015) whose encoder is EfficientNet-Lite0.

The encoder has the names of `efficientnet_lite0`, so that Google's weights load. All that stands behind it is the head,
which is trained first where a training fine-tunes.
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
# Blocks whose maps go across to the decoder, with cells of 2 to 32 px.
LEVELS = (0, 2, 4, 10, 15)
# Widths of the decoder, from the whole image to cells of 16 px.
DECODED = (16, 24, 32, 48, 96)


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


def layer(net, width, is_training, scope):
    """A convolution with batch norm and ReLU."""
    with tf.variable_scope(scope):
        return tf.nn.relu(batch_norm(conv2d(net, width, 3, 1, "conv"), is_training, "bn"))


def up(net, across, width, is_training):
    """Double both sides, and look at the map of the encoder that has that size."""
    sides = [2 * int(net.shape[1]), 2 * int(net.shape[2])]
    with tf.variable_scope("widen"):
        normal = tf.variance_scaling_initializer(2.0, "fan_out", "untruncated_normal")
        weight = tf.get_variable("weight", [2, 2, width, net.shape[-1]], initializer=normal)
        net = tf.nn.conv2d_transpose(net, weight, [tf.shape(net)[0], *sides, width], 2, "SAME")
    # Sides are rounded up on the way down, so the enlarged map may have a row or column too many.
    net = tf.nn.relu(batch_norm(net, is_training, "bn"))[:, : across.shape[1], : across.shape[2]]
    net = layer(tf.concat([across, net], axis=3), width, is_training, "conv1")
    return layer(net, width, is_training, "conv2")


class UserModel(Tower):
    @model_property
    def inference(self):
        image = (self.x - 127) / 128
        maps = [image, *backbone(image, self.is_training)]
        net = maps[-1]
        with tf.variable_scope("head"):
            for level in reversed(range(len(DECODED))):
                with tf.variable_scope(f"up{level}"):
                    net = up(net, maps[level], DECODED[level], self.is_training)
            with tf.variable_scope("classes"):
                uniform = tf.glorot_uniform_initializer()
                weight = tf.get_variable("weight", [1, 1, DECODED[0], self.nclasses], initializer=uniform)
                bias = tf.get_variable("bias", [self.nclasses], initializer=tf.zeros_initializer())
                return tf.nn.conv2d(net, weight, 1, "SAME") + bias

    @model_property
    def loss(self):
        accuracy = digits.pixel_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.segmentation_loss(self.inference, self.y)
