"""ConvNeXt-Tiny (Liu et al., 2022): a ResNet in the form of a Transformer, named and calculated as torchvision's."""

# Blocks and width of each stage; between two stages, the image is halved.
STAGES = ((3, 96), (3, 192), (9, 384), (3, 768))
DROPPED = 0.1  # share of the last block's results that a training step leaves out; earlier blocks lose fewer


def conv2d(net, width, kernel, scope):
    """Cut the image into squares without overlap: the stride is the kernel."""
    with tf.variable_scope(scope):
        normal = tf.truncated_normal_initializer(0, 0.02)
        weight = tf.get_variable("weight", [kernel, kernel, net.shape[-1], width], initializer=normal)
        bias = tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
        return tf.nn.conv2d(net, weight, kernel, "VALID") + bias


def depthwise(net, kernel, scope):
    """Convolve each channel by itself. The weight has PyTorch's axes: one input channel for each output."""
    channels = int(net.shape[-1])
    with tf.variable_scope(scope):
        normal = tf.truncated_normal_initializer(0, 0.02)
        weight = tf.get_variable("weight", [kernel, kernel, 1, channels], initializer=normal)
        bias = tf.get_variable("bias", [channels], initializer=tf.zeros_initializer())
        weight = tf.reshape(weight, [kernel, kernel, channels, 1])
        return tf.nn.depthwise_conv2d(net, weight, [1, 1, 1, 1], "SAME") + bias


def layer_norm(net, scope):
    """Mean 0 and deviation 1 of the channels of each place, then scaled and shifted."""
    with tf.variable_scope(scope):
        channels = [net.shape[-1]]
        weight = tf.get_variable("weight", channels, initializer=tf.ones_initializer())
        bias = tf.get_variable("bias", channels, initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(net, [-1], keepdims=True)
        return (net - mean) * tf.rsqrt(variance + 1e-6) * weight + bias


def gelu(net):
    """x times the share of a normal distribution that is below x (Hendrycks and Gimpel, 2016)."""
    return 0.5 * net * (1 + tf.math.erf(net / np.sqrt(2).astype(np.float32)))


def dense(net, width, scope):
    """A dense layer over the last axis."""
    with tf.variable_scope(scope):
        normal = tf.truncated_normal_initializer(0, 0.02)
        weight = tf.get_variable("weight", [net.shape[-1], width], initializer=normal)
        bias = tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
        return tf.tensordot(net, weight, 1) + bias


def block(net, dropped, is_training):
    """A 7x7 convolution in each channel, then two dense layers over the channels, beside a shortcut."""
    width = int(net.shape[-1])
    inner = layer_norm(depthwise(net, 7, "block/0"), "block/2")
    inner = gelu(dense(inner, 4 * width, "block/3"))
    inner = dense(inner, width, "block/5")
    scale = tf.get_variable("layer_scale", [width, 1, 1], initializer=tf.constant_initializer(1e-6))
    inner *= tf.reshape(scale, [width])
    if is_training and dropped:
        # Stochastic depth (Huang et al., 2016): a sample keeps the whole result of the block, or none of it.
        inner = tf.nn.dropout(inner, rate=dropped, noise_shape=[tf.shape(inner)[0], 1, 1, 1])
    return net + inner


class UserModel(Tower):
    @model_property
    def inference(self):
        # Colors as in ImageNet, on the scale of 0 to 255.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if self.input_shape[2] == 3 else (0.5, 0.25)
        net = (self.x - 255 * np.float32(mean)) / (255 * np.float32(std))
        layer, done, total = 0, 0, sum(blocks for blocks, _ in STAGES)
        for blocks, width in STAGES:
            if layer == 0:
                net = layer_norm(conv2d(net, width, 4, "features/0/0"), "features/0/1")
            else:
                net = conv2d(layer_norm(net, f"features/{layer}/0"), width, 2, f"features/{layer}/1")
            for number in range(blocks):
                with tf.variable_scope(f"features/{layer + 1}/{number}"):
                    net = block(net, DROPPED * done / (total - 1), self.is_training)
                done += 1
            layer += 2
        net = layer_norm(tf.reduce_mean(net, axis=[1, 2], name="avgpool"), "classifier/0")
        return dense(net, self.nclasses, "classifier/2")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
