"""A U-Net with a quarter of the widths and one level less, for small pictures and few masks."""

WIDTHS = (16, 32, 64, 128)


def convolutions(net, width, name):
    with tf.variable_scope(name):
        net = slim.conv2d(net, width, [3, 3], scope="conv1")
        return slim.conv2d(net, width, [3, 3], scope="conv2")


class UserModel(Tower):
    @model_property
    def inference(self):
        height, width, _ = self.input_shape
        # The encoder halves the sides once a level: they must divide, so zeros are added below and to the right.
        multiple = 2 ** (len(WIDTHS) - 1)
        net = tf.pad(self.x / 64.0, [[0, 0], [0, -height % multiple], [0, -width % multiple], [0, 0]])
        with slim.arg_scope(
            [slim.conv2d, slim.conv2d_transpose],
            normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": self.is_training, "decay": 0.95, "scale": True},
            weights_initializer=tf.contrib.layers.variance_scaling_initializer(),
            weights_regularizer=slim.l2_regularizer(0.0001),
        ):
            across = []
            for level, channels in enumerate(WIDTHS, start=1):
                net = convolutions(net, channels, f"down{level}")
                if level < len(WIDTHS):
                    across.append(net)
                    net = slim.max_pool2d(net, [2, 2], scope=f"pool{level}")
            for level, channels in reversed(list(enumerate(WIDTHS[:-1], start=1))):
                net = slim.conv2d_transpose(net, channels, [2, 2], 2, scope=f"up{level}/widen")
                net = convolutions(tf.concat([across.pop(), net], axis=3), channels, f"up{level}")
        net = slim.conv2d(net, self.nclasses, [1, 1], activation_fn=None, scope="logits")
        return net[:, :height, :width, :]

    @model_property
    def loss(self):
        accuracy = digits.pixel_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.segmentation_loss(self.inference, self.y)
