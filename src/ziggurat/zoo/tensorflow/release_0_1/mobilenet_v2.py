"""MobileNetV2 (Sandler et al., 2018): inverted residual blocks of depthwise convolutions."""

# Expansion, width, blocks, stride of the first (table 2 of the paper).
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def block(net, expansion, width, stride, name):
    with tf.variable_scope(name):
        before, inner = net, net
        if expansion > 1:
            inner = slim.conv2d(inner, expansion * int(net.shape[-1]), [1, 1], scope="expand")
        inner = slim.separable_conv2d(inner, None, [3, 3], depth_multiplier=1, stride=stride, scope="depthwise")
        inner = slim.conv2d(inner, width, [1, 1], activation_fn=None, scope="project")
        return before + inner if stride == 1 and before.shape[-1] == width else inner


class UserModel(Tower):
    @model_property
    def inference(self):
        net = self.x / 64.0
        with slim.arg_scope(
            [slim.conv2d, slim.separable_conv2d],
            activation_fn=tf.nn.relu6,
            normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": self.is_training, "decay": 0.95, "scale": True},
            weights_regularizer=slim.l2_regularizer(0.00004),
        ):
            small = self.input_shape[0] <= 64
            net = slim.conv2d(net, 32, [3, 3], 1 if small else 2, scope="conv1")
            for stage, (expansion, width, blocks, stride) in enumerate(STAGES, start=1):
                for number in range(1, blocks + 1):
                    first = stride if number == 1 and not (small and stage == 2) else 1
                    net = block(net, expansion, width, first, f"stage{stage}/block{number}")
            net = slim.conv2d(net, 1280, [1, 1], scope="conv2")
        net = tf.reduce_mean(net, axis=[1, 2])
        net = slim.dropout(net, 0.8, is_training=self.is_training, scope="dropout1")
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="logits")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
