"""MobileNetV2 (Sandler et al., 2018): inverted residual blocks of depthwise convolutions.

It is named and calculated as torchvision's, so that its published weights load. Images of at most 64 px are halved
three times and not five times; the weights are the same.
"""

# Expansion, width, blocks, stride of the first (table 2 of the paper).
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def conv2d(net, width, kernel, stride=1, scope="conv"):
    """Convolve with as many zeros on each side; TensorFlow's SAME has more below and to the right at stride 2."""
    with tf.variable_scope(scope):
        normal = tf.variance_scaling_initializer(2.0, "fan_out", "untruncated_normal")
        weight = tf.get_variable("weight", [kernel, kernel, net.shape[-1], width], initializer=normal)
        if stride > 1:
            zeros = [kernel // 2, kernel // 2]
            net = tf.pad(net, [[0, 0], zeros, zeros, [0, 0]])
        return tf.nn.conv2d(net, weight, stride, "VALID" if stride > 1 else "SAME")


def depthwise(net, kernel, stride, scope):
    """Convolve each channel by itself. The weight has PyTorch's axes: one input channel for each output."""
    channels = int(net.shape[-1])
    with tf.variable_scope(scope):
        normal = tf.random_normal_initializer(0, np.sqrt(2 / (kernel * kernel * channels)))
        weight = tf.get_variable("weight", [kernel, kernel, 1, channels], initializer=normal)
        weight = tf.reshape(weight, [kernel, kernel, channels, 1])
        if stride > 1:
            zeros = [kernel // 2, kernel // 2]
            net = tf.pad(net, [[0, 0], zeros, zeros, [0, 0]])
        return tf.nn.depthwise_conv2d(net, weight, [1, stride, stride, 1], "VALID" if stride > 1 else "SAME")


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


def block(net, expansion, width, stride, is_training):
    """Expand by 1x1, look around in each channel by 3x3, and project by 1x1 without a nonlinearity."""
    before, channels = net, int(net.shape[-1])
    layer = 0
    if expansion > 1:
        net = conv2d(net, expansion * channels, 1, scope="conv/0/0")
        net = tf.nn.relu6(batch_norm(net, is_training, "conv/0/1"))
        layer = 1
    net = depthwise(net, 3, stride, f"conv/{layer}/0")
    net = tf.nn.relu6(batch_norm(net, is_training, f"conv/{layer}/1"))
    net = batch_norm(conv2d(net, width, 1, scope=f"conv/{layer + 1}"), is_training, f"conv/{layer + 2}")
    return before + net if stride == 1 and channels == width else net


class UserModel(Tower):
    @model_property
    def inference(self):
        # Colors as in ImageNet, on the scale of 0 to 255.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if self.input_shape[2] == 3 else (0.5, 0.25)
        net = (self.x - 255 * np.float32(mean)) / (255 * np.float32(std))
        is_small = max(self.input_shape[:2]) <= 64
        net = conv2d(net, 32, 3, 1 if is_small else 2, "features/0/0")
        net = tf.nn.relu6(batch_norm(net, self.is_training, "features/0/1"))
        layer = 1
        for stage, (expansion, width, blocks, first) in enumerate(STAGES, start=1):
            for number in range(blocks):
                stride = first if number == 0 and not (is_small and stage == 2) else 1
                with tf.variable_scope(f"features/{layer}"):
                    net = block(net, expansion, width, stride, self.is_training)
                layer += 1
        net = conv2d(net, 1280, 1, scope=f"features/{layer}/0")
        net = tf.nn.relu6(batch_norm(net, self.is_training, f"features/{layer}/1"))
        net = tf.reduce_mean(net, axis=[1, 2], name="avgpool")
        net = slim.dropout(net, 0.8, is_training=self.is_training, scope="classifier/0")
        with tf.variable_scope("classifier/1"):
            normal = tf.random_normal_initializer(0, 0.01)
            weight = tf.get_variable("weight", [net.shape[-1], self.nclasses], initializer=normal)
            bias = tf.get_variable("bias", [self.nclasses], initializer=tf.zeros_initializer())
            return tf.matmul(net, weight) + bias

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
