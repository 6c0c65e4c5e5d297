"""A head like DeepLabv3's (Chen et al., 2017) on ResNet-18: atrous convolutions of several rates see far and near."""

# Blocks, width, stride of the first, atrous rate: the last stage keeps its size and looks twice as far instead.
STAGES = ((2, 64, 1, 1), (2, 128, 2, 1), (2, 256, 2, 1), (2, 512, 1, 2))
RATES = (6, 12, 18)


def block(net, width, stride, rate, name):
    with tf.variable_scope(name):
        shortcut = net
        branch = slim.conv2d(net, width, [3, 3], stride, rate=rate if stride == 1 else 1, scope="conv1")
        with slim.arg_scope([slim.conv2d], activation_fn=None):
            branch = slim.conv2d(branch, width, [3, 3], rate=rate, scope="conv2")
            if stride > 1 or shortcut.shape[-1] != branch.shape[-1]:
                shortcut = slim.conv2d(shortcut, width, [1, 1], stride, scope="shortcut")
        return tf.nn.relu(shortcut + branch)


def head(net, is_training):
    branches = [slim.conv2d(net, 128, [1, 1], scope="near")]
    branches += [slim.conv2d(net, 128, [3, 3], rate=rate, scope=f"rate{rate}") for rate in RATES]
    whole = slim.conv2d(tf.reduce_mean(net, axis=[1, 2], keepdims=True), 128, [1, 1], scope="whole")
    branches.append(tf.tile(whole, [1, net.shape[1], net.shape[2], 1]))
    net = slim.conv2d(tf.concat(branches, axis=3), 128, [1, 1], scope="joined")
    return slim.dropout(net, 0.9, is_training=is_training, scope="dropout1")


class UserModel(Tower):
    @model_property
    def inference(self):
        net = self.x / 64.0
        with slim.arg_scope(
            [slim.conv2d],
            normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": self.is_training, "decay": 0.95, "scale": True},
            weights_initializer=tf.contrib.layers.variance_scaling_initializer(),
            weights_regularizer=slim.l2_regularizer(0.0001),
        ):
            if self.input_shape[0] > 64:
                net = slim.conv2d(net, 64, [7, 7], 2, scope="conv1")
                net = slim.max_pool2d(net, [3, 3], 2, padding="SAME", scope="pool1")
            else:
                net = slim.conv2d(net, 64, [3, 3], scope="conv1")
            for stage, (blocks, width, stride, rate) in enumerate(STAGES, start=2):
                for number in range(1, blocks + 1):
                    net = block(net, width, stride if number == 1 else 1, rate, f"stage{stage}/block{number}")
            with tf.variable_scope("head"):
                net = head(net, self.is_training)
        net = slim.conv2d(net, self.nclasses, [1, 1], activation_fn=None, scope="logits")
        return tf.image.resize_bilinear(net, self.input_shape[:2], half_pixel_centers=True)

    @model_property
    def loss(self):
        accuracy = digits.pixel_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.segmentation_loss(self.inference, self.y)
