"""EfficientNet-Lite0 (Google, 2020): EfficientNet-B0 without squeeze and excitation, and with ReLU6.

Google's weights load. Images of at most 64 px are halved three times and not five times; the weights are the same.
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
    """Batch norm with epsilon 1e-3; the averages move by a hundredth, to the unbiased variance of the batch."""
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
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(average, 0.01 * (average - value)))
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


class UserModel(Tower):
    @model_property
    def inference(self):
        is_small = max(self.input_shape[:2]) <= 64
        net = conv2d((self.x - 127) / 128, 32, 3, 1 if is_small else 2, "conv_stem")
        net = tf.nn.relu6(batch_norm(net, self.is_training, "bn0"))
        number = 0
        for expansion, kernel, first, width, count in STAGES:
            for place in range(count):
                stride = first if place == 0 and not (is_small and width == 24) else 1
                with tf.variable_scope(f"blocks/{number}"):
                    net = block(net, expansion, kernel, stride, width, self.is_training)
                number += 1
        net = tf.nn.relu6(batch_norm(conv2d(net, 1280, 1, 1, "conv_head"), self.is_training, "bn1"))
        net = tf.reduce_mean(net, axis=[1, 2], name="avgpool")
        net = slim.dropout(net, 0.8, is_training=self.is_training, scope="dropout")
        with tf.variable_scope("fc"):
            normal = tf.random_normal_initializer(0, 0.01)
            weight = tf.get_variable("weight", [net.shape[-1], self.nclasses], initializer=normal)
            bias = tf.get_variable("bias", [self.nclasses], initializer=tf.zeros_initializer())
            return tf.matmul(net, weight) + bias

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
