"""ResNet-50 (He et al., 2015): three-layer blocks in four stages; small pictures keep their size in the stem."""

STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def block(net, width, stride, name):
    with tf.variable_scope(name):
        shortcut = net
        branch = slim.conv2d(net, width, [1, 1], scope="conv1")
        branch = slim.conv2d(branch, width, [3, 3], stride, scope="conv2")
        with slim.arg_scope([slim.conv2d], activation_fn=None):
            branch = slim.conv2d(branch, 4 * width, [1, 1], scope="conv3")
        if stride > 1 or shortcut.shape[-1] != branch.shape[-1]:
            with slim.arg_scope([slim.conv2d], activation_fn=None):
                shortcut = slim.conv2d(shortcut, int(branch.shape[-1]), [1, 1], stride, scope="shortcut")
        return tf.nn.relu(shortcut + branch)


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
            for stage, (blocks, width) in enumerate(STAGES, start=2):
                for number in range(1, blocks + 1):
                    stride = 2 if stage > 2 and number == 1 else 1
                    net = block(net, width, stride, f"stage{stage}/block{number}")
        net = tf.reduce_mean(net, axis=[1, 2])
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="logits")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
