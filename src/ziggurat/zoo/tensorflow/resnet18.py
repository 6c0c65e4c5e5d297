"""ResNet-18 (He et al., 2015), named and calculated as torchvision's, so that its published weights load.

Published weights are for images of more than 64 px: smaller ones keep their size in the stem, whose kernel is smaller.
"""

WIDTHS = (64, 128, 256, 512)
BLOCKS = (2, 2, 2, 2)


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


class UserModel(Tower):
    @model_property
    def inference(self):
        # Colors as in ImageNet, on the scale of 0 to 255.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if self.input_shape[2] == 3 else (0.5, 0.25)
        net = (self.x - 255 * np.float32(mean)) / (255 * np.float32(std))
        is_small = max(self.input_shape[:2]) <= 64
        net = conv2d(net, 64, 3, 1, "conv1") if is_small else conv2d(net, 64, 7, 2, "conv1")
        net = tf.nn.relu(batch_norm(net, self.is_training, "bn1"))
        if not is_small:
            # No value is below 0 here: zeros around the image never win.
            net = tf.nn.max_pool2d(tf.pad(net, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID", name="maxpool")
        for stage, (width, blocks) in enumerate(zip(WIDTHS, BLOCKS), start=1):
            for number in range(blocks):
                with tf.variable_scope(f"layer{stage}/{number}"):
                    net = block(net, width, 2 if stage > 1 and number == 0 else 1, self.is_training)
        net = tf.reduce_mean(net, axis=[1, 2], name="avgpool")
        with tf.variable_scope("fc"):
            limit = 1 / np.sqrt(int(net.shape[-1]))
            uniform = tf.random_uniform_initializer(-limit, limit)
            weight = tf.get_variable("weight", [net.shape[-1], self.nclasses], initializer=uniform)
            bias = tf.get_variable("bias", [self.nclasses], initializer=uniform)
            return tf.matmul(net, weight) + bias

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
