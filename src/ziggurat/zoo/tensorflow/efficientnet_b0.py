"""EfficientNet-B0 (Tan and Le, 2019): inverted residual blocks that weigh their channels (squeeze and excitation).

It is named and calculated as torchvision's, so that its published weights load. Images of at most 64 px are halved
three times and not five times; the weights are the same.
"""

# Expansion, kernel, stride of the first, width, blocks (table 1 of the paper).
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
DROPPED = 0.2  # share of the last block's results that a training step leaves out; earlier blocks lose fewer


def conv2d(net, width, kernel, stride=1, scope="conv", has_bias=False):
    """Convolve with as many zeros on each side; TensorFlow's SAME has more below and to the right at stride 2."""
    with tf.variable_scope(scope):
        normal = tf.variance_scaling_initializer(2.0, "fan_out", "untruncated_normal")
        weight = tf.get_variable("weight", [kernel, kernel, net.shape[-1], width], initializer=normal)
        if stride > 1:
            zeros = [kernel // 2, kernel // 2]
            net = tf.pad(net, [[0, 0], zeros, zeros, [0, 0]])
        net = tf.nn.conv2d(net, weight, stride, "VALID" if stride > 1 else "SAME")
        return net + tf.get_variable("bias", [width], initializer=tf.zeros_initializer()) if has_bias else net


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


def squeeze_excitation(net, squeezed, scope):
    """Multiply each channel by a weight from 0 to 1 that follows from the means of all channels."""
    with tf.variable_scope(scope):
        means = tf.reduce_mean(net, axis=[1, 2], keepdims=True)
        inner = tf.nn.silu(conv2d(means, squeezed, 1, scope="fc1", has_bias=True))
        return net * tf.sigmoid(conv2d(inner, int(net.shape[-1]), 1, scope="fc2", has_bias=True))


def block(net, expansion, kernel, stride, width, dropped, is_training):
    """Expand by 1x1, look around in each channel, weigh the channels, and project by 1x1."""
    before, channels = net, int(net.shape[-1])
    layer = 0
    if expansion > 1:
        net = conv2d(net, expansion * channels, 1, scope="block/0/0")
        net = tf.nn.silu(batch_norm(net, is_training, "block/0/1"))
        layer = 1
    net = depthwise(net, kernel, stride, f"block/{layer}/0")
    net = tf.nn.silu(batch_norm(net, is_training, f"block/{layer}/1"))
    net = squeeze_excitation(net, channels // 4, f"block/{layer + 1}")
    net = conv2d(net, width, 1, scope=f"block/{layer + 2}/0")
    net = batch_norm(net, is_training, f"block/{layer + 2}/1")
    if stride > 1 or channels != width:
        return net
    if is_training and dropped:
        # Stochastic depth (Huang et al., 2016): a sample keeps the whole result of the block, or none of it.
        net = tf.nn.dropout(net, rate=dropped, noise_shape=[tf.shape(net)[0], 1, 1, 1])
    return before + net


class UserModel(Tower):
    @model_property
    def inference(self):
        # Colors as in ImageNet, on the scale of 0 to 255.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if self.input_shape[2] == 3 else (0.5, 0.25)
        net = (self.x - 255 * np.float32(mean)) / (255 * np.float32(std))
        is_small = max(self.input_shape[:2]) <= 64
        net = conv2d(net, 32, 3, 1 if is_small else 2, "features/0/0")
        net = tf.nn.silu(batch_norm(net, self.is_training, "features/0/1"))
        done, total = 0, sum(blocks for *_, blocks in STAGES)
        for stage, (expansion, kernel, first, width, blocks) in enumerate(STAGES, start=1):
            for number in range(blocks):
                stride = first if number == 0 and not (is_small and stage == 2) else 1
                with tf.variable_scope(f"features/{stage}/{number}"):
                    net = block(net, expansion, kernel, stride, width, DROPPED * done / total, self.is_training)
                done += 1
        net = conv2d(net, 1280, 1, scope="features/8/0")
        net = tf.nn.silu(batch_norm(net, self.is_training, "features/8/1"))
        net = tf.reduce_mean(net, axis=[1, 2], name="avgpool")
        net = slim.dropout(net, 0.8, is_training=self.is_training, scope="classifier/0")
        with tf.variable_scope("classifier/1"):
            limit = 1 / np.sqrt(self.nclasses)
            uniform = tf.random_uniform_initializer(-limit, limit)
            weight = tf.get_variable("weight", [net.shape[-1], self.nclasses], initializer=uniform)
            bias = tf.get_variable("bias", [self.nclasses], initializer=tf.zeros_initializer())
            return tf.matmul(net, weight) + bias

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
